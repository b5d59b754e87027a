"""Looks for words in the pages of a crawl: how a person finds pages on topic to label."""

from __future__ import annotations

from collections.abc import Collection

from focused.labelling.crawled import CrawledPage, CrawledPages
from focused.labelling.likeness import rows_with_words
from focused.labelling.pool import TeachingPool
from focused.labels.roles import role_of
from focused.learning.tokens import url_words, words

MOST_FOUND = 20


def search_pages(
    crawled: CrawledPages, pool: TeachingPool, query: str, left_out: Collection[str]
) -> tuple[CrawledPage, ...]:
    """At most :data:`MOST_FOUND` pages that have all words of ``query``, the best matches first.

    A match in the title ranks before one in the address, and that before one in the text; within
    these the more relevant page comes first. In titles and addresses the last word may be the
    beginning of one. Nothing is read from disk, and nothing parsed: texts are those of the pages
    in ``pool``, by the words that were counted when the session was opened. Pages ``left_out``
    (URLs) and pages of the judge are not found: what somebody looks for is no random sample.
    """
    wanted = words(query)
    if not wanted:
        return ()
    has_words = rows_with_words(pool.pool.vectors, wanted)
    in_text = {page.url for page, has in zip(pool.pages, has_words, strict=True) if has}
    ranked: list[tuple[int, float, str, CrawledPage]] = []
    for page in crawled.pages.values():
        if page.url in left_out or role_of(page.url) != "teach":
            continue
        rank = _rank(page, wanted, in_text)
        if rank is not None:
            ranked.append((rank, -page.relevance, page.url, page))
    return tuple(page for *_, page in sorted(ranked)[:MOST_FOUND])


def _rank(page: CrawledPage, wanted: list[str], in_text: Collection[str]) -> int | None:
    if _has(words(page.title), wanted):
        return 0
    if _has(words(url_words(page.url)), wanted):
        return 1
    return 2 if page.url in in_text else None


def _has(tokens: list[str], wanted: list[str]) -> bool:
    *whole, last = wanted
    return set(tokens).issuperset(whole) and any(token.startswith(last) for token in tokens)
