"""Which judge was in office, and since when: durable, for the report and for what waits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from focused.frontier.tables import Tables
from focused.learning.judge_in_office import JudgeInOffice
from focused.learning.protocols import FollowsJudge, TopicJudge

_META = "judges"


class Term(msgspec.Struct, frozen=True):
    """``judge`` names who judged from the page with number ``seq`` on; ``since`` is a time."""

    judge: str
    since: float
    seq: int


class Tenure:
    """The terms of a crawl's judges; the caller commits."""

    def __init__(self, office: JudgeInOffice, follower: FollowsJudge, tables: Tables) -> None:
        self._office = office
        self._follower = follower
        self._tables = tables

    @property
    def terms(self) -> Sequence[Term]:
        """All terms, the first judge's first."""
        return msgspec.convert(self._tables.get_meta(_META) or [], tuple[Term, ...])

    def begin(self, seq: int, now: float) -> None:
        """The judge in office judges on; it may be another than when the crawl was stopped."""
        terms = self.terms
        if not terms or terms[-1].judge != self._office.name:
            self._note(seq, now)
        elif len(terms) > 1:
            self._follower.judge_changed(terms[-1].since)

    def appoint(self, judge: TopicJudge, name: str, seq: int, now: float) -> None:
        """``judge`` judges from the page with number ``seq`` on."""
        self._office.appoint(judge, name)
        self._note(seq, now)

    def _note(self, seq: int, now: float) -> None:
        terms = [*self.terms, Term(self._office.name, now, seq)]
        self._tables.put_meta(_META, terms)
        if len(terms) > 1:
            self._follower.judge_changed(now)
