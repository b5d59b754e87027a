"""The spiders of this checkout: those of :mod:`focused.scrapy_addon.spiders`."""

from focused.scrapy_addon.spiders.first import FirstSpider
from focused.scrapy_addon.spiders.samples import SamplesSpider
from focused.scrapy_addon.spiders.topic import TopicSpider

__all__ = ["FirstSpider", "SamplesSpider", "TopicSpider"]
