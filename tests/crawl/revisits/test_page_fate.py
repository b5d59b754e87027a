"""What the response to a revisit means for its page."""

import pytest

from focused.archive.page_history import VisitResult
from focused.crawl.revisits.change_detection import ContentChange
from focused.crawl.revisits.page_fate import GRACE_S, PRESENT, Absence, PageFate, decide_fate
from focused.web.page import Failed, FailureKind, Fetched, NotModified

URL = "https://example.org/a/page.html"
DAY = 86_400.0
CHANGED = ContentChange(VisitResult.CHANGED, 0.3)
FOUND = Fetched(URL, 200)
NOT_FOUND = Failed(URL, FailureKind.GONE, 404)


@pytest.mark.parametrize("is_soft_404", [False, True])
def test_404_is_final_after_three_visits_over_a_week(is_soft_404):
    outcome = FOUND if is_soft_404 else NOT_FOUND
    absence, kinds = PRESENT, []
    for at in (0.0, DAY, 2 * DAY, GRACE_S):
        found = decide_fate(outcome, CHANGED, absence, at, is_soft_404=is_soft_404)
        absence = found.absence
        kinds.append(found.kind)
    final = VisitResult.SOFT_404 if is_soft_404 else VisitResult.GONE
    assert kinds == [VisitResult.MISSING] * 3 + [final]
    assert found.change == 1.0


@pytest.mark.parametrize("outcome", [FOUND, NotModified(URL)])
def test_a_page_that_was_missing_reappears(outcome):
    found = decide_fate(outcome, CHANGED, Absence(2, 0.0), DAY)
    assert (found.kind, found.absence) == (VisitResult.REAPPEARED, PRESENT)


@pytest.mark.parametrize("kind", [each for each in FailureKind if each is not FailureKind.GONE])
def test_other_failures_are_no_evidence(kind):
    absence = Absence(2, 5.0)
    found = decide_fate(Failed(URL, kind, 503), None, absence, DAY)
    assert found == PageFate(VisitResult.FAILED, absence=absence)
