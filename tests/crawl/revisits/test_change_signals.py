"""Sitemaps and feeds as change signals."""

import pytest

from focused.crawl.revisits.announcements import FEED, LISTING, SITEMAP, read_change_signals
from focused.web.page import Fetched

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z
DAY = 86_400.0
SITEMAP_URL = "https://example.org/sitemap.xml"


def signals(body: str, clock_offset_s: float = 0.0, kind: str = SITEMAP) -> dict[str, float | None]:
    headers = {"content-type": "application/xml"}
    fetched = Fetched(SITEMAP_URL, 200, headers, body.encode(), received_at=NOW)
    found_kind, found = read_change_signals(fetched, lambda _: clock_offset_s)
    assert found_kind == kind
    return {url.removeprefix("https://example.org/"): at for url, at in found.items()}


def sitemap(*entries: tuple[str, str]) -> str:
    urls = "".join(f"<url><loc>https://example.org/{u}</loc>{rest}</url>" for u, rest in entries)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'


def test_a_sitemap_gives_the_times_of_its_urls():
    found = signals(
        sitemap(
            ("a", "<lastmod>2023-11-13T22:13:20+00:00</lastmod>"),
            ("b", "<lastmod>2023-11-14</lastmod>"),
            ("c", "<changefreq>never</changefreq>"),
        )
    )
    assert found["a"] == NOW - DAY
    assert found["b"] == 1_699_920_000.0
    assert found["c"] is None


def test_an_index_gives_the_times_of_its_sitemaps():
    body = (
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap>'
        "<loc>https://example.org/one.xml</loc><lastmod>2023-11-14</lastmod>"
        "</sitemap></sitemapindex>"
    )
    assert signals(body)["one.xml"] == 1_699_920_000.0


@pytest.mark.parametrize(
    "body",
    [
        "<rss version='2.0'><channel><pubDate>Tue, 14 Nov 2023 22:13:20 GMT</pubDate><item>"
        "<link>https://example.org/a</link><pubDate>Mon, 13 Nov 2023 22:13:20 GMT</pubDate>"
        "</item></channel></rss>",
        "<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><item>"
        "<link>https://example.org/a</link><dc:date>2023-11-13T22:13:20Z</dc:date>"
        "</item></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'><updated>2023-11-14T22:13:20Z</updated><entry>"
        "<link href='https://example.org/a'/><published>2023-11-01T00:00:00Z</published>"
        "<updated>2023-11-13T22:13:20Z</updated></entry></feed>",
    ],
)
def test_a_feed_gives_the_latest_time_of_each_item(body):
    assert signals(body, kind=FEED) == {"a": NOW - DAY}


def test_the_latest_time_counts_for_a_url_with_several():
    body = sitemap(("a", "<lastmod>2023-11-14</lastmod>"), ("a", "<lastmod>2023-11-12</lastmod>"))
    assert signals(body)["a"] == 1_699_920_000.0


def test_times_more_than_a_day_in_the_future_are_ignored():
    body = sitemap(("a", "<lastmod>2023-11-15</lastmod>"), ("b", "<lastmod>2024-01-01</lastmod>"))
    found = signals(body)
    assert found["a"] == 1_700_006_400.0
    assert found["b"] is None


@pytest.mark.parametrize("clock_offset_s", [31 * DAY, 31 * DAY + 0.7])
def test_times_of_a_wrong_clock_are_those_that_the_host_states(clock_offset_s):
    body = sitemap(("a", "<lastmod>2023-12-14T22:13:20Z</lastmod>"))
    assert signals(body, clock_offset_s)["a"] == NOW + 30 * DAY


def test_a_directory_listing_gives_the_times_of_its_files():
    listing = (
        "<html><title>Index of /pub/</title><pre><a href='../'>../</a>"
        '<a href="a.pdf">a.pdf</a>  13-Nov-2023 22:13  1\n<a href="d/">d/</a>  13-Nov-2023 22:13'
    )
    url, headers = "https://example.org/pub/", {"content-type": "text/html"}
    fetched = Fetched(url, 200, headers, listing.encode(), received_at=NOW)
    found = read_change_signals(fetched, lambda _: 0.0)
    assert found == (LISTING, {f"{url}a.pdf": NOW - DAY - 20})


def test_a_page_is_no_signal():
    assert signals("<html><body><a href='/a'>a</a></body></html>", kind=LISTING) == {}


@pytest.mark.parametrize("path", ["page.html", "pub/"])
def test_the_clock_of_a_host_is_not_looked_up_for_pages_that_are_no_lists(path):
    page = Fetched(
        f"https://example.org/{path}",
        200,
        {"content-type": "text/html"},
        b"<html><title>A page</title><a href='a.pdf'>a.pdf</a> 13-Nov-2023 22:13",
        received_at=NOW,
    )
    looked_up: list[str] = []

    def clock_offset_of(url: str) -> float:
        looked_up.append(url)
        return 0.0

    assert read_change_signals(page, clock_offset_of) == (LISTING, {})
    assert looked_up == []
