"""The context of a link, its title and rel."""

import pytest

from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Link, Page

URL = "https://example.org/docs/page.html"


def links_of(html: str) -> tuple[Link, ...]:
    page = parse_page(Fetched(URL, 200, {"content-type": "text/html"}, html.encode()))
    assert isinstance(page, Page), page
    return page.links


def only_link(html: str) -> Link:
    (link,) = links_of(html)
    return link


# The context


def context_of(html: str) -> str:
    return only_link(html).context


def test_the_words_around_a_link_are_its_context_without_its_anchor():
    html = "<p>one two three <a href=b>anchor</a> four five six and some more words</p>"
    assert context_of(html) == "one two three four five six and some more words"


def test_twenty_words_on_either_side_count():
    before = " ".join(f"b{i}" for i in range(30, 0, -1))
    after = " ".join(f"a{i}" for i in range(1, 31))
    words = context_of(f"<p>{before} <a href=b>x</a> {after}</p>").split()
    assert words == [*before.split()[-20:], *after.split()[:20]]


def test_two_hundred_characters_on_either_side_count():
    words = context_of(f"<p>{'b' * 300} <a href=b>x</a> {'a' * 300}</p>").split()
    assert list(map(len, words)) == [200, 199]


def test_other_links_texts_are_context_too():
    links = links_of("<p>Whales: <a href=1>harpoons</a>, <a href=2>boats</a>, and some oils.</p>")
    assert [link.context for link in links] == [
        "Whales: , boats, and some oils.",
        "Whales: harpoons, , and some oils.",
    ]


def test_the_heading_above_ends_the_context():
    html = "<h2>Sea &amp; ships</h2><p>A long enough text stands in front of <a href=b>x</a></p>"
    assert context_of(html) == "A long enough text stands in front of Sea & ships"


def test_the_heading_has_ten_words_at_most():
    above = " ".join(f"h{i}" for i in range(20))
    html = f"<h4>{above}</h4><p>A long enough text stands in front of <a href=b>x</a></p>"
    assert context_of(html).split()[-11:] == ["of", *above.split()[:10]]


def test_a_link_without_a_heading_above_has_none():
    assert context_of("<p>text <a href=b>x</a></p><h1>Below</h1>") == "text Below"


@pytest.mark.parametrize(
    ("html", "is_near"),
    [
        ("<p>A paragraph with enough to tell <a href=b>x</a></p>a text", False),
        ("<dl><dt><a href=b>x</a></dt><dd>a text that is long enough to tell</dd></dl>", True),
        ("<div><ul><li><a href=b>x</a></ul>a text that is long enough to tell</div>", True),
        ("<div><div><div><div><a href=b>x</a></div></div></div>a text, however long</div>", False),
    ],
)
def test_a_block_with_little_text_gives_way_to_its_parent_twice_at_most(html, is_near):
    assert ("a text" in context_of(html)) is is_near


# Title and rel


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<a href=b title='What it is about'>here</a>", "What it is about"),
        ("<a href=b aria-label=' A  label '>here</a>", "A label"),
        ("<a href=b title='A title'><img src=i></a>", ""),
        ("<a href=b title='Whales'>Whales and ships</a>", ""),
        ("<a href=b>here</a>", ""),
        ("<map><area href=b alt=Map title='A title'></map>", "A title"),
    ],
)
def test_the_title_is_what_a_link_is_called_besides_its_anchor(html, title):
    assert only_link(html).title == title


def test_a_title_is_bounded():
    assert len(only_link(f"<a href=b title='{'word ' * 900}'>x</a>").title) <= 200


def test_rel_has_the_lower_case_tokens_once_each():
    link = only_link("<a href=b rel='Next EXTERNAL next'>x</a>")
    assert link.rel == ("next", "external")


def test_rel_is_joined_over_the_links_to_a_target():
    link = only_link("<a href=b rel='nofollow tag'>x</a><a href=b rel='tag author'>x</a>")
    assert (link.rel, link.nofollow) == (("nofollow", "tag", "author"), False)


def test_rel_is_bounded():
    many = " ".join(f"{i}{'x' * 15}" for i in range(50))
    links = f"<a href=b rel='{many}'>x</a><a href=b rel='{'y' * 900}'>x</a>"
    rel = only_link(links).rel
    assert len(rel) == 8
    assert all(len(token) <= 20 for token in only_link(f"<a href=b rel='{'y' * 900}'>").rel)
