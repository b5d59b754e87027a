"""What an export of a corpus writes."""

from __future__ import annotations

import msgspec

from focused.corpus.page_filter import PageFilter
from focused.corpus.records import TRAIN, VALIDATION


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
