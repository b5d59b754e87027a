"""Focused: a focused (topical) web crawler.

Focused crawls from a few seed pages and a topic. It fetches the links that are most likely
to lead to pages about the topic.

Packages, in the order of their layers::

    errors, atomic_file  errors with a remedy; files written atomically
    topic           the topic file: everything about one crawl
    web             URLs, HTML, robots.txt, feeds, WARC records: pure functions
    text            tokens, word hashes, document vectors, content signatures
    directory       labelled sample pages under categories
    labels          people's labels of pages
    storage         LMDB environment, tables, write-ahead journal
    classifier      the topic classifier: training, calibration, model files
    link_scoring    the apprentice: predicts the relevance of link targets
    frontier        queued links, host scheduling, politeness
    recorded_web    what the crawler asks of recorded webs, which ``focused_lab`` has
    archive         fetched pages: rows, WARC, Parquet
    crawl           the crawl loop
    orderings       crawling strategies: our own, best-first, breadth-first
    reports         reports and plots of one crawl
    labelling       asks people for labels, in the browser and on the terminal
    scrapy_addon    everything that imports Scrapy
    cli             the command line

Experiments are in a distribution of their own, ``focused_lab``, which nothing here imports.

Nothing below ``scrapy_addon`` imports Scrapy or Twisted. Time and randomness are arguments.
Ground-truth labels never reach what guides a crawl.
"""

__version__ = "0.1.0"
