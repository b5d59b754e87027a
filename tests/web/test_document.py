"""The main text of a page with its structure, and what the page declares."""

import pytest

from focused.web.html.declared_metadata import parse_date
from focused.web.html.document import Document, extract_document
from focused.web.html.text_structure import CODE, HEADING, ITEM, PARAGRAPH, TABLE, render_text
from focused.web.page import Fetched
from tests.support.corpus_crawl import ARTICLE, EVIL, WHALES, corpus_web

NESTED = '<table class="highlighttable"><tr><td class="code"><pre>whale</pre></td></tr>' * 9


def document(body: str, head: str = "", **headers: str) -> Document:
    html = f"<html><head><title>T</title>{head}</head><body>{body}</body></html>"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named = {"content-type": "text/html; charset=utf-8", **named}
    return extract_document(Fetched("http://a.test/x/y", 200, named, html.encode()))


def texts(found: Document, kind: str) -> list[str]:
    return [block.text for block in found.blocks if block.kind == kind]


def test_headings_lists_tables_and_code_keep_their_structure():
    found = extract_document(corpus_web()[ARTICLE])
    assert texts(found, HEADING) == ["Whales of the sea", "Counting whale calls"]
    assert texts(found, ITEM) == ["Blue whale of the south", "Grey whale of the north"]
    assert texts(found, TABLE) == ["whale\tlength\nblue\t30 m\ngrey\t15 m"]
    (code,) = (block for block in found.blocks if block.kind == CODE)
    assert code.text == "def count(whales):\n    return  len(whales)  # * not emphasis *"
    assert code.language == "python"
    heading = found.blocks[2]
    assert [heading.text[start:end] for start, end in heading.code_spans] == ["whale"]


def test_menus_and_footers_are_left_out():
    text = render_text(extract_document(corpus_web()[ARTICLE]).blocks)
    assert "Home" not in text and "Imprint" not in text


def test_permalinks_and_line_numbers_are_no_text():
    numbered = (
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>'
        '<td class="code"><pre><span>a</span> = 1\nb = 2</pre></td></tr></table>'
    )
    found = document(
        f'<main><h1>Code<a class="headerlink" href="#c">¶</a></h1><p>{WHALES * 3}</p>{numbered}'
        f"<p>{WHALES * 3}</p></main>"
    )
    assert texts(found, HEADING) == ["Code"]
    assert texts(found, CODE) == ["a = 1\nb = 2"]


DATA = (
    "<table><tr><th>whale</th><th>length</th></tr><tr><td><p>blue</p><p>whale</p></td>"
    "<td>3<sub>0</sub> m</td></tr><tr><td></td><td>15 m</td></tr></table>"
)


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{WHALES * 3}</p>{DATA}",
        f"<div>{WHALES * 3}{DATA}</div>",
        f"<p>{WHALES * 3}</p><ul><li>Lengths {DATA} of whales</li></ul>",
        f"<p>{WHALES * 3}</p><dl><dt>Length</dt><dd>{DATA}</dd></dl>",
        f"<p>{WHALES * 3}</p><blockquote><p>{WHALES}</p>{DATA}</blockquote>",
        f"<p>{WHALES * 3}</p><table><tr><td>{DATA}</td></tr></table>",
    ],
)
def test_tables_keep_their_rows_wherever_they_are(body):
    found = document(f"<main><h1>Whales</h1>{body}<p>{WHALES * 3}</p></main>")
    assert texts(found, TABLE) == ["whale\tlength\nblue whale\t30 m\n\t15 m"]


def test_code_in_a_list_keeps_its_lines():
    code = "<pre><code>def f():\n    return 1\n</code></pre>"
    found = document(f"<main><p>{WHALES * 3}</p><ul><li>whale {code} song</li></ul></main>")
    assert texts(found, CODE) == ["def f():\n    return 1"]


def test_emphasis_in_a_teaser_does_not_hide_the_article():
    article = "".join(f"<p>{number}. {WHALES * 3}</p>" for number in range(10))
    teaser = f"<p>{WHALES * 3}</p> On <em>songs</em> and <em>whales</em>."
    found = document(f'<div class="post-body">{teaser}</div><article>{article}</article>')
    assert all(f"{number}. " in render_text(found.blocks) for number in range(10))


@pytest.mark.parametrize("invisible", ["\xad", "\u200b", "\u2060", "&shy;", "&#8203;"])
def test_invisible_characters_do_not_divide_words(invisible):
    found = document(f"<main><p>{WHALES * 3} hump{invisible}back</p></main>")
    assert "humpback" in render_text(found.blocks)


def test_letters_and_their_accents_are_one_character():
    found = document(f"<main><p>{WHALES * 3} Me\u0301duse</p></main>")
    assert "M\xe9duse" in render_text(found.blocks)


def test_a_plain_text_has_its_paragraphs():
    fetched = Fetched("http://a.test/t", 200, {"content-type": "text/plain"}, b"a\nb\n\n\n c \n")
    assert texts(extract_document(fetched), PARAGRAPH) == ["a\nb", " c"]


def test_an_empty_script_of_xhtml_hides_no_text():
    page = f"<html><head><script/></head><body><p>{WHALES * 3}</p></body></html>"
    headers = {"content-type": "application/xhtml+xml"}
    found = extract_document(Fetched("http://a.test/", 200, headers, page.encode()))
    assert texts(found, PARAGRAPH) == [(WHALES * 3).strip()]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<p></p>",
        "<div>" * 5_000,
        "<ul><li>" * 2_000 + "whale",
        "<table><tr><td>" * 500,
        "\x00",
        NESTED,
    ],
)
def test_odd_pages_give_a_document(body):
    assert isinstance(document(body), Document)


def test_control_characters_of_a_page_are_removed():
    text = render_text(extract_document(corpus_web()[EVIL]).blocks)
    assert "whale" in text
    assert text.replace("\n", "").isprintable()


def test_metadata_is_what_the_page_declares():
    found = extract_document(corpus_web()[ARTICLE]).metadata
    assert found.authors == ("Ada Krill",)
    assert found.published == "2024-03-05"
    assert found.licences == ("https://creativecommons.org/licenses/by/4.0/",)
    assert found.robots == ("noai", "noarchive")


def test_json_ld_tells_author_dates_and_licence():
    script = (
        '<script type="application/ld+json">{"@graph": [{"@type": "Article", "author": '
        '[{"name": "Ada"}, {"name": "Bo"}], "datePublished": "2024-01-02T23:00:00-05:00", '
        '"dateModified": "2024-02-03", "license": {"@id": "https://l.test/by"}}]}</script>'
    )
    found = document("<p>whale</p>", script).metadata
    assert found.authors == ("Ada", "Bo")
    assert (found.published, found.modified) == ("2024-01-02", "2024-02-03")
    assert found.licences == ("https://l.test/by",)


@pytest.mark.parametrize(
    ("head", "headers"),
    [
        ('<link rel="license" href="../by">', {}),
        ('<meta name="dc.rights" content="http://a.test/by">', {}),
        ("", {"link": '<http://a.test/by>; rel="license"'}),
    ],
)
def test_licences_are_declared_in_several_ways(head, headers):
    assert document("<p>whale</p>", head, **headers).metadata.licences == ("http://a.test/by",)


def test_a_script_address_is_no_licence():
    head = '<link rel="license" href="javascript:alert(1)">'
    assert document("<p>whale</p>", head).metadata.licences == ()


def test_robots_directives_of_headers_and_metas_are_joined():
    found = document(
        "<p>whale</p>",
        '<meta name="robots" content="noarchive, max-snippet:20, made-up">'
        '<meta name="tdm-reservation" content="1">',
        x_robots_tag="noindex, otherbot: noai",
    )
    assert found.metadata.robots == ("max-snippet", "noarchive", "noindex", "tdm-reservation")


@pytest.mark.parametrize(
    "script", ["{", "[" * 50_000, '{"author": {"name": 7}, "license": [null, 3]}', "7"]
)
def test_broken_json_ld_declares_nothing(script):
    found = document("<p>whale</p>", f'<script type="application/ld+json">{script}</script>')
    assert found.metadata.authors == () and found.metadata.licences == ()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-05-01", "2024-05-01"),
        ("2024/5/1", "2024-05-01"),
        ("2024-05-01T23:30:00-05:00", "2024-05-01"),
        ("2020-10-14T05:50:00+08:00", "2020-10-14"),
        ("Wed, 01 May 2024 10:00:00 GMT", "2024-05-01"),
        ("2024-13-01", ""),
        ("May 2024", ""),
        ("0001-01-01T00:00:00+14:00", ""),
        ("9999-12-31T23:59:59-14:00", ""),
        ("Tue, 13 Oct 2020 23:50:00 -0800", "2020-10-13"),
        ("", ""),
    ],
)
def test_dates_are_read_to_the_day_or_not_at_all(text, day):
    assert parse_date(text) == day


@pytest.mark.parametrize(
    ("body", "head", "day"),
    [
        ('<p class="post-date">31 January 2024</p>', "", "2024-01-31"),
        ("<time>2024-01-31</time>", "", "2024-01-31"),
        ("", '<meta name="sailthru.date" content="2024-01-31">', "2024-01-31"),
        ("", '<link rel="canonical" href="http://a.test/2024/01/31/whales">', "2024-01-31"),
        ("<p>On 31 January 2024, whales were counted.</p>", "", ""),
    ],
)
def test_the_day_of_publication_is_in_the_url_or_in_elements_for_dates(body, head, day):
    assert document(f"<main><p>{WHALES * 3}</p>{body}</main>", head).metadata.published == day


def test_the_text_is_searched_for_a_day_on_request():
    html = f"<html><body><p>{WHALES * 3}</p><p>Posted on 31 January 2024 by Ada</p></body></html>"
    fetched = Fetched("http://a.test/x", 200, {"content-type": "text/html"}, html.encode())
    assert extract_document(fetched).metadata.published == ""
    assert extract_document(fetched, guess_dates=True).metadata.published == "2024-01-31"


def test_the_day_in_the_url_is_that_of_the_site_where_a_time_is_in_utc():
    head = '<meta property="article:published_time" content="2024-02-01T05:00:00Z">'
    page = f"<html><head>{head}</head><body><p>whale</p></body></html>"
    fetched = Fetched("http://a.test/2024/01/31/whale", 200, {}, page.encode())
    assert extract_document(fetched).metadata.published == "2024-01-31"
