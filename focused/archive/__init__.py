"""What a crawl keeps: page and link rows, WARC files, Parquet files."""
