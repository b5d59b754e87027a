"""Scrapy settings of this checkout, for ``scrapy.cfg``: those of the package."""

from focused.scrapy_addon.spiders.settings import *  # noqa: F403 -- names of settings
