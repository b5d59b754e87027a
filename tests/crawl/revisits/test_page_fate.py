"""What the response to a revisit means for its page."""

from __future__ import annotations

import pytest

from focused.crawl.revisits.change_detection import ChangeDegree, ContentChange
from focused.crawl.revisits.page_fate import (
    GRACE_S,
    PRESENT,
    Absence,
    PageFate,
    VisitResult,
    decide_fate,
)
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected

URL = "https://example.org/a/page.html"
DAY = 86_400.0
CHANGED = ContentChange(ChangeDegree.CHANGED, 0.3)
FOUND = Fetched(URL, 200)
NOT_FOUND = Failed(URL, FailureKind.GONE, 404)


def fate(outcome: Outcome, change: ContentChange | None = None) -> PageFate:
    return decide_fate(outcome, change, PRESENT, 0.0)


@pytest.mark.parametrize("kind", list(ChangeDegree))
def test_a_page_is_identical_cosmetic_or_changed(kind: ChangeDegree) -> None:
    found = fate(FOUND, ContentChange(kind, 0.3))
    assert (found.kind, found.change, found.is_final) == (kind.value, 0.3, False)


def test_304_is_not_modified() -> None:
    assert fate(NotModified(URL)) == PageFate(VisitResult.NOT_MODIFIED)


@pytest.mark.parametrize(
    ("status", "is_final"), [(301, True), (308, True), (302, False), (303, False), (307, False)]
)
def test_only_a_permanent_redirect_ends_the_old_url(status: int, is_final: bool) -> None:
    target = "https://example.org/b"
    found = fate(Redirected(URL, status, target))
    kind = VisitResult.MOVED if is_final else VisitResult.REDIRECTED
    assert (found.kind, found.is_final, found.target) == (kind, is_final, target)


def test_a_page_that_is_redirected_for_the_time_being_is_not_missing() -> None:
    found = decide_fate(
        Redirected(URL, 307, "https://example.org/b"), None, Absence(5, 0.0), GRACE_S
    )
    assert (found.kind, found.is_final, found.absence) == (VisitResult.REDIRECTED, False, PRESENT)


def test_410_is_final_at_once() -> None:
    found = fate(Failed(URL, FailureKind.GONE, 410))
    assert (found.kind, found.is_final, found.change) == (VisitResult.GONE, True, 1.0)


@pytest.mark.parametrize("is_soft_404", [False, True])
def test_404_is_final_after_three_visits_over_a_week(is_soft_404: bool) -> None:
    outcome = FOUND if is_soft_404 else NOT_FOUND
    absence, kinds = PRESENT, []
    for at in (0.0, DAY, 2 * DAY, GRACE_S):
        found = decide_fate(outcome, CHANGED, absence, at, is_soft_404=is_soft_404)
        assert found.is_final == (found.kind is not VisitResult.MISSING)
        absence = found.absence
        kinds.append(found.kind)
    final = VisitResult.SOFT_404 if is_soft_404 else VisitResult.GONE
    assert kinds == [VisitResult.MISSING] * 3 + [final]


@pytest.mark.parametrize("outcome", [FOUND, NotModified(URL)])
def test_a_page_that_was_missing_reappears(outcome: Outcome) -> None:
    found = decide_fate(outcome, CHANGED, Absence(2, 0.0), DAY)
    assert (found.kind, found.absence) == (VisitResult.REAPPEARED, PRESENT)


@pytest.mark.parametrize(
    "kind",
    [each for each in FailureKind if each is not FailureKind.GONE],
)
def test_other_failures_are_no_evidence(kind: FailureKind) -> None:
    absence = Absence(2, 5.0)
    found = decide_fate(Failed(URL, kind, 503), None, absence, DAY)
    assert found == PageFate(VisitResult.FAILED, absence=absence)
