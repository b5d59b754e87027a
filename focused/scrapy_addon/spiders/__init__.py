"""Scrapy spiders, thin: what to fetch and what it is worth is decided by the crawl.

``scrapy crawl topic -a topic=FILE`` is the main job; ``scrapy crawl samples``
fetches a directory's pages for training.
"""
