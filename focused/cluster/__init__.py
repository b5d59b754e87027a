"""A crawl of many partitions: each is a crawl of its own hosts; they exchange links."""
