"""Hosts of a crawl: robots.txt, politeness, failures and suspension."""
