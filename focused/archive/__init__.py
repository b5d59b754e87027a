"""What a crawl keeps: rows of pages, links and visits, WARC files, Parquet files."""
