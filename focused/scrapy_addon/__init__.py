"""Scrapy add-on: runs a :class:`focused.crawl.Crawl` with Scrapy.

``ADDONS = {"focused.scrapy_addon.FocusedAddon": 0}`` installs it. Each crawler has one
:class:`~focused.scrapy_addon.crawl_session.CrawlSession`, which holds the crawl:

- the scheduler creates a request when the crawl leases a link;
- the robots and politeness middlewares also check requests that bypass the scheduler;
- the settling middleware settles the lease with the response or failure;
- the relevance middleware scores a spider's own requests and adds relevance to its items.

Each lease is settled exactly once, whichever middleware or handler ends the request.
"""

from focused.scrapy_addon.addon import FocusedAddon

__all__ = ["FocusedAddon"]
