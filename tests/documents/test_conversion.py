"""What each format gives: text, structure, links, metadata."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.documents.convert import to_html
from focused.documents.extract import extract_any
from focused.documents.markup import DocumentMetadata, MarkupWriter, find_urls
from focused.web.html.parse import parse_page
from focused.web.html.text_structure import CODE, HEADING, ITEM, PARAGRAPH, TABLE
from focused.web.page import Failed, FailureKind, Fetched, Page
from tests.support.made_documents import docx, epub, odt, paragraph, pdf, pptx, run, shape

URL = "http://a.test/papers/file"
LINKED = (
    '<w:hyperlink r:id="l1"><w:r><w:t>the kr</w:t></w:r><w:r><w:t>ill page</w:t></w:r>'
    "</w:hyperlink>"
)
FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "http://f.test/" '
    '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>a field</w:t>'
    '</w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
WORD = docx(
    paragraph(run("Whales"), style="Heading1")
    + paragraph(run("They eat "), LINKED, run(", see http://plain.test/a and "), FIELD, run("."))
    + "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    + paragraph("<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>", run("kept"))
    + paragraph(
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/'
        '2006"><mc:Choice><w:txbxContent><w:p><w:r><w:t>a box</w:t></w:r></w:p></w:txbxContent>'
        "</mc:Choice><mc:Fallback><w:txbxContent><w:p><w:r><w:t>a box</w:t></w:r></w:p>"
        "</w:txbxContent></mc:Fallback></mc:AlternateContent>"
    ),
    {"l1": "http://krill.test/?a=1&b=2"},
)
OPEN = odt(
    '<text:h text:outline-level="2">Whales</text:h><text:p>They<text:s text:c="2"/>eat '
    '<text:a xlink:href="http://krill.test/">the <text:span>krill page</text:span></text:a>, see '
    "http://plain.test/a.</text:p><text:tracked-changes><text:p>deleted</text:p>"
    "</text:tracked-changes><text:list><text:list-item><text:p>an item</text:p></text:list-item>"
    "</text:list>"
)
SLIDES = pptx(
    shape("Whales", role="title") + shape("They eat krill", link="l1") + shape("7", role="sldNum"),
    shape("Second", role="title"),
    links={"l1": "http://krill.test/"},
)
BOOK = epub(
    {
        "a.xhtml": '<h1>Whales</h1><p>They eat <a href="http://krill.test/">krill</a>, '
        'see <a href="b.xhtml">chapter 2</a>.</p>',
        "b.xhtml": "<h2>Second</h2><p>more</p>",
    },
    spine=["b.xhtml", "a.xhtml"],
)
PAPER = pdf(
    [
        "Whales eat a great deal of krill, as the page of",
        "the krill shows to everyone who reads about whales.",
        "See http://plain.test/a for a list of all the krill.",
        "17",
    ],
    ["A second page of the paper about whales and their krill."],
    links=[("the krill shows to everyone who reads about whales.", "http://krill.test/x")],
    info=b"/Author(Ann Author and Bob Writer)/CreationDate(D:20200203100000Z)",
    title="Whales at sea",
)
LINES = ["Some words of the page about whales.", "Some more of its words about krill."]
ARTICLE = b"""<?xml version="1.0"?>
<article xmlns:xlink="http://www.w3.org/1999/xlink" xml:lang="en"><front><article-meta><title-group>
<article-title>Whales <italic>at sea</italic></article-title></title-group><contrib-group>
<contrib contrib-type="author"><name><surname>Author</surname><given-names>Ann</given-names></name>
</contrib></contrib-group><pub-date><day>3</day><month>2</month><year>2020</year></pub-date>
<permissions><license xlink:href="http://cc.test/by/"/></permissions>
<abstract><p>An abstract.</p></abstract></article-meta></front><body><sec><title>Feeding</title>
<p>They eat <ext-link xlink:href="http://krill.test/">krill</ext-link>.</p></sec></body>
<back><ref-list><ref><mixed-citation>A paper<pub-id pub-id-type="doi">10.1234/abc</pub-id>
</mixed-citation></ref></ref-list></back></article>"""
MARKDOWN = b"""---
title: Whales at sea
author: Ann Author
date: 2020-02-03
---
# Feeding

They eat [krill](../krill.html), see http://plain.test/a.

| a | b |
|---|---|
| 1 | 2 |

1. one

```python
x = 1
```
"""
TEXT = b"Whales at sea\r\n\r\nThey eat krill, see http://plain.test/a.\r\n"


def fetched(body: bytes, kind: str = "") -> Fetched:
    return Fetched(URL, 200, {"content-type": kind}, body)


def page(body: bytes, kind: str = "") -> Page:
    html = to_html(fetched(body, kind))
    assert isinstance(html, Fetched), html
    parsed = parse_page(html)
    assert isinstance(parsed, Page), parsed
    return parsed


def words(parsed: Page) -> str:
    return " ".join(parsed.text.split())


def links(parsed: Page) -> dict[str, str]:
    return {link.url: link.anchor for link in parsed.links}


def test_a_docx_file_has_text_links_and_metadata():
    found = page(WORD)
    assert (
        words(found)
        == "Whales They eat the krill page, see http://plain.test/a and a field. a cell kept a box"
    )
    assert found.headings == ("Whales",)
    assert links(found) == {
        "http://krill.test/?a=1&b=2": "the krill page",
        "http://plain.test/a": "http://plain.test/a",
        "http://f.test/": "a field",
    }
    assert (found.title, found.language) == ("Whales at sea", "en")
    metadata = extract_any(fetched(WORD)).metadata
    assert metadata.authors == ("Ann Author", "Bob Writer")
    assert metadata.published == "2020-02-03"


def test_an_odt_file_has_text_links_and_metadata():
    found = page(OPEN)
    text = "Whales They eat the krill page, see http://plain.test/a. an item"
    assert words(found) == text
    assert links(found)["http://krill.test/"] == "the krill page"
    assert (found.title, found.headings) == ("Whales at sea", ("Whales",))


def test_slides_come_in_the_order_of_the_presentation():
    found = page(SLIDES)
    assert words(found) == "Whales They eat krill Second"
    assert found.headings == ("Whales", "Second")
    assert links(found) == {"http://krill.test/": "They eat krill"}


def test_an_epub_file_is_read_in_the_order_of_its_spine():
    found = page(BOOK)
    assert words(found) == "Second more Whales They eat krill, see chapter 2."
    assert links(found) == {"http://krill.test/": "krill"}
    assert (found.title, found.language) == ("Whales at sea", "en")


def test_a_pdf_has_paragraphs_without_page_numbers():
    texts = [block.text for block in extract_any(fetched(PAPER)).blocks]
    assert texts == [
        "Whales at sea",
        "Whales eat a great deal of krill, as the page of the krill shows to everyone who reads "
        "about whales. See http://plain.test/a for a list of all the krill.",
        "A second page of the paper about whales and their krill.",
    ]


def test_a_pdf_has_links_of_annotations_and_of_its_text():
    assert links(page(PAPER)) == {
        "http://krill.test/x": "the krill shows to everyone who reads about whales.",
        "http://plain.test/a": "http://plain.test/a",
    }


def test_a_pdf_has_title_authors_and_date():
    assert page(PAPER).title == "Whales at sea"
    metadata = extract_any(fetched(PAPER)).metadata
    assert metadata.authors == ("Ann Author", "Bob Writer")
    assert metadata.published == "2020-02-03"


@pytest.mark.parametrize(
    ("declared", "title"),
    [
        ("Microsoft Word - paper3.doc", "Whales at sea"),
        ("paper.dvi", "Whales at sea"),
        ("Untitled", "Whales at sea"),
        ("A declared title", "A declared title"),
    ],
)
def test_a_title_that_a_program_filled_in_is_none(declared, title):
    info = f"/Title({declared})".encode()
    assert page(pdf(LINES, info=info, title="Whales at sea")).title == title


def test_headers_and_footers_of_a_pdf_are_left_out():
    pages = [
        [f"{number} Journal of Whales", f"Words of page {name}", f"Page {number} of 4"]
        for number, name in enumerate(("one", "two", "three", "four"), 1)
    ]
    expected = " ".join(f"Words of page {name}" for name in ("one", "two", "three", "four"))
    assert words(page(pdf(*pages))) == expected


def pdf_blocks(*pages: list[str]) -> list[str]:
    return [block.text for block in extract_any(fetched(pdf(*pages), "application/pdf")).blocks]


def test_rows_of_numbers_at_the_ends_of_pages_are_kept_as_rows():
    rows = [[f"{page}.5 {row}.25 7.5" for row in range(4)] for page in range(5)]
    assert pdf_blocks(*rows) == [row for page in rows for row in page]


@pytest.mark.parametrize("pages", [1, 8])
def test_the_values_of_a_chart_at_the_end_of_a_page_are_kept(pages):
    axis = ["Krill eaten by whales at sea", "0 t", "10", "20", "30"]
    found = " ".join(pdf_blocks(*[axis] * pages))
    assert found.split().count("30") == pages


def test_page_numbers_are_those_in_a_sequence():
    pages = [[f"Words of page {word}", str(number)] for number, word in enumerate("abcdef", 41)]
    pages.append(["The number of whales", "1907"])
    text = " ".join(pdf_blocks(*pages))
    assert "1907" in text and not any(str(number) in text for number in range(41, 47))


def test_an_article_has_text_links_and_metadata():
    found = page(ARTICLE, "application/xml")
    assert (found.title, found.language) == ("Whales at sea", "en")
    assert found.headings == ("Whales at sea", "Feeding")
    assert links(found) == {
        "http://krill.test/": "krill",
        "https://doi.org/10.1234/abc": "10.1234/abc",
    }
    metadata = extract_any(fetched(ARTICLE, "application/xml")).metadata
    assert metadata.authors == ("Ann Author",)
    assert (metadata.published, metadata.licences) == ("2020-02-03", ("http://cc.test/by/",))


def jats_blocks(body: str, after: str = "") -> list[tuple[str, str]]:
    article = f"<article><front/><body><sec>{body}</sec></body>{after}</article>"
    headers = {"content-type": "application/jats+xml"}
    found = extract_any(Fetched(URL, 200, headers, article.encode()))
    return [(block.kind, block.text) for block in found.blocks]


ROWS = (
    "<table><thead><tr><th>whale</th><th>length</th></tr></thead><tbody><tr><td>blue</td><td/></tr>"
    "<tr><td>grey</td><td>15 <bold>m</bold></td></tr></tbody></table>"
)
WHALE_TABLE = (TABLE, "whale\tlength\nblue\t\ngrey\t15 m")
FIGURE = "<fig><label>1</label><caption><title>Whales.</title><p>At sea.</p></caption></fig>"
CAPTION = (PARAGRAPH, "Whales. At sea.")


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        (ROWS, [WHALE_TABLE]),
        (f"<table-wrap><alternatives><graphic/>{ROWS}</alternatives></table-wrap>", [WHALE_TABLE]),
        (
            f"<p>before <table-wrap>{ROWS}</table-wrap> after</p>",
            [(PARAGRAPH, "before"), WHALE_TABLE, (PARAGRAPH, "after")],
        ),
        (
            f"<p>before {FIGURE}<fig-group>{FIGURE}</fig-group></p>",
            [(PARAGRAPH, "before"), CAPTION, CAPTION],
        ),
        (
            "<p>area <inline-formula><alternatives><tex-math>a^2</tex-math><math><mi>a</mi>"
            "<mn>2</mn></math></alternatives></inline-formula>.</p>",
            [(PARAGRAPH, "area a2.")],
        ),
        ("<p>one<alternatives><graphic/></alternatives></p>", [(PARAGRAPH, "one")]),
    ],
)
def test_tables_figures_and_alternatives_of_an_article_are_read(body, blocks):
    assert jats_blocks(body) == blocks


@pytest.mark.parametrize("kind", ["element-citation", "nlm-citation"])
def test_the_parts_of_a_reference_are_words_apart(kind):
    name = "<name><surname>{}</surname><given-names>{}</given-names></name>"
    people = name.format("Ahab", "C") + name.format("Starbuck", "M")
    title = "<article-title>A whale</article-title><source>Sea</source><year>1851</year>"
    cited = f"<{kind}><person-group>{people}</person-group>{title}</{kind}>"
    references = f"<back><ref-list><ref>{cited}</ref></ref-list></back>"
    assert "Ahab C Starbuck M A whale Sea 1851" in jats_blocks("<p>text</p>", references)[1][1]


def test_an_articles_floats_follow_its_text():
    floats = f"<back><p>end</p></back><floats-group>{FIGURE}{ROWS}</floats-group>"
    expected = [(PARAGRAPH, "text"), CAPTION, WHALE_TABLE, (PARAGRAPH, "end")]
    assert jats_blocks("<p>text</p>", floats) == expected


CELLS = "<tr><td>whale</td><td>length</td></tr><tr><td>grey</td><td>15 m</td></tr>"


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        (
            f"<table><caption>Whales</caption><colgroup><col/></colgroup>{CELLS}</table>",
            [(PARAGRAPH, "Whales"), (TABLE, "whale\tlength\ngrey\t15 m")],
        ),
        (
            f"<table>{CELLS}<tr><td><div>fin</div><div>blue</div></td><td>30 m</td></tr></table>",
            [(TABLE, "whale\tlength\ngrey\t15 m\nfin blue\t30 m")],
        ),
        (
            "<ul>Whales<li>fin</li>and<li>grey</li></ul>",
            [(PARAGRAPH, "Whales"), (ITEM, "fin"), (PARAGRAPH, "and"), (ITEM, "grey")],
        ),
    ],
)
def test_a_book_keeps_its_tables_and_the_text_around_items(body, blocks):
    found = extract_any(fetched(epub({"a": body}))).blocks
    assert [(block.kind, block.text) for block in found] == blocks


def test_markdown_has_structure_and_relative_links():
    found = page(MARKDOWN, "text/markdown")
    assert (found.title, found.headings) == ("Whales at sea", ("Feeding",))
    assert links(found) == {
        "http://a.test/krill.html": "krill",
        "http://plain.test/a": "http://plain.test/a",
    }
    kinds = [block.kind for block in extract_any(fetched(MARKDOWN, "text/markdown")).blocks]
    assert kinds == [HEADING, PARAGRAPH, TABLE, ITEM, CODE]


def test_plain_text_has_paragraphs_and_links():
    found = page(TEXT, "text/plain")
    assert found.title == "Whales at sea"
    assert links(found) == {"http://plain.test/a": "http://plain.test/a"}
    assert len(extract_any(fetched(TEXT, "text/plain")).blocks) == 2


def test_x_robots_tag_of_a_document_is_obeyed():
    html = to_html(Fetched(URL, 200, {"x-robots-tag": "noindex"}, PAPER))
    assert isinstance(html, Fetched)
    parsed = parse_page(html)
    assert isinstance(parsed, Page) and parsed.noindex


def test_text_that_looks_like_markup_stays_text():
    tags = '<meta name="robots" content="noindex"></p><a href="http://evil.test/">x</a>'
    found = page(docx(paragraph(run(tags))))
    assert tags in found.text
    assert not found.noindex
    assert list(links(found)) == ["http://evil.test/"]  # as a URL in the text


def test_a_missing_library_is_a_named_failure(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    failed = to_html(fetched(PAPER))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.MISSING_LIBRARY
    assert "focused-crawler[documents]" in failed.detail


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("(see http://a.test/b_(c)).", ["http://a.test/b_(c)"]),
        ("www.a.test, and doi:10.1000/x.", ["http://www.a.test", "https://doi.org/10.1000/x"]),
        ("http:// www. https://...", []),
        (
            '<http://a.test/>; "https://b.test/?q=1&r=2#s"!',
            ["http://a.test/", "https://b.test/?q=1&r=2#s"],
        ),
    ],
)
def test_urls_in_a_text(text, urls):
    assert [url for _, _, url in find_urls(text)] == urls


@given(st.text(max_size=300))
def test_urls_lie_in_the_text_in_order(text):
    end = 0
    for start, stop, url in find_urls(f"{text} http://{text}"):
        assert end <= start < stop and url
        end = stop


@given(st.lists(st.tuples(st.text(max_size=50), st.none() | st.text(max_size=50))))
def test_any_text_gives_markup_with_the_same_words(runs):
    writer = MarkupWriter()
    writer.block("p", runs)
    html = writer.html(DocumentMetadata(title="t"))
    parsed = parse_page(Fetched(URL, 200, {"content-type": "text/html; charset=utf-8"}, html))
    text = "".join(text for text, _ in runs)
    if text.isprintable() and text.strip():
        assert isinstance(parsed, Page)
        assert parsed.text.split() == text.split()
