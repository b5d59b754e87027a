"""Focused: a topical web crawler.

You give it a topic and a few pages; it brings home the pages of the Web that
are on that topic, spending as few downloads as possible.

What flows through the packages, in the order of one URL's life::

    topic      one TOML file says everything about a crawl
    web        URLs and pages as data: parse, robots.txt, fingerprints
    learning   is a page on topic?  will a link's target be?
    frontier   what to fetch next, and when its host may be asked
    crawl      puts the three together: seed, next, settle
    archive    what was harvested, durable page by page
    recorded   webs kept on disk and replayed over loopback
    evaluation reports, figures, comparisons
    scrapy_addon  the Scrapy side; spiders/ and cli.py stand on top

What always holds: nothing below ``scrapy_addon`` imports Scrapy or Twisted;
time and randomness are arguments; a score is predicted before it is learned
from; labels that score a crawl never reach what guides it.
"""

__version__ = "0.1.0"
