"""Soft 404s: responses that mean that a page is missing though their status does not say so."""

import re

import pytest

from focused.crawl.revisits.change_detection import (
    HostBoilerplate,
    detect_change,
    page_blocks,
    read_version,
    sign_version,
)
from focused.crawl.revisits.page_fate import (
    MissingPage,
    MissingPages,
    looks_like_soft_404,
    missing_page_url,
    redirects_to_missing_page,
)
from focused.durations import DAY_S
from focused.web.page import Failed, FailureKind, Redirected

URL = "https://example.org/a/page.html"


def test_a_path_that_cannot_exist_is_in_the_same_directory():
    made = missing_page_url(URL, 0.5)
    assert re.fullmatch(r"https://example\.org/a/focused[0-9a-f]{16}\.html", made)
    assert missing_page_url("https://example.org", 0.1) != missing_page_url(
        "https://example.org", 0.2
    )


ARTICLE = [f"Whales of kind {word} swim far across the cold oceans" for word in "abcdefghij"]
ERROR = ["The page you asked for is not here", "Try our search, or go to the start page"]


def is_soft(
    title: str, blocks: list[str], *, before: list[str] = ARTICLE, missing: list[str] | None = None
) -> bool:
    host = HostBoilerplate()
    old = read_version(b"old-----", "Whales", before)
    host.learn(page_blocks(URL, old, None))
    now = read_version(b"new-----", title, blocks)
    known = None
    if missing is not None:
        text = read_version(b"missing-", "Example", missing)
        known = MissingPage("Example", sign_version(text, host))
    change = detect_change(sign_version(old, host), now, host)
    return looks_like_soft_404(title, now, change, "Whales", known, host)


def test_a_page_like_the_hosts_missing_page_is_a_soft_404():
    assert is_soft("Example", ERROR, missing=ERROR)


@pytest.mark.parametrize(
    "title", ["404", "Page not found | Example", "Seite nicht gefunden", "Page introuvable"]
)
def test_a_short_page_with_a_title_of_an_error_is_a_soft_404(title):
    assert is_soft(title, ERROR)


def test_an_article_about_errors_is_a_page():
    assert not is_soft("HTTP 404 explained", [f"{line} and servers" for line in ARTICLE * 4])


def test_a_rewritten_page_is_a_page():
    assert not is_soft("Whales", ERROR)


def test_a_host_with_one_page_for_all_paths_has_no_soft_404():
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
def test_a_redirect_to_the_home_page_is_a_soft_404(url, target, is_missing):
    assert redirects_to_missing_page(Redirected(url, 302, target), None) is is_missing


def test_a_redirect_to_where_missing_paths_lead_is_a_soft_404():
    missing = MissingPage(target="https://example.org/error")
    assert redirects_to_missing_page(Redirected(URL, 302, "https://example.org/error"), missing)
    assert not redirects_to_missing_page(Redirected(URL, 302, "https://example.org/"), missing)


@pytest.mark.parametrize(
    ("kind", "days"),
    [(FailureKind.GONE, 90), (FailureKind.CLIENT_ERROR, 90), (FailureKind.TIMEOUT, 1)],
)
def test_a_host_is_asked_again_for_a_missing_page_after_its_answer_is_old(tables, kind, days):
    url = missing_page_url(URL, 0.5)
    pages = MissingPages(tables)
    pages.record(Failed(url, kind), 0.0, "", None)
    assert pages.url_to_request(URL, days * DAY_S - 1.0) is None
    assert pages.url_to_request(URL, days * DAY_S + 1.0) is not None
