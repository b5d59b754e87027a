"""Crawl traps: URL shapes without end, and patterns that never yield."""
