"""The spiders of this checkout: those of :mod:`focused.scrapy_addon.spiders`."""

from focused.scrapy_addon.spiders.samples_spider import SamplesSpider
from focused.scrapy_addon.spiders.topic_spider import TopicSpider

__all__ = ["SamplesSpider", "TopicSpider"]
