"""One crawl by processes of one or many machines, in rounds that a driver commits by manifests."""
