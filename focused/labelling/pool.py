"""The pages that may be asked about, made ready: parsed, judged, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from focused.labelling.choice import Pool, Values
from focused.labelling.crawled import CrawledPage, CrawledPages
from focused.labelling.likeness import page_vectors
from focused.labels.roles import judges_lot, role_of
from focused.learning.protocols import TopicJudge
from focused.web.page import Page
from focused.web.parse import parse_page

MAX_POOL = 2_000
"""Pages that active choice looks into; each costs some milliseconds."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TeachingPool:
    """Pages that may teach, n of them, with the relevance that the judge gives them now."""

    pages: tuple[CrawledPage, ...]
    pool: Pool
    relevance: Values
    threshold: float


def judges_queue(crawled: CrawledPages) -> list[CrawledPage]:
    """The pages drawn for the judge, in the order in which they are to be shown."""
    drawn = (page for page in crawled.pages.values() if role_of(page.url) == "judge")
    return sorted(drawn, key=lambda page: judges_lot(page.url))


def candidates(crawled: CrawledPages, limit: int = MAX_POOL) -> list[CrawledPage]:
    """At most ``limit`` pages that may teach, by what the crawl made of them.

    When there are more: half from around the threshold, a quarter of the most relevant,
    a quarter whose score promised most.
    """
    pages = [page for page in crawled.pages.values() if role_of(page.url) == "teach"]
    if len(pages) <= limit:
        return pages
    threshold = _crawls_threshold(pages)
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


def teaching_pool(
    crawled: CrawledPages,
    judge: TopicJudge | None,
    progress: Progress | None = None,
    limit: int = MAX_POOL,
) -> TeachingPool:
    """Parse, judge and compare the candidates; those that cannot be read are left out.

    Without a ``judge`` the crawl's own verdicts stand. ``progress(done, total)`` is called
    after each page.
    """
    chosen = candidates(crawled, limit)
    kept: list[CrawledPage] = []
    relevance: list[float] = []

    def read() -> Iterable[Page]:
        for done, page in enumerate(chosen, start=1):
            parsed = parsed_page(crawled, page)
            if progress:
                progress(done, len(chosen))
            if parsed is not None:
                kept.append(page)
                relevance.append(judge.judge(parsed).relevance if judge else page.relevance)
                yield parsed

    vectors = page_vectors(read())
    return TeachingPool(
        tuple(kept),
        Pool(tuple(page.host for page in kept), vectors),
        np.array(relevance, dtype=float),
        judge.threshold if judge else _crawls_threshold(kept),
    )


def parsed_page(crawled: CrawledPages, page: CrawledPage) -> Page | None:
    """The page as a crawl parses it; None when it cannot be read."""
    fetched = crawled.response(page)
    parsed = None if fetched is None else parse_page(fetched)
    return parsed if isinstance(parsed, Page) else None


def _crawls_threshold(pages: Iterable[CrawledPage]) -> float:
    """Where the crawl's verdicts turned; a half when all were the same."""
    on = [page.relevance for page in pages if page.on_topic]
    return min(on, default=0.5)
