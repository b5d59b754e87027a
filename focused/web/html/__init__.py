"""HTML parsing: a page's text, its links and their context."""
