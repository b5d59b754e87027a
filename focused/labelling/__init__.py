"""Asking people: which pages of a crawl to show, in which order, and what their answers tell."""
