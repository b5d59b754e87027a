"""Crawl traps: URL patterns and sites that never yield."""
