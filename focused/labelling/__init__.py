"""Labelling: ask people in the browser whether crawled pages are on topic."""
