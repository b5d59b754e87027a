"""When a page is visited again: change rates, allocation of downloads, policies."""
