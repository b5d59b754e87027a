"""A page read: all that follows from an answer's bytes, the topic and the judge alone.

Nothing here knows the crawl or changes anything, so that a page may be read anywhere and
ahead of its turn: in the crawl's own process, or in a worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from focused.crawl.stages import Clock, Stage, stands_still
from focused.learning.protocols import TopicJudge
from focused.topic import Scope
from focused.web.fingerprint import content_fingerprint
from focused.web.page import Failed, Fetched, Judgement, Page
from focused.web.parameters import DroppedParameters
from focused.web.shingles import Hashes, shingles

MAX_SHINGLES = 1_152
"""A sketch's, and as many as a host's boilerplate may take out of it."""

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
        page = self._parse(fetched)
        if isinstance(page, Failed):
            return page
        page = self._dropped.in_page(page)
        parsed = clock()
        judgement = self._judge.judge(page)
        judged = clock()
        content = content_fingerprint(page)
        hashes = shingles(page.text)[:MAX_SHINGLES] if self._near else None
        seconds = {
            Stage.PARSING: parsed - began,
            Stage.JUDGING: judged - parsed,
            Stage.LIKENESS: clock() - judged,
        }
        return Reading(page, judgement, self._judge_name, content, hashes, seconds)
