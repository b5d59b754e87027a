"""Sitemaps and feeds as pages of links."""

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.decoding import FEED_ROOT, decode, feed_kind, is_feed
from focused.web.feed_entries import FeedEntry, parse_feed_date, read_entries
from focused.web.feeds import parse_feed, parse_feed_entries
from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched, Page

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


def test_a_sitemap_is_a_page_of_links_each_once_without_text():
    page = feed(URLSET)
    assert urls(page) == ["https://example.org/a?x=1&y=2", "https://example.org/b"]
    assert page.text == ""


def test_a_sitemap_index_leads_to_sitemaps():
    assert urls(feed(INDEX)) == ["https://example.org/one.xml.gz", "https://example.org/two.xml"]


def test_an_rss_feed_has_titles_as_anchors_and_summaries_as_context():
    page = feed(RSS, "application/rss+xml")
    assert [(link.url, link.anchor, link.context) for link in page.links] == [
        ("https://example.org/1", "First", "What happened first"),
        ("https://example.org/2", "Second", ""),
    ]
    assert (page.title, page.description) == ("News & views", "All of it")
    assert page.text == "News & views All of it First What happened first Second"


def test_an_atom_feed_leads_to_its_entries_alternates():
    page = feed(ATOM)
    assert [(link.url, link.anchor, link.context) for link in page.links] == [
        ("https://example.org/entries/1", "One & only", "A summary"),
        ("https://example.org/entries/2", "Two", ""),
    ]
    assert page.title == "Atoms"


def test_rss_1_is_read_too():
    assert urls(feed(RDF)) == ["https://example.org/1"]


def test_a_sitemap_can_be_plain_text():
    page = feed("https://example.org/a\r\n\r\nhttps://example.org/b\n", "text/plain")
    assert urls(page) == ["https://example.org/a", "https://example.org/b"]


@pytest.mark.parametrize("content_type", ["application/gzip", "application/xml", ""])
def test_a_gzipped_sitemap_is_unpacked(content_type):
    assert len(feed(gzip.compress(URLSET.encode()), content_type).links) == 2


def test_gzip_that_breaks_off_gives_what_came():
    many = "".join(f"<url><loc>https://example.org/{i}</loc></url>" for i in range(5_000))
    packed = gzip.compress(f"<urlset>{many}</urlset>".encode())
    page = feed(packed[: len(packed) // 2])
    assert 0 < len(page.links) < 5_000


def test_xml_that_breaks_off_gives_the_entries_before():
    assert "https://example.org/1" in urls(feed(RSS[: RSS.index("<item><title>Second") + 10]))


@pytest.mark.parametrize("rest", ["<las", "<lastmod>2", "", "</sitemap"])
def test_an_entry_that_breaks_off_after_its_url_counts(rest):
    start = "<sitemapindex><sitemap><loc>https://example.org/{}</loc>"
    assert urls(feed(start.format("a") + rest)) == ["https://example.org/a"]


def test_an_entry_that_breaks_off_within_its_url_does_not_count():
    assert urls(feed("<urlset><url><loc>https://example.org/half")) == []


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "application/x-gzip", "text/csv", "binary/octet"]
)
def test_a_list_of_urls_is_a_sitemap_unless_it_is_said_to_be_a_page(content_type):
    listed = "https://example.org/a\nhttps://example.org/b"
    assert urls(feed(listed, content_type)) == listed.split("\n")


def test_a_feed_in_another_charset_is_read():
    xml = RSS.replace("First", "Première")
    body = ('<?xml version="1.0" encoding="iso-8859-1"?>' + xml).encode("latin-1")
    assert feed(body).links[0].anchor == "Première"


def test_entities_of_its_own_and_files_are_not_read():
    xml = (
        '<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b SYSTEM "file:///etc/hostname">]>'
        "<rss><channel><item><title>x&a;&b;y</title><link>https://example.org/1</link></item>"
        "</channel></rss>"
    )
    assert feed(xml).links[0].anchor == "xy"


def test_entities_that_grow_are_not_expanded():
    grow = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))
    xml = f'<!DOCTYPE rss [<!ENTITY e0 "aaaaaaaaaa">{grow}]><rss><title>&e12;</title></rss>'
    assert len(feed(xml).text) < 100


def test_links_are_bounded_and_the_rest_is_counted():
    many = "".join(f"<url><loc>https://example.org/{i}</loc></url>" for i in range(100))
    page = parse_feed(response(f"<urlset>{many}</urlset>"), max_links=10)
    assert page is not None
    assert (len(page.links), page.links_over_limit) == (10, 90)


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
def test_what_is_not_a_feed_is_none(body, content_type):
    assert parse_feed(response(body, content_type)) is None
    assert not is_feed(response(body, content_type))


@pytest.mark.parametrize("body", [URLSET, INDEX, RSS, ATOM, RDF])
@pytest.mark.parametrize("content_type", ["text/html", "application/xml", ""])
def test_a_feed_is_recognised_whatever_its_type(body, content_type):
    assert is_feed(response(body, content_type))
    page = parse_page(response(body, content_type))
    assert isinstance(page, Page)
    assert page.links == feed(body, content_type).links


def test_a_gzip_file_that_is_not_a_sitemap_is_of_the_wrong_type():
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
def test_no_feed_makes_the_parser_raise(body):
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
def test_a_bomb_of_a_feed_is_read_in_little_memory(xml):
    packed = gzip.compress(xml.encode(), 1)
    length = len(xml)
    del xml
    tracemalloc.start()
    feed(packed)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 6 * length + 10_000_000


def test_elements_beyond_a_million_are_not_read():
    late = "<url><loc>http://a.com/late</loc></url>"
    early = "<url><loc>http://a.com/early</loc></url>"
    assert urls(feed(f"<urlset>{early}{'<a/>' * 1_100_000}{late}")) == ["http://a.com/early"]


@pytest.mark.parametrize("reference", ["&#xD800;", "&#xdfff;", "&#55296;", "&#x000D801;"])
def test_references_to_surrogates_are_replacement_characters(reference):
    page = feed(f"<rss><item><title>a{reference}b</title><link>/x</link></item></rss>")
    assert page.links[0].anchor == "a\N{REPLACEMENT CHARACTER}b"


def test_entities_are_not_declared_in_any_charset():
    xml = '<!DOCTYPE rss [<!ENTITY a "aaaa">]><rss><item><title>x&a;y</title><link>/1</link></item>'
    assert feed(xml.encode("utf-16")).links[0].anchor == "xy"


def test_the_elements_of_a_summary_are_parted_and_are_no_links():
    page = feed(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/1'/><content type='xhtml'>"
        "<div><p>one</p><p>two</p><link href='/2'/></div></content></entry></feed>"
    )
    assert [(link.url[-2:], link.context) for link in page.links] == [("/1", "one two")]


# What belongs to an entry


ATOM_NS = "xmlns='http://www.w3.org/2005/Atom'"


def rss(item: str, attributes: str = "") -> str:
    return f"<rss version='2.0' {attributes}><channel><title>News</title>{item}</channel></rss>"


def atom(entry: str, attributes: str = "") -> str:
    return f"<feed {ATOM_NS} {attributes}><title>News</title>{entry}</feed>"


def sitemap(url: str) -> str:
    return (
        "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'"
        " xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'"
        " xmlns:video='http://www.google.com/schemas/sitemap-video/1.1'"
        " xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'"
        f" xmlns:xhtml='http://www.w3.org/1999/xhtml'>{url}</urlset>"
    )


OWN = "<title>Own</title><link>http://a.com/own</link>"
OTHER = "<title>Other</title><link>http://a.com/other</link><url>http://a.com/x.png</url>"
MODULES = (
    "xmlns:media='http://search.yahoo.com/mrss/' xmlns:dc='http://purl.org/dc/elements/1.1/'"
    " xmlns:atom='http://www.w3.org/2005/Atom'"
    " xmlns:content='http://purl.org/rss/1.0/modules/content/'"
)


@pytest.mark.parametrize(
    "xml",
    [
        rss(f"<item><image>{OTHER}</image>{OWN}</item>"),
        rss(f"<image>{OTHER}</image><textInput>{OTHER}</textInput><item>{OWN}</item>"),
        rss(f"<item><source url='http://a.com/other'>Other</source>{OWN}</item>"),
        rss(f"<item><enclosure url='http://a.com/x.mp3' type='audio/mpeg'/>{OWN}</item>"),
        rss(
            f"<item><media:title>Other</media:title><dc:title>Other</dc:title>{OWN}</item>", MODULES
        ),
        rss(f"<item><media:group><title>Other</title></media:group>{OWN}</item>", MODULES),
        rss(f"<item><atom:link rel='self' href='http://a.com/self'/>{OWN}</item>", MODULES),
        rss(f"<item><guid>http://a.com/guid</guid>{OWN}</item>"),
        rss(f"<item><comments>http://a.com/other</comments>{OWN}</item>"),
        rss(f"<item>{OWN}</item>", "xmlns='http://backend.userland.com/rss2'"),
        f"<rss version='0.91'><channel><item>{OWN}</item></channel></rss>",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'"
        " xmlns='http://my.netscape.com/rdf/simple/0.9/'>"
        f"<channel>{OTHER}</channel><image>{OTHER}</image><item>{OWN}</item></rdf:RDF>",
    ],
)
def test_an_rss_item_is_what_its_own_elements_say(xml):
    assert [(link.url, link.anchor) for link in feed(xml).links] == [("http://a.com/own", "Own")]


@pytest.mark.parametrize(
    "entry",
    [
        "<source><title>Other</title><link href='http://a.com/other'/></source>{}",
        "<author><name>A</name><uri>http://a.com/other</uri></author>{}",
        "<link rel='self' href='http://a.com/other'/>{}",
        "<link rel='enclosure' href='http://a.com/other'/>{}",
        "<link rel='alternate' type='application/json' href='http://a.com/other'/>{}",
        "<content src='http://a.com/other' type='text/html'/>{}",
        "<x:title xmlns:x='http://a.com/x'>Other</x:title>{}",
    ],
)
def test_an_atom_entry_is_what_its_own_elements_say(entry):
    own = "<title>Own</title><link rel='alternate' type='text/html' href='http://a.com/own'/>"
    (link,) = feed(atom(f"<entry>{entry.format(own)}</entry>")).links
    assert (link.url, link.anchor) == ("http://a.com/own", "Own")


@pytest.mark.parametrize(
    "entry",
    [
        "<link type='application/pdf' href='http://a.com/own'/>",
        "<content src='http://a.com/own' type='text/html'/>",
        "<link rel=' Alternate' href='http://a.com/own'/>",
        "<link rel='http://www.iana.org/assignments/relation/alternate' href='http://a.com/own'/>",
    ],
)
def test_an_atom_entry_without_a_plain_link_leads_where_its_content_is(entry):
    assert urls(feed(atom(f"<entry>{entry}</entry>"))) == ["http://a.com/own"]


def test_atom_0_3_is_read():
    page = feed(
        "<feed version='0.3' xmlns='http://purl.org/atom/ns#'>"
        "<title>T</title><tagline>Of it</tagline>"
        "<entry><title mode='escaped' type='text/html'>&lt;i&gt;One&lt;/i&gt; &amp;amp; two</title>"
        "<link rel='alternate' href='http://a.com/1'/></entry></feed>"
    )
    assert [(link.url, link.anchor) for link in page.links] == [("http://a.com/1", "One & two")]
    assert (page.title, page.description) == ("T", "Of it")


@pytest.mark.parametrize(
    "before",
    [
        "<image:image><image:loc>http://a.com/x.png</image:loc></image:image>",
        "<image:image><loc>http://a.com/x.png</loc></image:image>",
        "<xhtml:link rel='alternate' hreflang='de' href='http://a.com/de'/>",
        "<video:video><video:content_loc>http://a.com/x.mp4</video:content_loc></video:video>",
        "<news:news><news:title>Other</news:title></news:news>",
        "<lastmod>2024-01-01</lastmod>",
    ],
)
def test_what_extends_a_sitemap_is_not_its_url(before):
    page = feed(sitemap(f"<url>{before}<loc>http://a.com/own</loc></url>"))
    assert urls(page) == ["http://a.com/own"]


def test_an_item_that_is_not_closed_ends_where_the_next_begins():
    page = feed(rss("<item><link>http://a.com/1</link><item><link>http://a.com/2</link></item>"))
    assert urls(page) == ["http://a.com/1", "http://a.com/2"]


@pytest.mark.parametrize("guid", ["42", "tag:a.com:42", "a.com/42"])
def test_a_guid_that_is_not_an_url_is_not_a_link(guid):
    assert urls(feed(rss(f"<item><title>x</title><guid>{guid}</guid></item>"))) == []


# Relative URLs


def test_links_are_relative_to_the_nearest_xml_base():
    page = feed(
        atom(
            "<entry><link href='1'/></entry>"
            "<entry xml:base='sub/'><link href='2'/></entry>"
            "<entry xml:base='sub/'><link xml:base='/top/' href='3'/></entry>"
            "<entry xml:base='mailto:x'><link href='4'/></entry>",
            "xml:base='http://b.com/x/'",
        )
    )
    assert urls(page) == [
        "http://b.com/x/1",
        "http://b.com/x/sub/2",
        "http://b.com/top/3",
        "http://b.com/x/4",
    ]


def test_an_xml_base_of_rss_and_of_sitemaps_counts_too():
    page = feed(rss("<item xml:base='y/'><link>z</link></item>", "xml:base='http://b.com/x/'"))
    assert urls(page) == ["http://b.com/x/y/z"]
    assert urls(feed(rss("<item><link>z</link></item>"))) == ["https://example.org/z"]


# Titles and summaries


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("if x &lt; 5 and y &gt; 3", "if x < 5 and y > 3"),
        ("if x &amp;lt; 5 and y &amp;gt; 3", "if x < 5 and y > 3"),
        ("<![CDATA[if x < 5 and y > 3]]>", "if x < 5 and y > 3"),
        ("&lt;3 &lt;- &lt;= &lt;&lt;", "<3 <- <= <<"),
        ("<![CDATA[<p>One<p>two]]>", "One two"),
        ("<![CDATA[<b>J</b>ohn<br/>Doe]]>", "John Doe"),
        ("<![CDATA[<a title='x > y' href=\"z\">One</a>]]>", "One"),
        ("<![CDATA[<p>One<script>if (a < b) bad()</script > two]]>", "One two"),
        ("<![CDATA[One<STYLE type=x>p { color: red }</STYLE>]]>", "One"),
        ("<![CDATA[One<script>never closed]]>", "One"),
        ("<![CDATA[One<!-- <p>no --> two<!doctype x>]]>", "One two"),
        ("<![CDATA[<scripts>One</scripts>]]>", "One"),
        ("One &amp;amp; only", "One & only"),
        ("<p>One</p><script>bad()</script><style>p{}</style><p>t<b>w</b>o</p>", "One two"),
    ],
)
def test_an_rss_text_is_what_a_reader_of_its_html_sees(escaped, text):
    (link,) = feed(
        rss(
            f"<item><link>/1</link><title>{escaped}</title><description>{escaped}</description></item>"
        )
    ).links
    assert (link.anchor, link.context) == (text, text)


def test_encoded_content_is_a_summary_by_its_namespace():
    item = "<item><link>/1</link>{}<content:encoded>&lt;p&gt;All of it</content:encoded></item>"
    assert feed(rss(item.format(""), MODULES)).links[0].context == "All of it"
    described = item.format("<description>Short</description>")
    assert feed(rss(described, MODULES)).links[0].context == "Short"


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("<title>if a&lt;b and c&gt;d</title>", "if a<b and c>d"),
        (
            "<title type='text'>The &lt;b&gt; element &amp;amp; others</title>",
            "The <b> element &amp; others",
        ),
        (
            "<title type='html'>The &lt;b&gt;bold&lt;/b&gt; &amp;amp; others</title>",
            "The bold & others",
        ),
        ("<title type='html'>The &amp;lt;b&gt; element</title>", "The <b> element"),
        (
            "<title type='xhtml'><x:div xmlns:x='http://www.w3.org/1999/xhtml'>A<x:b>b</x:b>"
            " &lt;b&gt;</x:div></title>",
            "Ab <b>",
        ),
        ("<title type='TEXT/HTML; charset=utf-8'>&lt;b&gt;bold</title>", "bold"),
    ],
)
def test_an_atom_title_is_text_html_or_xhtml_as_it_says(element, text):
    (link,) = feed(atom(f"<entry><link href='/1'/>{element}</entry>")).links
    assert link.anchor == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<content type='html'>&lt;p>One&lt;script>no()&lt;/script>&lt;/p></content>", "One"),
        ("<content type='xhtml'><p>One</p><script>no()</script><p>two</p></content>", "One two"),
        ("<content type='image/png'>aGVsbG8=</content>", ""),
        ("<content type='application/xml'><p>One</p><x>two</x></content>", "One two"),
        ("<content type='text/plain'>&lt;b&gt;</content>", "<b>"),
        ("<summary>Short</summary><content>Long</content>", "Short"),
    ],
)
def test_an_atom_summary_is_read_by_its_type(content, text):
    (link,) = feed(atom(f"<entry><link href='/1'/>{content}</entry>")).links
    assert link.context == text


def test_the_subtitle_of_an_atom_feed_is_its_description():
    subtitle = "<subtitle type='html'>All &lt;i&gt;of&lt;/i&gt; it</subtitle>"
    page = feed(atom(f"{subtitle}<entry><link href='/1'/></entry>"))
    assert (page.title, page.description) == ("News", "All of it")


@pytest.mark.parametrize(
    "piece",
    [
        "&lt;a ",
        "&lt;a '",
        '&lt;script&gt;"',
        "&lt;!--",
        "&lt;script&gt;&lt;/scrip",
        "<![CDATA[<]]>",
    ],
)
def test_markup_made_to_hurt_is_read_like_any_other(piece):
    item = f"<item><link>/1</link><description>{piece * 500}</description></item>"
    page = parse_feed(response(rss(item * 20)))
    assert page is not None


def test_what_a_feeds_header_asks_of_robots_is_heard():
    headers = {
        "content-type": "text/xml",
        "x-robots-tag": "otherbot: nofollow, focusedbot: noindex",
    }
    page = parse_page(Fetched(URL, 200, headers, RSS.encode()), robot="FocusedBot")
    assert isinstance(page, Page)
    assert (page.noindex, page.nofollow) == (True, False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        (" 2023-11-14T23:13:20+01:00\n", 1_700_000_000.0),
        ("2023-11-14T22:13:20", 1_700_000_000.0),
        ("2023-11-14", 1_699_920_000.0),
        ("2023-11", 1_698_796_800.0),
        ("2023", 1_672_531_200.0),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000.0),
        ("Tue, 14 Nov 2023 14:13:20 PST", 1_700_000_000.0),
        ("14 Nov 23 22:13:20 +0000", 1_700_000_000.0),
        ("yesterday", None),
        ("2023-13-45", None),
        ("0000", None),
        ("", None),
    ],
)
def test_a_date_of_a_feed_is_read_in_any_of_its_formats(text, seconds):
    assert parse_feed_date(text) == seconds


@given(st.text())
def test_no_date_makes_the_parser_raise(text):
    parse_feed_date(text)


def test_the_entries_of_a_feed_are_those_with_a_url():
    parsed = parse_feed_entries(response(URLSET))
    assert parsed is not None
    kind, entries = parsed
    assert kind == "urlset"
    assert [each.target for each in entries] == [
        "https://example.org/a?x=1&y=2",
        "https://example.org/b",
        "https://example.org/b",
    ]
    assert [each.changed_at for each in entries] == [1_704_067_200.0, None, None]
    assert parse_feed_entries(response("<html></html>")) is None


def test_the_number_of_entries_is_limited():
    parsed = parse_feed_entries(response(URLSET), max_entries=1)
    assert parsed is not None
    assert len(parsed[1]) == 1


@pytest.mark.parametrize(
    "entry",
    [
        '<url xmlns=""><loc>https://example.org/a</loc></url>',
        '<url><loc xmlns="">https://example.org/a</loc></url>',
    ],
)
def test_elements_of_a_sitemap_without_namespace_are_read(entry):
    sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entry}</urlset>'
    assert [link.url for link in feed(sitemap).links] == ["https://example.org/a"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('<content type="">A &lt;b</content>', "A <b"),
        ('<content type="image/png">QSA8IGI=</content>', ""),
    ],
)
def test_the_type_and_mode_of_an_atom_content_are_read_as_written(content, text):
    entry = f'<entry><link href="/1"/>{content}</entry>'
    (link,) = feed(f'<feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>').links
    assert link.context == text


def test_the_xhtml_body_of_an_rss_item_is_a_summary():
    body = '<x:body xmlns:x="http://www.w3.org/1999/xhtml"><x:p>One</x:p><x:p>two</x:p></x:body>'
    item = f"<item><link>https://example.org/1</link>{body}</item>"
    (link,) = feed(f"<rss><channel>{item}</channel></rss>").links
    assert link.context == "One two"


def test_a_few_tags_without_an_end_cost_no_other_entry():
    bad = "<item><title>a <b<c d</title><link>/bad</link></item>"
    good = "<item><title>good</title><link>https://a.test/good</link></item>"
    xml = f"<rss><channel>{good}{bad}{good.replace('good', 'last')}</channel></rss>"
    urls = [entry.url for entry in read_entries(xml, FeedEntry(), "https://a.test/")]
    assert "https://a.test/good" in urls


def test_entries_before_thousands_of_tags_without_an_end_are_read():
    good = "<item><title>good</title><link>https://a.test/good</link></item>"
    xml = f"<rss><channel>{good}<item><title>{'<a' * 2_000}></title></item></channel></rss>"
    entries = list(read_entries(xml, FeedEntry(), "https://a.test/"))
    assert [entry.url for entry in entries][:1] == ["https://a.test/good"]


@given(
    st.lists(
        st.sampled_from(
            [
                "<rss>",
                "<a:feed ",
                "<RDF>",
                "<urlset",
                ">",
                "<!-- ",
                " -->",
                "<?xml ?>",
                "é",
                " rss>",
            ]
        ),
        max_size=6,
    ),
    st.sampled_from(["utf-8", "utf-16", "utf-16-be", "latin-1"]),
)
def test_what_is_sent_as_html_is_a_feed_by_its_decoded_root(pieces, charset):
    body = "".join(pieces).encode(charset)
    root = FEED_ROOT.match(decode(body, {})[0])
    fetched = Fetched("http://a.test/", 200, {"content-type": "text/html"}, body)
    assert feed_kind(fetched) == (root[2] if root else None)
