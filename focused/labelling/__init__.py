"""Labelling: ask people whether crawled pages are on topic, in the browser or on the terminal."""
