"""A spider of one's own with focus: it picks the links, Focused picks their order.

Run it with ``scrapy runspider own_spider.py -s FOCUSED_TOPIC=topic.toml``.
"""

import scrapy


class ArticleSpider(scrapy.Spider):
    name = "articles"
    start_urls = ["http://a.test/"]
    custom_settings = {
        "ADDONS": {"focused.scrapy_addon.FocusedAddon": 0},
        "ITEM_PIPELINES": {"own_spider.KeepRelevant": 300},
    }

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get("")}
        # Each request is scored on the page it was found on, and waits its turn.
        yield from response.follow_all(css="a", callback=self.parse)


class KeepRelevant:
    """A pipeline of one's own: items come with the relevance of their page."""

    def process_item(self, item):
        if item["relevance"] < 0.5:
            raise scrapy.exceptions.DropItem("off topic")
        return item
