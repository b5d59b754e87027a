"""Simulated crawls: the crawl loop over a recorded web, without network and with its own clock.

Equal arguments give equal crawls. Labels have no part here.
"""
