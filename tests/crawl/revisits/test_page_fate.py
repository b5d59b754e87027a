"""What the response to a revisit means for its page."""

from __future__ import annotations

import pytest

from focused.crawl.revisits.change_detection import (
    ChangeKind,
    ContentChange,
    HostBoilerplate,
    detect_change,
    read_version,
    sign_version,
)
from focused.crawl.revisits.page_fate import (
    GRACE_S,
    PRESENT,
    Absence,
    MissingPage,
    PageFate,
    VisitResult,
    decide_fate,
    looks_like_soft_404,
    missing_page_url,
    redirects_to_missing_page,
)
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected

URL = "https://example.org/a/page.html"
DAY = 86_400.0
CHANGED = ContentChange(ChangeKind.CHANGED, 0.3)
FOUND = Fetched(URL, 200)
NOT_FOUND = Failed(URL, FailureKind.GONE, 404)


def fate(outcome: Outcome, change: ContentChange | None = None) -> PageFate:
    return decide_fate(outcome, change, PRESENT, 0.0)


@pytest.mark.parametrize("kind", list(ChangeKind))
def test_a_page_is_identical_cosmetic_or_changed(kind: ChangeKind) -> None:
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
    kind = VisitResult.MOVED if is_final else VisitResult.MISSING
    assert (found.kind, found.is_final, found.target) == (kind, is_final, target)


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


def test_a_path_that_cannot_exist_is_in_the_same_directory() -> None:
    made = missing_page_url(URL, 0.5)
    assert made.startswith("https://example.org/a/focused")
    assert made.endswith(".html")
    assert missing_page_url("https://example.org", 0.1) != missing_page_url(
        "https://example.org", 0.2
    )


ARTICLE = [f"Whales of kind {word} swim far across the cold oceans" for word in "abcdefghij"]
ERROR = ["The page you asked for is not here", "Try our search, or go to the start page"]


def is_soft(
    title: str, blocks: list[str], *, before: list[str] = ARTICLE, missing: list[str] | None = None
) -> bool:
    host = HostBoilerplate()
    old = host.add_page(URL, read_version(b"old-----", "Whales", before))
    now = read_version(b"new-----", title, blocks)
    known = None
    if missing is not None:
        text = read_version(b"missing-", "Example", missing)
        known = MissingPage("Example", sign_version(text, host))
    change = detect_change(old, now, host)
    return looks_like_soft_404(title, now, change, "Whales", known, host)


def test_a_page_like_the_hosts_missing_page_is_a_soft_404() -> None:
    assert is_soft("Example", ERROR, missing=ERROR)


@pytest.mark.parametrize(
    "title", ["404", "Page not found | Example", "Seite nicht gefunden", "Page introuvable"]
)
def test_a_short_page_with_a_title_of_an_error_is_a_soft_404(title: str) -> None:
    assert is_soft(title, ERROR)


def test_an_article_about_errors_is_a_page() -> None:
    assert not is_soft("HTTP 404 explained", [f"{line} and servers" for line in ARTICLE * 4])


def test_a_rewritten_page_is_a_page() -> None:
    assert not is_soft("Whales", ERROR)


def test_a_host_with_one_page_for_all_paths_has_no_soft_404() -> None:
    """An application that builds its pages in the browser sends the same document everywhere."""
    assert not is_soft("Example", ERROR, before=ERROR, missing=ERROR)


@pytest.mark.parametrize(
    ("url", "target", "is_missing"),
    [
        ("https://example.org/a/page", "https://example.org/", True),
        ("https://example.org/a/page", "https://www.example.org", True),
        ("https://example.org/?page=3", "https://example.org/", True),
        ("https://example.org/index.html", "https://example.org/", False),
        ("https://example.org/home", "https://example.org/", False),
        ("http://example.org/", "https://www.example.org/", False),
        ("https://example.org/a/page", "https://example.org/a/page/", False),
        ("https://example.org/a/page", "https://other.example/", False),
    ],
)
def test_a_redirect_to_the_home_page_is_a_soft_404(url: str, target: str, is_missing: bool) -> None:
    assert redirects_to_missing_page(Redirected(url, 302, target), None) is is_missing


def test_a_redirect_to_where_missing_paths_lead_is_a_soft_404() -> None:
    missing = MissingPage(target="https://example.org/error")
    assert redirects_to_missing_page(Redirected(URL, 302, "https://example.org/error"), missing)
    assert not redirects_to_missing_page(Redirected(URL, 302, "https://example.org/"), missing)
