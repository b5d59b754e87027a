"""The Scrapy side: turns a Scrapy crawl into the driver of a :class:`focused.crawl.Crawl`.

``ADDONS = {"focused.scrapy_addon.FocusedAddon": 0}`` installs all of it. One
:class:`~focused.scrapy_addon.crawl_session.CrawlSession` per crawler holds the crawl:

- the scheduler asks it what to fetch next and makes the request at that moment;
- the robots and politeness middlewares hold every request to the hosts'
  rules, those that bypass the scheduler included;
- the settling middleware hands every answer and failure back to it;
- the spider middleware gives a spider's own requests their scores, and its
  items their relevance.

What always holds: a lease that the scheduler handed out is settled exactly
once, whatever middleware or handler ends the request.
"""

from focused.scrapy_addon.addon import FocusedAddon

__all__ = ["FocusedAddon"]
