"""Scrapy add-on: runs a :class:`focused.crawl.Crawl` with Scrapy.

``ADDONS = {"focused.scrapy_addon.FocusedAddon": 0}`` installs it. Each crawler has one
:class:`~focused.scrapy_addon.crawl_session.CrawlSession`, which opens and closes the crawl;
:mod:`~focused.scrapy_addon.assembly` connects all parts:

- the scheduler creates a request when the crawl leases a link;
- the downloader checks each request before it is sent, and settles the lease with the response or
  failure;
- the relevance middleware scores a spider's own requests and adds relevance to its items;
- features (:mod:`~focused.scrapy_addon.driver_features`) add what topic or settings switch on.

Each lease is settled exactly once, whichever middleware or handler ends the request.
"""

from focused.scrapy_addon.addon import FocusedAddon

__all__ = ["FocusedAddon"]
