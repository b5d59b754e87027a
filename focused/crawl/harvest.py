"""What a fetched page is worth, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from focused.crawl.copies import Looked
from focused.crawl.steps import ScoredLink
from focused.learning.documents import HashedPage
from focused.web.page import Judgement, Page
from focused.web.warc import Capture


@dataclass(frozen=True, slots=True)
class Harvest:
    """A page parsed, judged and looked up; ``left_out`` tells that it asks not to be indexed.

    ``content`` is None for a ``feed``; ``depth`` is that of the page's links. ``record`` has the
    WARC records of the response, where there is a WARC.
    """

    page: Page
    judgement: Judgement
    feed: bool
    content: Looked | None
    depth: int
    left_out: bool
    scored: Mapping[str, ScoredLink]
    words: HashedPage | None
    record: Capture | None

    @property
    def duplicate_of(self) -> str | None:
        """The URL of the earlier page that this one repeats."""
        return self.content.of if self.content is not None else None

    @property
    def same_as(self) -> str | None:
        """The URL of the first page, a copy or not, that this one repeats word for word."""
        return self.content.same_as if self.content is not None else None

    @property
    def counts(self) -> bool:
        """Whether the page is on topic, and is harvest."""
        apart = self.feed or self.left_out or self.duplicate_of is not None
        return self.judgement.on_topic and not apart

    @property
    def kept_record(self) -> Capture | None:
        """What goes into the WARC."""
        return None if self.left_out else self.record

    @property
    def outcome(self) -> str:
        """What the archive calls it."""
        if self.feed:
            return "feed"
        return "noindex" if self.left_out else "fetched"
