"""``scrapy crawl topic -a topic=FILE``: crawl the pages of one topic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.http import Response
from scrapy.settings import BaseSettings

from focused.crawl import SettledFetch
from focused.errors import print_notice
from focused.scrapy_addon.addon_settings import parsing_limits
from focused.scrapy_addon.crawl_session import find_session
from focused.scrapy_addon.request_state import state_of

if TYPE_CHECKING:
    from focused.scrapy_addon.item_documents import ItemDocuments

_UNUSED_MIDDLEWARES = frozenset(
    {
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware",  # no allowed_domains
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",  # the topic has it
    }
)


class TopicSpider(Spider):
    """Receives pages; the crawl behind the scheduler chooses them."""

    name = "topic"

    def __init__(self, topic: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.topic_file = topic
        self._documents: ItemDocuments | None = None

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Let the crawl follow links, log to its folder, and print its report."""
        super().update_settings(settings)
        settings.set("FOCUSED_FOLLOW_LINKS", True, priority="spider")
        settings.set("FOCUSED_LOG_TO_FOLDER", True, priority="spider")
        settings.set("FOCUSED_REPORT", True, priority="command")  # below a project's
        if cls is TopicSpider:
            _skip_unused_components(settings)

    async def start(self) -> AsyncIterator[Any]:
        """Yield nothing: the seeds are in the frontier."""
        nothing: tuple[Any, ...] = ()
        for item in nothing:
            yield item

    @staticmethod
    def wants_page(settled: SettledFetch) -> bool:
        """Whether :meth:`parse` yields an item for the page; other pages may be skipped."""
        return (
            settled.classification is not None
            and settled.classification.on_topic
            and not settled.is_noindex
        )

    def parse(self, response: Response) -> Iterator[dict[str, Any]] | AsyncIterator[dict[str, Any]]:
        """Return an item for each on-topic page, with the fields of FOCUSED_ITEM_FIELDS."""
        items, named = self._items(response), self.settings["FOCUSED_ITEM_FIELDS"]
        if not named:
            return items
        from focused.scrapy_addon.item_documents import parse_item_fields  # only for fields

        fields = parse_item_fields(named)
        return self._with_documents(items, response, fields) if fields else items

    def _items(self, response: Response) -> Iterator[dict[str, Any]]:
        settled = state_of(response).settled  # None in Scrapy's commands
        if settled is None or settled.page is None or settled.classification is None:
            return
        if self.wants_page(settled):
            yield {
                "url": response.url,
                "title": settled.page.title,
                "relevance": settled.classification.relevance,
                "score": settled.link.score,
            }

    async def _with_documents(
        self, items: Iterator[dict[str, Any]], response: Response, fields: Sequence[str]
    ) -> AsyncIterator[dict[str, Any]]:
        for item in items:
            if self._documents is None:
                from focused.scrapy_addon.item_documents import ItemDocuments  # only for fields

                self._documents = ItemDocuments(parsing_limits(self.settings))
            yield item | await self._documents.fields_of(response, fields)

    def closed(self, reason: str) -> None:
        """Tell where the log is if the crawl did not start."""
        if self._documents is not None:
            self._documents.close()
        session = find_session(self.crawler)
        if session is None:
            return
        driver = session.driver
        if not driver.slot.was_opened and not driver.status.error_message:
            why = driver.topic.output.folder / "crawl.log"
            print_notice(f"the crawl could not start: see {why}")


def _skip_unused_components(settings: BaseSettings) -> None:
    """Remove middlewares without effect on this spider.

    Subclasses keep them.
    """
    settings.set("SPIDER_MIDDLEWARES_BASE", {}, priority="spider")
    settings.set("DOWNLOADER_STATS", False, priority="spider")
    unused = _UNUSED_MIDDLEWARES
    if not settings["HTTPAUTH_USER"] and not settings["HTTPAUTH_PASS"]:
        unused |= {"scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware"}
    stock = settings["DOWNLOADER_MIDDLEWARES_BASE"]
    kept = {name: order for name, order in stock.items() if name not in unused}
    settings.set("DOWNLOADER_MIDDLEWARES_BASE", kept, priority="spider")
