"""The context of a link: words by distance, title, rel, block, navigation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


# The words by distance


def test_the_words_near_a_link_are_in_document_order_on_either_side():
    link = only_link("<p>one two three <a href=b>anchor</a> four five six and some more words</p>")
    assert link.before == "one two three"
    assert link.after == "four five six and some more words"


def test_eight_words_are_near_on_either_side():
    before = " ".join(f"b{i}" for i in range(30, 0, -1))
    after = " ".join(f"a{i}" for i in range(1, 31))
    link = only_link(f"<h2>Title</h2><p>{before} <a href=b>x</a> {after}</p>")
    assert link.before == "b8 b7 b6 b5 b4 b3 b2 b1"
    assert link.after == "a1 a2 a3 a4 a5 a6 a7 a8"


def test_other_links_texts_are_near_words_too():
    links = links_of("<p>Whales: <a href=1>harpoons</a>, <a href=2>boats</a>, and oils.</p>")
    assert [(link.before, link.after) for link in links] == [
        ("Whales:", ", boats, and oils."),
        ("Whales: harpoons,", ", and oils."),
    ]


def test_the_heading_is_not_a_word_after_the_link():
    html = "<h2>Sea &amp; ships</h2><p>A long enough text stands in front of <a href=b>x</a></p>"
    link = only_link(html)
    assert (link.after, link.heading) == ("", "Sea & ships")


def test_the_heading_has_ten_words_at_most():
    assert only_link(f"<h4>{'word ' * 20}</h4><a href=b>x</a>").heading == "word " * 9 + "word"


def test_a_link_without_a_heading_above_has_none():
    assert only_link("<p>text <a href=b>x</a></p><h1>Below</h1>").heading == ""


@pytest.mark.parametrize(
    ("html", "context_levels"),
    [
        ("<p>A paragraph with text enough to tell <a href=b>x</a></p>", 0),
        ("<dl><dt><a href=b>x</a></dt><dd>a text that is long enough to tell</dd></dl>", 1),
        ("<div><ul><li><a href=b>x</a></ul>a text that is long enough to tell</div>", 2),
        ("<div><div><div><div><a href=b>x</a></div></div></div>far away, however long</div>", 2),
    ],
)
def test_a_link_tells_how_far_up_the_tree_its_words_stand(html, context_levels):
    assert only_link(html).context_levels == context_levels


def test_a_links_words_are_those_of_its_context():
    link = Link(
        "http://a.test/", context="b2 b1 a1 a2 The heading", words_before=2, heading_words=2
    )
    assert (link.before, link.after, link.heading) == ("b2 b1", "a1 a2", "The heading")


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


# Links of one block


def blocks(html: str) -> list[tuple[int, int]]:
    return [(link.block, link.siblings) for link in links_of(html)]


def test_the_items_of_a_list_are_of_one_block():
    html = "<ul><li><a href=1>x</a><li><a href=2>x</a></ul><ul><li><a href=3>x</a><li><a href=4>x"
    assert blocks(html) == [(0, 2), (0, 2), (1, 2), (1, 2)]


def test_the_cells_of_a_row_are_of_one_block():
    row = "<tr><td><a href={}>x</a><td><a href={}>x</a><td>text"
    assert blocks(f"<table>{row.format(1, 2)}{row.format(3, 4)}</table>") == [
        (0, 2),
        (0, 2),
        (1, 2),
        (1, 2),
    ]


def test_a_lone_link_is_of_the_nearest_block_that_holds_another():
    html = "<div><p><a href=1>x</a><a href=2>x</a></p><p><a href=3>x</a></p></div><a href=4>x</a>"
    assert blocks(html) == [(0, 2), (0, 2), (1, 3), (2, 4)]


def test_a_pages_only_link_has_no_siblings_but_itself():
    assert blocks("<div><p><a href=1>x</a></p></div>") == [(0, 1)]


def test_two_links_to_one_target_make_no_block():
    html = "<li><a href=1><img src=i></a> <a href=1>one</a></li><li><a href=2>two</a></li>"
    assert blocks(f"<ul>{html}</ul>") == [(0, 2), (0, 2)]


class Nest:
    """HTML of nested blocks, and each link's block found by looking at all of them."""

    def __init__(self, shape: list[str]) -> None:
        self.html, self.around = "", list[tuple[int, ...]]()
        open_: list[int] = []
        for step, what in enumerate(shape):
            if what == "in":
                open_.append(step)
                self.html += "<div>"
            elif what == "link":
                self.html += f"<a href={step}>x</a>"
                self.around.append((-1, *open_))
            elif open_:
                open_.pop()
                self.html += "</div>"

    def blocks(self) -> list[tuple[int, int]]:
        numbers: dict[int, int] = {}
        found = []
        for own in self.around:
            held = {block: sum(block in other for other in self.around) for block in own}
            nearest = next((block for block in reversed(own) if held[block] > 1), -1)
            found.append((numbers.setdefault(nearest, len(numbers)), held[nearest]))
        return found


@given(st.lists(st.sampled_from(["in", "out", "link", "link"]), max_size=40))
def test_every_link_is_of_the_nearest_block_with_two_targets(shape):
    nest = Nest(shape)
    assert blocks(f"<body>text {nest.html}") == nest.blocks()


# Navigation


@pytest.mark.parametrize(
    "around",
    [
        "<nav>",
        "<header><p>",
        "<footer>",
        "<aside><div><b>",
        "<div role=Navigation>",
        "<ul class='wide breadcrumbs'>",
        "<div id=main-nav><ul><li>",
        "<span class=site_footer>",
        "<div class=Sidebar>",
    ],
)
def test_a_link_in_what_says_it_is_navigation_is_navigation(around):
    assert only_link(f"<body>{around}<a href=b>x</a>").navigation


@pytest.mark.parametrize(
    "around",
    [
        "<main><p>",
        "<nav>x</nav><p>",
        "<body class='nav sidebar'>",
        "<div class=nav-content>",
        "<div class=wy-grid-for-nav>",
        "<div class='content with-sidebar'>",
        "<div class=toctree-wrapper>",
        "<div class=piano role=main>",
    ],
)
def test_a_link_elsewhere_is_not_a_navigation(around):
    assert not only_link(f"{around}<a href=b>x</a>").navigation


def test_a_link_can_say_itself_that_it_is_navigation():
    links = links_of("<a class=toc href=1>x</a><a class=ref href=2>x</a>")
    assert [link.navigation for link in links] == [True, False]


@pytest.mark.parametrize("anchors", [("long anchor", "x"), ("x", "long anchor")])
def test_a_target_is_navigation_only_when_all_its_links_are(anchors):
    one, other = (f"<a href=b>{anchor}</a>" for anchor in anchors)
    assert not only_link(f"<nav>{one}</nav><p>{other}</p>").navigation
    assert not only_link(f"<p>{one}</p><nav>{other}</nav>").navigation
    assert only_link(f"<nav>{one}</nav><footer>{other}</footer>").navigation


# Pages made to hurt


def test_links_alone_in_deep_blocks_are_of_the_block_around_all_of_them():
    alone = "".join(f"{'<div>' * 40}<a href={i}>x</a>{'</div>' * 40}" for i in range(2_000))
    assert set(blocks(f"<main>{alone}</main>")) == {(0, 2_000)}
