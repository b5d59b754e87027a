"""Sitemaps and feeds as pages of links."""

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.feeds import is_feed, parse_feed
from focused.web.page import Failed, FailureKind, Fetched, Page
from focused.web.parse import parse_page

URL = "https://example.org/feed.xml"

URLSET = """<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:xhtml="http://www.w3.org/1999/xhtml">
<url><loc> https://example.org/a?x=1&amp;y=2 </loc><lastmod>2024-01-01</lastmod>
  <xhtml:link rel="alternate" hreflang="de" href="https://example.org/de/a"/></url>
<url><loc>https://example.org/b#part</loc></url>
<url><loc>https://example.org/b</loc></url>
<url><lastmod>2024-01-01</lastmod></url>
<url><loc>mailto:x@y.z</loc></url>
</urlset>"""

INDEX = """<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>https://example.org/one.xml.gz</loc></sitemap>
<sitemap><loc>https://example.org/two.xml</loc></sitemap></sitemapindex>"""

RSS = """<rss version="2.0"><channel><title>News &amp; views</title><link>https://example.org/</link>
<description>All of it</description>
<item><title>First</title><link>https://example.org/1</link>
  <description>&lt;p&gt;What &lt;b&gt;happened&lt;/b&gt; first&lt;/p&gt;</description></item>
<item><title>Second</title><guid>https://example.org/2</guid></item>
<item><title>Third</title><guid isPermaLink="false">tag:3</guid></item>
</channel></rss>"""

ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Atoms</title>
<link rel="self" href="/feed.xml"/>
<entry><title type="html">One &amp;amp; only</title><link rel="edit" href="/edit"/>
  <link href="/entries/1"/><summary>A summary</summary></entry>
<entry><title>Two</title><link rel="alternate" href="https://example.org/entries/2"/></entry>
</feed>"""

RDF = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/"><channel><title>Old</title></channel>
<item><title>One</title><link>https://example.org/1</link></item></rdf:RDF>"""


def response(body: str | bytes, content_type: str = "application/xml") -> Fetched:
    raw = body.encode() if isinstance(body, str) else body
    return Fetched(URL, 200, {"content-type": content_type}, raw)


def feed(body: str | bytes, content_type: str = "application/xml") -> Page:
    page = parse_feed(response(body, content_type))
    assert page is not None
    return page


def urls(page: Page) -> list[str]:
    return [link.url for link in page.links]


def test_a_sitemap_is_a_page_of_links_each_once_without_text() -> None:
    page = feed(URLSET)
    assert urls(page) == ["https://example.org/a?x=1&y=2", "https://example.org/b"]
    assert page.text == ""


def test_a_sitemap_index_leads_to_sitemaps() -> None:
    assert urls(feed(INDEX)) == ["https://example.org/one.xml.gz", "https://example.org/two.xml"]


def test_an_rss_feed_has_titles_as_anchors_and_summaries_as_context() -> None:
    page = feed(RSS, "application/rss+xml")
    assert [(link.url, link.anchor, link.context) for link in page.links] == [
        ("https://example.org/1", "First", "What happened first"),
        ("https://example.org/2", "Second", ""),
    ]
    assert (page.title, page.description) == ("News & views", "All of it")
    assert page.text == "News & views All of it First What happened first Second"


def test_an_atom_feed_leads_to_its_entries_alternates() -> None:
    page = feed(ATOM)
    assert [(link.url, link.anchor, link.context) for link in page.links] == [
        ("https://example.org/entries/1", "One & only", "A summary"),
        ("https://example.org/entries/2", "Two", ""),
    ]
    assert page.title == "Atoms"


def test_rss_1_is_read_too() -> None:
    assert urls(feed(RDF)) == ["https://example.org/1"]


def test_a_sitemap_can_be_plain_text() -> None:
    page = feed("https://example.org/a\r\n\r\nhttps://example.org/b\n", "text/plain")
    assert urls(page) == ["https://example.org/a", "https://example.org/b"]


@pytest.mark.parametrize("content_type", ["application/gzip", "application/xml", ""])
def test_a_gzipped_sitemap_is_unpacked(content_type: str) -> None:
    assert len(feed(gzip.compress(URLSET.encode()), content_type).links) == 2


def test_gzip_that_breaks_off_gives_what_came() -> None:
    many = "".join(f"<url><loc>https://example.org/{i}</loc></url>" for i in range(5_000))
    packed = gzip.compress(f"<urlset>{many}</urlset>".encode())
    page = feed(packed[: len(packed) // 2])
    assert 0 < len(page.links) < 5_000


def test_xml_that_breaks_off_gives_the_entries_before() -> None:
    assert "https://example.org/1" in urls(feed(RSS[: RSS.index("<item><title>Second") + 10]))


@pytest.mark.parametrize("rest", ["<las", "<lastmod>2", "", "</sitemap"])
def test_an_entry_that_breaks_off_after_its_url_counts(rest: str) -> None:
    start = "<sitemapindex><sitemap><loc>https://example.org/{}</loc>"
    assert urls(feed(start.format("a") + rest)) == ["https://example.org/a"]


def test_an_entry_that_breaks_off_within_its_url_does_not_count() -> None:
    assert urls(feed("<urlset><url><loc>https://example.org/half")) == []


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "application/x-gzip", "text/csv", "binary/octet"]
)
def test_a_list_of_urls_is_a_sitemap_unless_it_is_said_to_be_a_page(content_type: str) -> None:
    listed = "https://example.org/a\nhttps://example.org/b"
    assert urls(feed(listed, content_type)) == listed.split("\n")


def test_a_feed_in_another_charset_is_read() -> None:
    xml = RSS.replace("First", "Première")
    body = ('<?xml version="1.0" encoding="iso-8859-1"?>' + xml).encode("latin-1")
    assert feed(body).links[0].anchor == "Première"


def test_entities_of_ones_own_and_files_are_not_read() -> None:
    xml = (
        '<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b SYSTEM "file:///etc/hostname">]>'
        "<rss><channel><item><title>x&a;&b;y</title><link>https://example.org/1</link></item>"
        "</channel></rss>"
    )
    assert feed(xml).links[0].anchor == "xy"


def test_entities_that_grow_are_not_expanded() -> None:
    grow = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))
    xml = f'<!DOCTYPE rss [<!ENTITY e0 "aaaaaaaaaa">{grow}]><rss><title>&e12;</title></rss>'
    assert len(feed(xml).text) < 100


def test_links_are_bounded_and_the_rest_is_counted() -> None:
    many = "".join(f"<url><loc>https://example.org/{i}</loc></url>" for i in range(100))
    page = parse_feed(response(f"<urlset>{many}</urlset>"), max_links=10)
    assert page is not None
    assert (len(page.links), page.links_cut) == (10, 90)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<!DOCTYPE html><html><body>rss</body></html>", "text/html"),
        ("<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>", "text/html"),
        ("<feedback>x</feedback>", "application/xml"),
        ("https://example.org/a", "text/html"),
        ("see https://example.org/a", "text/plain"),
        ("", "application/xml"),
        (b"\x1f\x8bnot gzip", "application/gzip"),
    ],
)
def test_what_is_no_feed_is_none(body: str | bytes, content_type: str) -> None:
    assert parse_feed(response(body, content_type)) is None
    assert not is_feed(response(body, content_type))


@pytest.mark.parametrize("body", [URLSET, INDEX, RSS, ATOM, RDF])
@pytest.mark.parametrize("content_type", ["text/html", "application/xml", ""])
def test_a_feed_is_recognised_whatever_its_type(body: str, content_type: str) -> None:
    assert is_feed(response(body, content_type))
    page = parse_page(response(body, content_type))
    assert isinstance(page, Page)
    assert page.links == feed(body, content_type).links


def test_a_gzip_file_that_is_no_sitemap_is_of_the_wrong_type() -> None:
    failure = parse_page(response(gzip.compress(b"anything"), "application/gzip"))
    assert isinstance(failure, Failed)
    assert failure.kind is FailureKind.WRONG_TYPE


pieces = st.lists(
    st.sampled_from(
        [RSS[:90], URLSET[:200], "<item>", "</item>", "<link>", "<entry>", "&x;", "<!["]
    ),
    max_size=12,
).map("".join)


@given(st.one_of(st.binary(max_size=200), pieces.map(str.encode)))
def test_no_feed_makes_the_parser_raise(body: bytes) -> None:
    page = parse_feed(response(body))
    assert page is None or page.url == URL
    assert parse_feed(response(gzip.compress(body), "")) is None or is_feed(response(body, ""))


# Feeds made to hurt


@pytest.mark.parametrize(
    "xml",
    [
        "<urlset>" + "<a/>" * 2_000_000,
        "<urlset><url>" + "<a/>" * 2_000_000,
        "<rss>" + "<title>x</title>" * 1_000_000,
        "<rss><item><title>" + "x" * 20_000_000,
        "<rss>" + "<a>" * 3_000_000,
    ],
    ids=["elements", "elements of an entry", "titles", "one text", "depth"],
)
def test_a_bomb_of_a_feed_is_read_in_little_memory(xml: str) -> None:
    packed = gzip.compress(xml.encode(), 1)
    length = len(xml)
    del xml
    tracemalloc.start()
    feed(packed)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 6 * length + 10_000_000


def test_elements_beyond_a_million_are_not_read() -> None:
    late = "<url><loc>http://a.com/late</loc></url>"
    early = "<url><loc>http://a.com/early</loc></url>"
    assert urls(feed(f"<urlset>{early}{'<a/>' * 1_100_000}{late}")) == ["http://a.com/early"]


@pytest.mark.parametrize("reference", ["&#xD800;", "&#xdfff;", "&#55296;", "&#x000D801;"])
def test_references_to_surrogates_are_replacement_characters(reference: str) -> None:
    page = feed(f"<rss><item><title>a{reference}b</title><link>/x</link></item></rss>")
    assert page.links[0].anchor == "a\N{REPLACEMENT CHARACTER}b"


def test_entities_are_not_declared_in_any_charset() -> None:
    xml = '<!DOCTYPE rss [<!ENTITY a "aaaa">]><rss><item><title>x&a;y</title><link>/1</link></item>'
    assert feed(xml.encode("utf-16")).links[0].anchor == "xy"


def test_the_elements_of_a_summary_are_parted_and_are_no_links() -> None:
    page = feed(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/1'/><content type='xhtml'>"
        "<div><p>one</p><p>two</p><link href='/2'/></div></content></entry></feed>"
    )
    assert [(link.url[-2:], link.context) for link in page.links] == [("/1", "one two")]
