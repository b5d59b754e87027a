"""Which pages may need JavaScript, by what they show without."""

import pytest

from focused.rendering.decision import JavascriptNeed, javascript_need, read_signs
from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched

LIKELY, POSSIBLE, UNLIKELY, NONE = (
    JavascriptNeed.LIKELY,
    JavascriptNeed.POSSIBLE,
    JavascriptNeed.UNLIKELY,
    JavascriptNeed.NONE,
)
TEXT = "<p>" + "Chromatic polynomials count colourings. " * 60 + "</p>"
SHORT = "<p>" + "Chromatic polynomials count colourings. " * 15 + "</p>"


def _need(html: str, headers: dict[str, str] | None = None) -> JavascriptNeed:
    headers = {"content-type": "text/html"} if headers is None else headers
    fetched = Fetched("https://a.example/", 200, headers, html.encode())
    return javascript_need(fetched, parse_page(fetched))


@pytest.mark.parametrize(
    "html",
    [
        '<div id="root"></div><script src="/a.js"></script>',
        '<title>App</title><div id="app"></div><script type="module" src="/a.js"></script>',
        '<div id="__next"><p>Loading</p></div><script src="/a.js"></script>',
        "<app-root></app-root><script src=/main.js></script>",
        "<noscript>Please enable JavaScript.</noscript><script src=/a.js></script>",
        "<noscript>Bitte JavaScript einschalten</noscript><p>Hi</p><script>x()</script>",
        '<body ng-app="x"><script src=/a.js></script>',
        "<p>Loading</p><script>go()</script>",
        "<meta name=fragment content=!><p>Loading</p><a href=/b>b</a><script>go()</script>",
        "<script>document.write('all')</script>",
    ],
)
def test_pages_that_show_nothing_and_have_scripts_are_likely(html):
    assert _need(html) is LIKELY


def test_an_empty_root_beside_a_menu_is_possible():
    menu = '<nav><a href="/a">A</a> ' + "Menu " * 40 + "</nav>"
    assert _need(f"{menu}<div id=root></div><script src=/a.js></script>") is POSSIBLE


def test_few_words_with_links_are_possible():
    assert _need('<p>Hello</p><a href="/a">A</a><script>x()</script>') is POSSIBLE


@pytest.mark.parametrize("body", [TEXT, SHORT])
def test_text_with_scripts_is_unlikely(body):
    assert _need(f"{body}<script>track()</script>") is UNLIKELY


def test_text_in_a_root_element_is_unlikely():
    assert _need(f"<div id=root>{SHORT}</div><script src=/a.js></script>") is UNLIKELY


@pytest.mark.parametrize(
    "html",
    [
        TEXT,
        "<p>Hello</p>",
        '<p>Hello</p><script type="application/ld+json">{}</script>',
        '<p>Hello</p><script type="text/template"><b>x</b></script>',
        "<p>the word &lt;script&gt;</p>",
    ],
)
def test_pages_without_executable_scripts_need_none(html):
    assert _need(html) is NONE


def test_text_without_spaces_counts_by_its_length():
    assert _need("<p>" + "鲸鱼是海洋中的大型动物" * 60 + "</p><script>track()</script>") is UNLIKELY


def test_a_tracking_pixel_for_browsers_without_javascript_asks_for_nothing():
    pixel = '<noscript><img src="https://t.example/p.gif"></noscript><script>t()</script>'
    assert _need(SHORT + pixel) is UNLIKELY


def test_other_types_need_none():
    assert _need("a <script> tag", {"content-type": "text/plain"}) is NONE


def test_a_page_that_failed_for_another_reason_needs_none():
    fetched = Fetched("https://a.example/", 200, {}, b"<script>x()</script>")
    failed = Failed(fetched.url, FailureKind.WRONG_TYPE)
    assert javascript_need(fetched, failed) is NONE


def test_signs_count_scripts_and_modules():
    signs = read_signs(b"<script></script><script type=module></script>", 3, 1)
    assert (signs.scripts, signs.modules, signs.words, signs.links) == (2, 1, 3, 1)


def test_any_bytes_are_read():
    assert read_signs(bytes(range(256)) * 50, 0, 0).need is NONE
