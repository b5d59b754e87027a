"""The content of a parsed page: text, links with context, metadata."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched, Link, Page
from focused.web.urls import normalize_url
from tests.support.examples import examples

URL = "https://example.org/docs/page.html"


def parsed(html: str | bytes, headers: dict[str, str] | None = None, url: str = URL) -> Page:
    body = html.encode() if isinstance(html, str) else html
    page = parse_page(Fetched(url, 200, headers or {"content-type": "text/html"}, body))
    assert isinstance(page, Page), page
    return page


def failed(body: bytes, headers: dict[str, str] | None = None) -> Failed:
    failure = parse_page(Fetched(URL, 200, headers or {"content-type": "text/html"}, body))
    assert isinstance(failure, Failed), failure
    return failure


def only_link(html: str) -> Link:
    (link,) = parsed(html).links
    return link


# Text


def test_text_is_what_a_reader_sees_with_white_space_collapsed():
    page = parsed("<body><p>One\n  two</p><script>no()</script><style>p{}</style><p>three</p>")
    assert page.text == "One two three"


def test_inline_elements_do_not_break_words_and_blocks_do():
    assert parsed("<div><b>J</b>ohn</div><div>Doe<br>Jr.</div>").text == "John Doe Jr."


@pytest.mark.parametrize("tag", ["script", "style", "noscript", "template", "noframes", "svg"])
def test_text_that_is_not_shown_is_excluded(tag):
    assert parsed(f"<p>shown</p><{tag}>hidden <a href='/x'>x</a></{tag}>").text == "shown"


def test_a_noscript_in_the_head_does_not_end_the_head():
    page = parsed("<head><noscript><img src=x></noscript><title>T</title></head><body>x")
    assert (page.title, page.text) == ("T", "x")


def test_the_title_is_collapsed_and_is_not_a_text():
    page = parsed("<title> A \n title </title><p>text</p>")
    assert (page.title, page.text) == ("A title", "text")


def test_headings_are_h1_to_h3_in_document_order():
    page = parsed("<h2>b</h2><h1>a <i>i</i></h1><h3>c</h3><h4>d</h4><h1></h1>")
    assert page.headings == ("b", "a i", "c")


def test_the_description_is_the_meta_element_or_else_open_graph():
    both = "<meta property=og:description content=og><meta name=Description content=plain>x"
    assert parsed(both).description == "plain"
    assert parsed("<meta property=og:description content=og>x").description == "og"


# Links


def test_links_are_absolute_normalised_and_in_document_order():
    page = parsed("<a href='b.html#x'>b</a><a href='/A/../c'>c</a><a href='//Other.org'>o</a>")
    assert [link.url for link in page.links] == [
        "https://example.org/docs/b.html",
        "https://example.org/c",
        "https://other.org/",
    ]


def test_links_are_resolved_against_the_first_base():
    page = parsed("<base href='/elsewhere/'><base href='/no/'><a href='b'>b</a>")
    assert page.links[0].url == "https://example.org/elsewhere/b"


def test_a_base_that_is_not_an_url_is_ignored():
    assert only_link("<base href='mailto:x@y.z'><a href='b'>b</a>").url.endswith("/docs/b")


@pytest.mark.parametrize(
    "href", ["", "#top", "page.html", "mailto:a@b.c", "javascript:x()", "tel:1"]
)
def test_links_to_the_page_itself_or_to_no_page_are_excluded(href):
    assert parsed(f"<p>text <a href='{href}'>x</a>").links == ()


def test_a_target_appears_once_with_its_longest_anchor_at_its_first_place():
    page = parsed("<a href='b'>b</a><a href='c'>c</a><a href='b#frag'>longer text</a>")
    assert [(link.url[-1], link.anchor) for link in page.links] == [
        ("b", "longer text"),
        ("c", "c"),
    ]


def test_areas_frames_and_next_and_previous_pages_are_links():
    page = parsed(
        "<link rel=next href=n><link rel='prev x' href=p><link rel=stylesheet href=s>"
        "<map><area href=a alt='An area'></map><iframe src=i title='A frame'></iframe>"
    )
    assert [(link.url[-1], link.anchor) for link in page.links] == [
        ("n", ""),
        ("p", ""),
        ("a", "An area"),
        ("i", "A frame"),
    ]


def test_other_languages_of_a_page_are_links_and_other_formats_are_not():
    html = (
        "<link rel=alternate hreflang=de href=/de/><link rel=alternate type='text/css' href=s>"
        "<link rel='alternate stylesheet' href=t>"
    )
    assert only_link(html).url == "https://example.org/de/"


@pytest.mark.parametrize(
    ("html", "feed"),
    [
        ("<link rel=alternate type=application/rss+xml href=/a>", "https://example.org/a"),
        (
            "<link rel='Alternate' type='Application/Atom+XML; x=y' href=/a>",
            "https://example.org/a",
        ),
        (
            "<link rel=alternate type=application/rss+xml href=/a>"
            "<link rel=alternate type=application/atom+xml href=/b>",
            "https://example.org/a",
        ),
        (
            "<link rel=alternate type=application/rss+xml hreflang=de href=/a>",
            "https://example.org/a",
        ),
        ("<link rel=alternate type=application/rss+xml href=''>", None),
        ("<link rel=alternate type=application/rss+xml href=mailto:a@b>", None),
        ("<link rel=alternate type=text/html href=/a>", None),
        ("<link rel=self type=application/rss+xml href=/a>", None),
    ],
)
def test_the_first_feed_that_the_head_names_is_the_pages_feed(html, feed):
    page = parsed(html + "<p>text")
    assert (page.feed, page.links) == (feed, ())


def test_an_anchor_without_href_leads_where_its_data_href_says():
    page = parsed("<a data-href=b>one</a><a href=c data-href=d>two</a><div data-href=e>three</div>")
    assert [(link.url[-1], link.anchor) for link in page.links] == [("b", "one"), ("c", "two")]


def test_a_frameset_leads_to_its_frames():
    page = parsed("<frameset><frame src=left.html><frame src=right.html></frameset>")
    assert [link.url[-10:] for link in page.links] == ["/left.html", "right.html"]


def test_only_the_first_links_of_too_many_are_kept_and_the_rest_is_counted():
    links = [f"<a href='{i}'>x</a>" for i in range(50)]
    body = "".join([*links, links[0], links[49], "<a href='javascript:x'>x</a>"]).encode()
    page = parse_page(Fetched(URL, 200, {}, body), max_links=10)
    assert isinstance(page, Page)
    assert [link.url.rpartition("/")[2] for link in page.links] == [str(i) for i in range(10)]
    assert page.links_over_limit == 41


def test_positions_run_from_zero_to_one():
    page = parsed("<a href=1>1</a><a href=2>2</a><a href=3>3</a>")
    assert [link.position for link in page.links] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ("<a href=b> two\n words </a>", "two words"),
        ("<a href=b></a>", ""),
        ("<a href=b><img src=i alt='A picture'></a>", "A picture"),
        ("<a href=b>text <img src=i alt='and picture'></a>", "text and picture"),
        ("<a href=b title='A title'><img src=i></a>", "A title"),
        ("<a href=b aria-label='A label'></a>", "A label"),
        ("<a href=b title='A title'>text</a>", "text"),
        ("<a href=b><b>J</b>ohn</a>", "John"),
        ("<a href=b><div>One</div><div>two</div></a>", "One two"),
    ],
)
def test_an_anchor_is_the_links_text_or_else_what_it_is_called(html, anchor):
    assert only_link(html).anchor == anchor


def test_an_anchor_is_bounded():
    assert len(only_link(f"<a href=b>{'word ' * 1000}</a>").anchor) <= 300


# Context


def test_the_context_is_the_blocks_text_without_the_anchor():
    html = "<p>elsewhere</p><p>All that can be said before <a href=b>anchor</a> and after it.</p>"
    assert only_link(html).context == "All that can be said before and after it."


def test_the_context_ends_with_the_nearest_heading_above():
    html = (
        "<h1>Top</h1><h2>Databases</h2><p>A long enough text stands around <a href=b>x</a> here"
        "<h2>Below</h2>"
    )
    assert only_link(html).context == "A long enough text stands around here Databases"


def test_a_block_that_holds_little_else_gives_way_to_the_one_around_it():
    html = "<dl><dt><a href=b>sqlite</a></dt><dd>A small and fast database engine</dd></dl>"
    assert only_link(html).context == "A small and fast database engine"


def test_the_context_has_some_forty_words_and_a_heading():
    html = f"<h2>Title</h2><p>{'before ' * 500}<a href=b>x</a>{' after' * 500}"
    words = only_link(html).context.split()
    assert words == ["before"] * 20 + ["after"] * 20 + ["Title"]


# Tag path


def test_the_tag_path_runs_from_the_body_to_the_link_with_classes():
    html = "<body class=doc><div class='nav main wide'><ul><li><em><a class=ref href=b>x</a>"
    assert only_link(html).tag_path == "body.doc/div.nav.main/ul/li/em/a.ref"


def test_the_tag_path_of_a_link_after_closed_elements_knows_only_open_ones():
    html = "<div class=one><a href=a>x</a></div><div class=two><p>y</p><i><a href=b>x</a></i></div>"
    assert [link.tag_path for link in parsed(html).links] == ["body/div.one/a", "body/div.two/i/a"]


def test_the_tag_path_is_bounded():
    html = f"<div class={'c' * 900}>" * 400 + "<a href=b>x</a>"
    assert len(only_link(html).tag_path) < 1_100


# What a page says about robots


@pytest.mark.parametrize("rel", ["nofollow", "external NoFollow", "ugc", "sponsored"])
def test_a_link_can_say_that_it_is_not_a_recommendation(rel):
    assert only_link(f"<a href=b rel='{rel}'>x</a>").nofollow


def test_a_target_that_is_also_recommended_is_not_nofollow():
    assert not only_link("<a href=b rel=nofollow>long anchor</a><a href=b>x</a>").nofollow


def test_what_is_said_to_another_robot_is_ignored():
    page = parsed(
        "<meta name=otherbot content=noindex>x",
        {"content-type": "text/html", "x-robots-tag": "nofollow, otherbot: noindex, none"},
    )
    assert (page.noindex, page.nofollow) == (False, True)


def test_the_canonical_url_is_resolved():
    assert parsed("<link rel=canonical href='/c#x'>x").canonical == "https://example.org/c"
    assert parsed("x").canonical is None


def test_the_target_of_a_refresh_is_resolved_and_that_of_the_header_first():
    html = "<meta http-equiv=Refresh content='0;url=/new#x'>x"
    assert parsed(html).refresh == "https://example.org/new"
    assert parsed(html, {"refresh": "0;url=/first"}).refresh == "https://example.org/first"


@pytest.mark.parametrize("content", ["30", "0;url=page.html", "", "0;url=javascript:x()"])
def test_a_refresh_of_the_page_itself_is_none(content):
    assert parsed(f"<meta http-equiv=refresh content='{content}'>x").refresh is None


# Language and charset


@pytest.mark.parametrize(("lang", "language"), [("en", "en"), ("DE-at", "de"), ("x-klingon", "")])
def test_the_declared_language_is_taken(lang, language):
    assert parsed(f"<html lang='{lang}'><p>kurz").language == language


def test_the_language_of_a_long_text_is_detected():
    german = "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist " * 5
    assert parsed(f"<p>{german}").language == "de"
    assert parsed("<p>Die Würde").language == ""


def test_a_byte_order_mark_beats_the_header():
    page = parsed("naïve".encode("utf-8-sig"), {"content-type": "text/html; charset=latin-1"})
    assert (page.text, page.charset) == ("naïve", "utf-8")


def test_the_header_beats_the_document():
    html = "<meta charset=utf-8>naïve".encode("cp1252")
    page = parsed(html, {"content-type": "text/html; charset=ISO-8859-1"})
    assert (page.text, page.charset) == ("naïve", "windows-1252")


def test_letters_of_a_links_query_are_sent_in_the_pages_charset():
    html = '<meta charset=windows-1251><base href="/б?б"><a href="/д?д">д</a>'
    assert parsed(html.encode("cp1251")).links[0].url == "https://example.org/%D0%B4?%E4"
    assert parsed(html.replace("windows-1251", "utf-8")).links[0].url.endswith("/%D0%B4?%D0%B4")


# What is no page


@pytest.mark.parametrize(
    "body", [b"", b" \n", b"<html></html>", b"<!-- nothing -->", b"<script>x</script>"]
)
def test_a_page_without_text_and_links_is_empty(body):
    assert failed(body).kind is FailureKind.EMPTY


def test_a_page_that_only_leads_elsewhere_is_a_page():
    assert parsed("<meta http-equiv=refresh content='0;url=/b'>").text == ""


@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.7 plain text that is long enough to look harmless",
        b"\x89PNG\r\n\x1a\n" + bytes(500),
        b"PK\x03\x04" + b"abc" * 100,
        bytes(range(256)) * 20,
        b"<html>" + b"\x00\x01\x02text" * 500,
    ],
)
def test_binary_sent_as_html_is_of_the_wrong_type(body):
    failure = failed(body)
    assert failure.kind is FailureKind.WRONG_TYPE
    assert "looks like" in failure.detail


def test_a_stray_nul_does_not_make_a_page_binary():
    assert "text" in parsed(b"<p>some \x00 text that goes on and on</p>").text


def test_plain_text_has_text_and_no_links():
    page = parsed("a < b\n<a href=x>", {"content-type": "text/plain"})
    assert (page.text, page.links) == ("a < b <a href=x>", ())


def test_html_without_a_content_type_is_recognised():
    assert parsed("<!-- x --><!DOCTYPE html><title>T</title>x", {"server": "x"}).title == "T"


def test_an_empty_element_of_xhtml_does_not_swallow_the_rest():
    xhtml = "<html><head><script src='x'/><title>T</title></head><body><a name='x'/>text</body>"
    page = parsed(xhtml, {"content-type": "application/xhtml+xml"})
    assert (page.title, page.text) == ("T", "text")


# Pages made to hurt


def test_a_hundred_thousand_nested_elements_are_read():
    page = parsed("<div>" * 100_000 + "<a href=deep>deep</a>")
    assert page.text == "deep"
    assert page.links[0].tag_path.count("/") <= 25


def test_a_million_attributes_are_not_read():
    attributes = " ".join(f"a{i}=1" for i in range(200_000))
    assert parsed(f"<p>text <a {attributes}>more</a>").text == "text more"


@pytest.mark.parametrize(
    "body",
    [
        b"<!--x-->" * 8_000 + b"text",
        b"<a " + b"<a" * 900_000 + b">text",
        b"<meta http-equiv=refresh content='" + b" " * 900_000 + b"x'>text",
        b"<span>" * 150_000 + b"</p>" * 150_000 + b"text",
        b"<html><!--" + b"<" * 500_000 + b"\n-->text",
        b"&" * 1_900_000 + b"text",
    ],
    ids=["comments", "open tags", "refresh", "paragraph ends", "one comment", "ampersands"],
)
def test_what_makes_naive_parsers_slow_is_read_in_time(body):
    assert parsed(body, {"server": "x"}).text.endswith("text")


def test_a_million_links_are_bounded():
    page = parsed("".join(f"<a href={i}>" for i in range(130_000)))
    assert (len(page.links), page.links_over_limit) == (5_000, 125_000)


def test_many_links_in_deep_inline_elements_are_bounded():
    page = parsed("<b>" * 4_000 + "".join(f"<a href={i}>x</a>" for i in range(4_000)))
    assert len(page.links) == 4_000
    assert all(link.tag_path.count("/") <= 25 for link in page.links)


def test_nested_links_with_a_long_text_are_bounded():
    page = parsed("<object><a href=x>" * 900 + "word " * 200_000)
    assert len(page.links[0].anchor) <= 300


def test_only_the_first_two_megabytes_are_parsed():
    assert len(parsed(b"word " * 2_000_000).text) <= 2_000_000


TAGS = ["div", "a href=x", "p", "table", "td", "li", "title", "base href=/b/", "meta", "svg", "h1"]
soup = st.lists(
    st.one_of(
        st.sampled_from([f"<{tag}>" for tag in TAGS]),
        st.sampled_from([f"</{tag.split()[0]}>" for tag in TAGS]),
        st.text(max_size=8),
    ),
    max_size=40,
).map("".join)


bodies = st.one_of(st.binary(max_size=300), soup.map(lambda s: s.encode("utf-8", "replace")))


@given(bodies.map(lambda body: b"<p>" + body))  # not the first bytes of another format
@settings(max_examples=examples(200))
def test_a_page_in_utf_8_reads_like_its_decoded_text(body):
    headers = {"content-type": "text/html; charset=utf-8"}
    decoded = body.decode("utf-8", "replace").encode()
    assert parse_page(Fetched(URL, 200, headers, body)) == parse_page(
        Fetched(URL, 200, headers, decoded)
    )


@given(bodies)
@settings(max_examples=examples(300))
def test_parsing_never_raises_and_keeps_what_pages_promise(body):
    page = parse_page(Fetched(URL, 200, {}, body))
    if isinstance(page, Page):
        urls = [link.url for link in page.links]
        assert len(urls) == len(set(urls))
        assert URL not in urls
        assert all(normalize_url(url) == url for url in urls)
        assert all(0.0 <= link.position <= 1.0 for link in page.links)
        for link in page.links:
            assert len(link.context.split()) <= 50
            assert link.context == " ".join(link.context.split())
        assert page.text == " ".join(page.text.split())


@given(
    st.dictionaries(
        st.sampled_from(["content-type", "x-robots-tag", "refresh"]), st.text(max_size=40)
    )
)
def test_no_header_makes_parsing_raise(headers):
    parse_page(Fetched(URL, 200, headers, "<p>häder".encode("latin-1")))
