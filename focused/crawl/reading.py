"""A page read: all that follows from an answer's bytes, the topic and the judge alone.

Nothing here knows the crawl or changes anything, so that a page may be read anywhere and
ahead of its turn: in the crawl's own process, or in a worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from focused.crawl.stages import Clock, Stage, stands_still
from focused.learning.protocols import TopicJudge
from focused.topic import Scope
from focused.web.fingerprint import content_fingerprint
from focused.web.page import Failed, Fetched, Judgement, Page
from focused.web.parameters import DroppedParameters
from focused.web.shingles import Hashes, shingles

MAX_SHINGLES = 1_152
"""A sketch's, and as many as a host's boilerplate may take out of it."""

T = TypeVar("T")
Parse = Callable[[Fetched], Page | Failed]


@dataclass(frozen=True, slots=True)
class Reading:
    """A page, its verdict, and what tells it from others.

    ``judge`` names who judged. ``content`` is its fingerprint; ``shingles`` has shape (n,), the
    smallest :data:`MAX_SHINGLES` of its text, ascending, or None where near-duplicates are not
    looked for. ``seconds`` tells by stage what reading took.
    """

    page: Page
    judgement: Judgement
    judge: str
    content: bytes
    shingles: Hashes | None
    seconds: Mapping[Stage, float] = field(default_factory=dict)


class Reader:
    """Reads pages for one topic; may be sent to another process when parser and judge may."""

    def __init__(
        self,
        scope: Scope,
        judge: TopicJudge,
        judge_name: str,
        parse: Parse,
        clock: Clock = stands_still,
    ) -> None:
        """``judge_name`` tells the judge from others of the same crawl."""
        self._clock = clock
        self._judge = judge
        self._judge_name = judge_name
        self._parse = parse
        self._near = scope.near_duplicates
        self._dropped = DroppedParameters(scope.drop_parameters, scope.keep_parameters)

    def read(self, fetched: Fetched) -> Reading | Failed:
        """Parse and judge an answer; Failed where it holds no page."""
        clock = self._clock
        began = clock()
        page = self._page_in(fetched)
        if isinstance(page, Failed):
            return page
        parsed = clock()
        judgement = self._judge.judge(page)
        judged = clock()
        content, hashes = self._likeness(page)
        took = (parsed - began, judged - parsed, clock() - judged)
        return self._reading(page, judgement, content, hashes, took)

    def read_all(self, answers: Sequence[Fetched]) -> Sequence[Reading | Failed | None]:
        """Read several, each stage for all: it is twice as fast while its code and data are near.

        None where our own code breaks over a page; :meth:`read` tells why.
        """
        clock = self._clock
        began = clock()
        pages = [_unbroken(self._page_in, fetched) for fetched in answers]
        parsed = clock()
        judgements = [_unbroken(self._judge.judge, page) for page in pages]
        judged = clock()
        likenesses = [_unbroken(self._likeness, page) for page in pages]
        seconds = (parsed - began, judged - parsed, clock() - judged)
        took = tuple(each / max(1, len(answers)) for each in seconds)
        return [
            self._reading(page, judgement, *likeness, took)
            if isinstance(page, Page) and judgement is not None and likeness is not None
            else page
            if isinstance(page, Failed)
            else None
            for page, judgement, likeness in zip(pages, judgements, likenesses, strict=True)
        ]

    def _page_in(self, fetched: Fetched) -> Page | Failed:
        page = self._parse(fetched)
        return page if isinstance(page, Failed) else self._dropped.in_page(page)

    def _likeness(self, page: Page) -> tuple[bytes, Hashes | None]:
        hashes = shingles(page.text)[:MAX_SHINGLES] if self._near else None
        return content_fingerprint(page), hashes

    def _reading(
        self,
        page: Page,
        judgement: Judgement,
        content: bytes,
        hashes: Hashes | None,
        took: Sequence[float],
    ) -> Reading:
        stages = (Stage.PARSING, Stage.JUDGING, Stage.LIKENESS)
        seconds = dict(zip(stages, took, strict=True))
        return Reading(page, judgement, self._judge_name, content, hashes, seconds)


def _unbroken(step: Callable[[Any], T], of: object) -> T | None:
    """What a step makes; None of what is no page any more, or where it breaks."""
    if of is None or isinstance(of, Failed):
        return None
    try:
        return step(of)
    except Exception:
        return None
