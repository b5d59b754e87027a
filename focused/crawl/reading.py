"""A page read: all that follows from an answer's bytes, the topic and the judge alone.

Nothing here knows the crawl or changes anything, so that a page may be read anywhere and
ahead of its turn: in the crawl's own process, or in a worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from focused.crawl.stages import Clock, Stage, stands_still
from focused.learning.documents import HashedPage, hashed
from focused.learning.protocols import JudgesWords, TopicJudge
from focused.learning.told_by_links import ToldByLinks, told_by
from focused.topic import Scope
from focused.web.fingerprint import content_fingerprint
from focused.web.page import Failed, Fetched, Judgement, Page
from focused.web.parameters import DroppedParameters
from focused.web.shingles import Hashes, shingles
from focused.web.warc import Capture, CaptureWriter

MAX_SHINGLES = 1_152
"""A sketch's, and as many as a host's boilerplate may take out of it."""

UNJUDGED = "\0unjudged"
"""Stands for the judge's name in a reading that nobody has judged yet."""

Parse = Callable[[Fetched], Page | Failed]


class _NoJudge:
    """Replaces a judge that cannot be sent to another process."""

    threshold = 1.0

    def judge(self, page: Page) -> Judgement:
        return Judgement(0.0, on_topic=False, known=False)

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.zeros(len(texts))


@dataclass(frozen=True, slots=True)
class Reading:
    """A page, its verdict, and what tells it from others.

    ``judge`` names who judged. ``content`` is its fingerprint; ``shingles`` has shape (n,), the
    smallest :data:`MAX_SHINGLES` of its text, ascending, or None where near-duplicates are not
    looked for. ``words`` are the page's, hashed, where the judge takes them so; ``told`` is what
    its links say by themselves, where the scorer makes use of it. ``record`` has the WARC records
    of the response, where there is a WARC. ``seconds`` tells by stage what reading took.
    """

    page: Page
    judgement: Judgement
    judge: str
    content: bytes
    shingles: Hashes | None
    words: HashedPage | None = None
    told: ToldByLinks | None = None
    record: Capture | None = None
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
        *,
        takes_told: bool = False,
        capture_writer: CaptureWriter | None = None,
    ) -> None:
        """``judge_name`` tells the judge from others of the same crawl.

        ``takes_told``: the links' texts are to be read, too. ``capture_writer`` makes the WARC
        records; None: there is no WARC.
        """
        self._clock = clock
        self._scope = scope
        self.judge = judge
        self._judge_words = judge.judge_words if isinstance(judge, JudgesWords) else None
        self._judge_name = judge_name
        self._parse = parse
        self.capture_writer = capture_writer
        self._near = scope.near_duplicates
        self._dropped = DroppedParameters(scope.drop_parameters, scope.keep_parameters)
        self._steps: Sequence[tuple[Stage, Callable[[_Unread], object]]] = (
            (Stage.PARSING, self._find_page),
            (Stage.JUDGING, self._judge_page),
            (Stage.LIKENESS, self._tell_apart),
            *([(Stage.SCORING, self._ask_links)] if takes_told else ()),
            *([(Stage.ARCHIVING, self._record)] if capture_writer else ()),
        )

    def without_judge(self) -> Reader:
        """A reader that leaves judging to whoever takes its readings, marked :data:`UNJUDGED`."""
        return Reader(
            self._scope,
            _NoJudge(),
            UNJUDGED,
            self._parse,
            self._clock,
            capture_writer=self.capture_writer,
        )

    def read(self, fetched: Fetched) -> Reading | Failed:
        """Parse and judge an answer; Failed where it holds no page."""
        unread = _Unread(fetched)
        for stage, step in self._steps:
            began = self._clock()
            step(unread)
            unread.seconds[stage] = self._clock() - began
            if unread.failed is not None:
                return unread.failed
        return self._reading(unread)

    def read_all(self, answers: Sequence[Fetched]) -> Sequence[Reading | Failed | None]:
        """Read several, each stage for all: it is twice as fast while its code and data are near.

        None where our own code breaks over a page; :meth:`read` tells why.
        """
        every = [_Unread(fetched) for fetched in answers]
        for stage, step in self._steps:
            began = self._clock()
            for unread in every:
                unread.take(step)
            took = (self._clock() - began) / max(1, len(every))
            for unread in every:
                unread.seconds[stage] = took
        return [
            None if unread.is_broken else unread.failed or self._reading(unread) for unread in every
        ]

    def _find_page(self, unread: _Unread) -> None:
        page = self._parse(unread.fetched)
        if isinstance(page, Failed):
            unread.failed = page
        else:
            unread.page = self._dropped.in_page(page)

    def _judge_page(self, unread: _Unread) -> None:
        if self._judge_words is None:
            unread.judgement = self.judge.judge(unread.page)
        else:
            unread.words = hashed(unread.page)
            unread.judgement = self._judge_words(unread.words)

    def _tell_apart(self, unread: _Unread) -> None:
        unread.content = content_fingerprint(unread.page)
        unread.shingles = shingles(unread.page.text)[:MAX_SHINGLES] if self._near else None

    def _ask_links(self, unread: _Unread) -> None:
        unread.told = told_by(self.judge, unread.page.links)

    def _record(self, unread: _Unread) -> None:
        if self.capture_writer is not None:
            unread.record = self.capture_writer.capture(unread.fetched)

    def _reading(self, unread: _Unread) -> Reading:
        return Reading(
            unread.page,
            unread.judgement,
            self._judge_name,
            unread.content,
            unread.shingles,
            unread.words,
            unread.told,
            unread.record,
            unread.seconds,
        )


class _Unread:
    """An answer on its way to be a :class:`Reading`, or ``failed``."""

    page: Page
    judgement: Judgement
    content: bytes
    shingles: Hashes | None = None
    words: HashedPage | None = None
    told: ToldByLinks | None = None
    record: Capture | None = None
    failed: Failed | None = None
    is_broken = False

    def __init__(self, fetched: Fetched) -> None:
        self.fetched = fetched
        self.seconds: dict[Stage, float] = {}

    def take(self, step: Callable[[_Unread], object]) -> None:
        """Go one step on, if it went well so far."""
        if self.failed is None and not self.is_broken:
            try:
                step(self)
            except Exception:
                self.is_broken = True
