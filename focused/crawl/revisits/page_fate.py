"""What the response to a revisit means for its page: changed, moved, gone, back, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from focused.archive.page_history import VisitResult
from focused.crawl.revisits.change_detection import ContentChange
from focused.durations import WEEK_S
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected

GRACE_VISITS = 3
"""A page is gone for good after as many visits in a row that did not find it."""

GRACE_S = WEEK_S
"""The least time between the first and the last of these visits."""


class Absence(msgspec.Struct, frozen=True, array_like=True):
    """The visits in a row that did not find a page; the first was at ``since``."""

    visits: int = 0
    since: float = 0.0

    def next(self, at: float) -> Absence:
        """Return the absence after one more visit at ``at``."""
        return Absence(self.visits + 1, self.since if self.visits else at)

    @property
    def is_over(self) -> bool:
        """Whether the page was found by the last visit that told."""
        return self.visits == 0


PRESENT = Absence()


@dataclass(frozen=True, slots=True)
class PageFate:
    """The meaning of one revisit.

    ``is_final``: the page is gone. ``change`` is the share of content that changed, in [0, 1]; 1
    for a page that is gone. ``target`` is the URL that a redirect leads to. ``absence`` is to be
    stored.
    """

    kind: VisitResult
    is_final: bool = False
    change: float = 0.0
    target: str = ""
    absence: Absence = PRESENT


_PERMANENT = frozenset({301, 308})
_GONE = 410


def decide_fate(
    outcome: Outcome,
    change: ContentChange | None,
    absence: Absence,
    at: float,
    *,
    is_soft_404: bool = False,
) -> PageFate:
    """Return what the outcome of a visit at ``at`` means.

    A visit that does not find the page is ``MISSING`` until the absence is final. A temporary
    redirect (302, 303, 307) ends no URL, however long it lasts: clients continue to use the
    original one (RFC 9110, sections 15.4.3 and 15.4.8).

    ``change`` compares a fetched page with the stored version; None for responses without a page.
    ``is_soft_404`` is the result of one of the functions in
    :mod:`focused.crawl.revisits.soft_404`. 410 and permanent redirects (301, 308) are final at once
    (RFC 9110, sections 15.5.11, 15.4.2 and 15.4.9), 404 and soft 404s after :data:`GRACE_VISITS`
    visits and :data:`GRACE_S`.
    """
    if isinstance(outcome, Failed) and outcome.kind is FailureKind.GONE:
        return _missing(VisitResult.GONE, absence.next(at), at, at_once=outcome.status == _GONE)
    if is_soft_404 and isinstance(outcome, Fetched | Redirected):
        return _missing(VisitResult.SOFT_404, absence.next(at), at, at_once=False)
    if isinstance(outcome, Redirected):
        if outcome.status not in _PERMANENT:
            return PageFate(VisitResult.REDIRECTED, target=outcome.target)
        fate = _missing(VisitResult.MOVED, absence.next(at), at, at_once=True)
        return replace(fate, target=outcome.target)
    if isinstance(outcome, NotModified):
        is_back = not absence.is_over
        return PageFate(VisitResult.REAPPEARED if is_back else VisitResult.NOT_MODIFIED)
    if isinstance(outcome, Failed) or change is None:
        return PageFate(VisitResult.FAILED, absence=absence)
    kind = VisitResult(change.kind.value) if absence.is_over else VisitResult.REAPPEARED
    return PageFate(kind, change=change.size)


def _missing(kind: VisitResult, absence: Absence, at: float, *, at_once: bool) -> PageFate:
    waited = absence.visits >= GRACE_VISITS and at - absence.since >= GRACE_S
    is_final = at_once or waited
    result = kind if is_final else VisitResult.MISSING
    return PageFate(result, is_final=is_final, change=1.0, absence=absence)
