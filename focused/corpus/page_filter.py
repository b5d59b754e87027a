"""Which pages of a crawl an export writes, and how."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from focused.corpus.records import TRAIN, VALIDATION


class PageFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions that all hold for a page; times are in seconds since the epoch, UTC dates ISO.

    ``min_relevance`` None keeps the pages on topic, by the model's threshold. ``hosts`` are hosts,
    or domains with all hosts below; empty keeps all. ``languages`` are ISO 639-1 codes.
    ``published_*`` and ``languages`` leave out pages of which they are unknown. ``robots`` are
    directives, of which a page may have none. ``good_quality`` keeps pages that fail no rule of
    :mod:`focused.corpus.page_records`.
    """

    min_relevance: float | None = None
    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    fetched_since: float | None = None
    fetched_until: float | None = None
    published_since: str | None = None
    published_until: str | None = None
    duplicates: bool = False
    samples: bool = True
    robots: tuple[str, ...] = ()
    min_words: int = 1
    good_quality: bool = False

    def keeps_page(
        self,
        *,
        host: str,
        relevance: float | None,
        on_topic: bool,
        language: str,
        fetched_at: float,
        is_duplicate: bool,
        is_sample: bool,
    ) -> bool:
        """Whether a page passes the conditions on its row.

        ``on_topic`` of a duplicate is that of its original.
        """
        if self.min_relevance is None:
            if not on_topic:
                return False
        elif relevance is None or relevance < self.min_relevance:
            return False
        return (
            (self.duplicates or not is_duplicate)
            and (self.samples or not is_sample)
            and (not self.languages or language in self.languages)
            and (self.fetched_since is None or fetched_at >= self.fetched_since)
            and (self.fetched_until is None or fetched_at < self.fetched_until)
            and (not self.hosts or is_below(host, self.hosts))
            and not is_below(host, self.not_hosts)
        )

    def keeps_document(
        self, *, published: str, robots: Sequence[str], words: int, failed_rules: Sequence[str]
    ) -> bool:
        """Whether a page passes the conditions on its content."""
        if (self.published_since or self.published_until) and not published:
            return False
        return (
            words >= self.min_words
            and (self.published_since is None or published >= self.published_since)
            and (self.published_until is None or published < self.published_until)
            and set(self.robots).isdisjoint(robots)
            and not (self.good_quality and failed_rules)
        )


def is_below(host: str, domains: Sequence[str]) -> bool:
    """Whether a host (with or without port) is one of ``domains`` or below one."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return any(host == each or name == each or name.endswith(f".{each}") for each in domains)


class ExportOptions(msgspec.Struct, frozen=True):
    """What an export writes.

    ``chunk_chars`` None writes pages whole. ``validation`` in [0, 1) is the share of registered
    domains that go to the validation split, by a hash seeded with ``seed``. ``graph`` is the folder
    of the crawl's link graph, which gives the columns ``authority`` and ``hub``. ``guess_dates``
    searches the texts of pages for days of publication.
    """

    form: str
    pages: PageFilter = PageFilter()
    chunk_chars: int | None = None
    validation: float = 0.0
    seed: int = 0
    compression: str = "none"
    graph: str | None = None
    guess_dates: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return (TRAIN, VALIDATION) if self.validation else (TRAIN,)
