"""The features that come with the Scrapy driver, a module each: when they are on, and their parts.

The modules are entry points of the group ``focused.scrapy_features``. They are imported for every
crawl, so each imports what it connects in ``connect``. :mod:`focused.scrapy_addon.driver_features`
describes the seams.
"""
