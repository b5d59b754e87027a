"""JSON-LD and microdata: title, links, authors, dates, licences of a page."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.html.declared_metadata import DeclaredMetadata, declared_metadata
from focused.web.html.json_ld import headline, json_ld_nodes, named_urls
from focused.web.html.main_text import parse_tree
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page

URL = "https://a.test/page"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["item", "url", "@id", "name", "citation", "itemListElement", "headline"]
            ),
            inner,
        )
    ),
    max_leaves=20,
)


def script(data: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def parsed(html: str) -> Page:
    page = parse_page(Fetched(URL, 200, {"content-type": "text/html"}, html.encode()))
    assert isinstance(page, Page)
    return page


def links(data: object, html: str = "<p>text") -> list[tuple[str, str]]:
    return [(link.url, link.anchor) for link in parsed(script(data) + html).links]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"citation": "https://b.test/1"}, [("https://b.test/1", "")]),
        ({"citation": "Doe, J. (2020). Whales."}, []),
        ({"hasPart": [{"url": "/2", "name": "Two"}]}, [("https://a.test/2", "Two")]),
        ({"hasPart": {"@id": "#part"}, "isPartOf": {"@id": "_:b0"}}, []),
        ({"relatedLink": ["javascript:alert(1)", "https://a.test/page"]}, []),
        (
            {
                "@graph": [
                    {"itemListElement": [{"position": 1, "item": {"@id": "/3", "name": "T"}}]}
                ]
            },
            [("https://a.test/3", "T")],
        ),
        (
            {"itemListElement": [{"item": "https://b.test/4", "name": "Four &amp; five"}]},
            [("https://b.test/4", "Four & five")],
        ),
        ({"potentialAction": {"target": "https://a.test/?q={query}"}}, []),
        ({"author": {"url": "https://a.test/me"}}, []),
    ],
)
def test_pages_that_lists_parts_and_citations_name_are_links(data, expected):
    assert links(data) == expected


def test_a_link_of_the_text_and_of_the_description_is_one():
    data = {"hasPart": [{"url": "/2", "name": "Two"}]}
    assert links(data, "<a href=/2>The second part</a>") == [
        ("https://a.test/2", "The second part")
    ]


def test_a_page_without_title_has_the_headline():
    data = {"@type": "Article", "headline": " On  whales "}
    assert parsed(script(data) + "<p>text").title == "On whales"
    assert parsed("<title>Own</title>" + script(data) + "<p>text").title == "Own"


def test_a_broken_script_harms_no_other():
    html = '<script type="application/ld+json">{"a": </script>' + script({"headline": "Whales"})
    assert parsed(html + "<p>text").title == "Whales"


def test_deep_json_is_left_out():
    deep = '{"citation":' + "[" * 100_000 + "]" * 100_000 + "}"
    html = f'<script type="application/ld+json">{deep}</script><p>text'
    assert parsed(html).links == ()


@given(JSON)
def test_nothing_makes_the_reader_fail(data):
    nodes = list(json_ld_nodes([json.dumps(data)]))
    assert all(isinstance(each.url, str) for each in named_urls(nodes))
    assert isinstance(headline(nodes), str)


def metadata(html: str) -> DeclaredMetadata:
    return declared_metadata(parse_tree(f"<html><body>{html}</body></html>"), URL, {})


@pytest.mark.parametrize(
    ("html", "authors"),
    [
        ("<p itemprop=author>Ada  Doe</p>", ("Ada Doe",)),
        (
            "<p itemprop=author itemscope>by <b itemprop='name given'>Ada</b>, <i>Example</i></p>",
            ("Ada",),
        ),
        ("<p itemprop=author itemscope><meta itemprop=name content=Ada>A. Doe</p>", ("Ada",)),
        ("<p itemprop=author>Ada</p><p itemprop='author creator'>Bob</p>", ("Ada", "Bob")),
        ("<p itemprop=coauthor>Ada</p>", ()),
        ("<meta name=author content=Eve><p itemprop=author>Ada</p>", ("Eve",)),
    ],
)
def test_microdata_names_authors_where_no_meta_element_does(html, authors):
    assert metadata(html).authors == authors


@pytest.mark.parametrize(
    "html",
    [
        "<time itemprop=datePublished datetime=2026-01-31>yesterday</time>",
        "<span itemprop=datePublished content=2026-01-31>yesterday</span>",
        "<span itemprop=datePublished>2026-01-31</span>",
        "<article itemscope><div><b itemprop=datepublished>2026-01-31</b></div></article>",
    ],
)
def test_microdata_names_the_day_in_attributes_or_text(html):
    assert metadata(html).published == "2026-01-31"


@pytest.mark.parametrize(
    "html",
    [
        "<div itemprop=comment itemscope>{}</div>",
        "<div itemprop=review itemscope itemtype=https://schema.org/Review><p>{}</p></div>",
        "<div itemscope itemtype=http://schema.org/Comment>{}</div>",
        "<figure itemscope itemtype=https://schema.org/ImageObject>{}</figure>",
    ],
)
def test_microdata_of_comments_reviews_and_images_is_not_the_pages(html):
    properties = (
        "<b itemprop=author>Bob</b><time itemprop=datePublished datetime=2026-01-31></time>"
        "<a itemprop=license href=/by>CC</a>"
    )
    page = f"<div itemscope itemtype=https://schema.org/Article>{html.format(properties)}"
    assert metadata(page) == DeclaredMetadata()
    assert metadata(f"{page}<i itemprop=author>Ada</i></div>").authors == ("Ada",)


def test_the_licence_of_a_figure_is_not_the_pages():
    link = "<a rel=license href=https://a.test/{}>licence</a>"
    html = f"<figure>{link.format('image')}</figure><p>{link.format('page')}</p>"
    assert metadata(html).licences == ("https://a.test/page",)


OTHERS = {
    "author": {"name": "Bob"},
    "datePublished": "2020-01-01",
    "license": "https://a.test/other",
}


@pytest.mark.parametrize(
    "data",
    [
        {"@type": "Product", "review": OTHERS},
        {"@type": "Article", "comment": [OTHERS], "image": OTHERS},
        {"@graph": [{"@type": "WebPage"}, {"@type": "ImageObject", **OTHERS}]},
        [{"@type": "Product"}, {"@type": ["Review"], **OTHERS}],
    ],
)
def test_json_ld_of_reviews_comments_and_images_is_not_the_pages(data):
    assert metadata(script(data)) == DeclaredMetadata()


def test_the_author_of_a_page_that_is_a_review_is_its_own():
    data = [{"@type": "BreadcrumbList"}, {"@type": "Review", **OTHERS}]
    assert metadata(script(data)).authors == ("Bob",)


def test_references_in_json_ld_are_resolved():
    article = {"@type": "Article", "author": [{"@id": "#ada"}], "license": {"@id": "/by"}}
    person = {"@type": "Person", "@id": "#ada", "name": "Ada"}
    found = metadata(script({"@graph": [article, person]}))
    assert (found.authors, found.licences) == (("Ada",), ("/by",))


@pytest.mark.parametrize(
    "media_type",
    ["application/ld+json; charset=utf-8", "APPLICATION/LD+JSON", " application/ld+json"],
)
def test_the_type_of_a_json_ld_script_may_have_parameters_and_capitals(media_type):
    data = json.dumps({"@type": "Article", "author": {"name": "Ada"}, "headline": "Whales"})
    html = f'<script type="{media_type}">{data}</script><p>text'
    assert metadata(html).authors == ("Ada",)
    assert parsed(html).title == "Whales"


def test_microdata_names_dates_and_licences():
    found = metadata(
        "<time itemprop=datePublished datetime=2026-01-31></time>"
        "<meta itemprop=dateModified content=2026-02-01>"
        "<a itemprop=license href=https://creativecommons.org/licenses/by/4.0/>CC</a>"
    )
    assert (found.published, found.modified) == ("2026-01-31", "2026-02-01")
    assert found.licences == ("https://creativecommons.org/licenses/by/4.0/",)
