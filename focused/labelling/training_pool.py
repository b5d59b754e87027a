"""Prepare the pages that may be asked about, and search them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from focused.classifier.topic_classifier import TopicClassifier
from focused.documents.convert import to_html
from focused.documents.formats import document_format, needs_process
from focused.labelling.labelling_task import CrawledPage, FetchedPages
from focused.labelling.page_selection import FloatArray, PagePool, page_vectors, rows_with_words
from focused.labels.label_file import evaluation_hash, role_of
from focused.parser_process import (
    HandlerError,
    ParserProcess,
    ParsingLimits,
    ParsingStoppedError,
)
from focused.text.tokens import tokenize, url_words
from focused.web.html.parse import needs_parser_process, parse_page
from focused.web.page import Failed, Fetched, Page

MAX_POOL_PAGES = 2_000
"""Pages that active learning considers; each costs some milliseconds."""

PoolProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TrainingPool:
    """Pages for training, n of them, with the classifier's current relevance."""

    pages: tuple[CrawledPage, ...]
    pool: PagePool
    relevance: FloatArray
    threshold: float


def evaluation_queue(crawled: FetchedPages) -> list[CrawledPage]:
    """The pages of the evaluation set, in the order in which they are shown."""
    drawn = (page for page in crawled.pages.values() if role_of(page.url) == "evaluation")
    return sorted(drawn, key=lambda page: evaluation_hash(page.url))


def select_candidates(crawled: FetchedPages, limit: int = MAX_POOL_PAGES) -> list[CrawledPage]:
    """At most ``limit`` pages for training, by the crawl's own figures.

    If there are more: half from around the threshold, a quarter with the highest relevance, a
    quarter with the highest score.
    """
    pages = [page for page in crawled.pages.values() if role_of(page.url) == "training"]
    if len(pages) <= limit:
        return pages
    threshold = _observed_threshold(pages)
    chosen: dict[str, CrawledPage] = {}
    for share, rank in (
        (0.5, lambda page: abs(page.relevance - threshold)),
        (0.75, lambda page: -page.relevance),
        (1.0, lambda page: -page.score),
    ):
        for page in sorted(pages, key=rank):
            if len(chosen) >= share * limit:
                break
            chosen[page.url] = page
    return list(chosen.values())


def build_training_pool(
    crawled: FetchedPages,
    classifier: TopicClassifier | None,
    progress: PoolProgress | None = None,
    limit: int = MAX_POOL_PAGES,
    parsing_limits: ParsingLimits | None = None,
) -> TrainingPool:
    """Parse, classify and compare the candidates; unreadable ones are left out.

    So are those that exceed ``parsing_limits``, as in a crawl. Without a ``classifier`` the
    crawl's own relevance is used. ``progress(done, total)`` is called after each page.
    """
    chosen = select_candidates(crawled, limit)
    kept: list[CrawledPage] = []
    relevance: list[float] = []

    def read(parser: BoundedParser) -> Iterable[Page]:
        for done, page in enumerate(chosen, start=1):
            parsed = parser.parse_crawled_page(crawled, page)
            if progress:
                progress(done, len(chosen))
            if parsed is not None:
                kept.append(page)
                relevance.append(
                    classifier.classify(parsed).relevance if classifier else page.relevance
                )
                yield parsed

    with BoundedParser(parsing_limits) as parser:
        vectors = page_vectors(read(parser))
    return TrainingPool(
        tuple(kept),
        PagePool(tuple(page.host for page in kept), vectors),
        np.array(relevance, dtype=float),
        classifier.threshold if classifier else _observed_threshold(kept),
    )


class BoundedParser:
    """Parses crawled pages as a crawl does: those that may take long in a parser process.

    The process starts with the first such page. Usable as a context manager.
    """

    def __init__(self, limits: ParsingLimits | None = None) -> None:
        self._process = ParserProcess(_parse, limits or ParsingLimits())

    def parse_crawled_page(self, crawled: FetchedPages, page: CrawledPage) -> Page | None:
        """Return the page as a crawl parses it; None when it cannot be read within the limits."""
        fetched = crawled.response(page)
        if fetched is None:
            return None
        is_long = needs_process(document_format(fetched)) or needs_parser_process(fetched)
        parsed = self._bounded(fetched) if is_long else _parse_page(fetched)
        return parsed if isinstance(parsed, Page) else None

    def __enter__(self) -> BoundedParser:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()

    def _bounded(self, fetched: Fetched) -> Page | None:
        try:
            return _page.decode(self._process.ask(_packed(fetched)))
        except (HandlerError, ParsingStoppedError):
            return None


_packed = msgspec.msgpack.Encoder().encode
_fetched = msgspec.msgpack.Decoder(Fetched).decode
_page: msgspec.msgpack.Decoder[Page | None] = msgspec.msgpack.Decoder(Page | None)


def _parse_page(fetched: Fetched) -> Page | Failed:
    html = to_html(fetched)
    return html if isinstance(html, Failed) else parse_page(html)


def _parse(message: bytes) -> bytes:
    """Parse a fetched page; runs in the parser process."""
    parsed = _parse_page(_fetched(message))
    return _packed(None if isinstance(parsed, Failed) else parsed)


def _observed_threshold(pages: Iterable[CrawledPage]) -> float:
    """The lowest relevance that the crawl called on topic; 0.5 without any."""
    on = [page.relevance for page in pages if page.on_topic]
    return min(on, default=0.5)


MAX_RESULTS = 20


def search_pages(
    crawled: FetchedPages, pool: TrainingPool, query: str, left_out: Collection[str]
) -> tuple[CrawledPage, ...]:
    """At most :data:`MAX_RESULTS` pages that have all words of ``query``, the best matches first.

    Matches in the title rank before those in the URL, and these before those in the text; then by
    relevance. In titles and URLs the last word may be a prefix. Texts are searched in ``pool``
    only, by the words counted there, so nothing is read or parsed. Pages ``left_out`` (URLs) and
    those of the evaluation set are not found: searched pages are no random sample.
    """
    query_words = tokenize(query)
    if not query_words:
        return ()
    has_words = rows_with_words(pool.pool.vectors, query_words)
    in_text = {page.url for page, has in zip(pool.pages, has_words, strict=True) if has}
    ranked: list[tuple[int, float, str, CrawledPage]] = []
    for page in crawled.pages.values():
        if page.url in left_out or role_of(page.url) != "training":
            continue
        rank = _rank(page, query_words, in_text)
        if rank is not None:
            ranked.append((rank, -page.relevance, page.url, page))
    return tuple(page for *_, page in sorted(ranked)[:MAX_RESULTS])


def _rank(page: CrawledPage, query_words: list[str], in_text: Collection[str]) -> int | None:
    if _has_words(tokenize(page.title), query_words):
        return 0
    if _has_words(tokenize(url_words(page.url)), query_words):
        return 1
    return 2 if page.url in in_text else None


def _has_words(tokens: list[str], query_words: list[str]) -> bool:
    *whole, last = query_words
    return set(tokens).issuperset(whole) and any(token.startswith(last) for token in tokens)
