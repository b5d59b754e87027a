"""One crawl by many processes, in rounds that a driver commits by manifests."""
