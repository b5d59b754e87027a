"""Compiled and interpreted, a tree has the same text, headings and links."""

from collections.abc import Callable
from itertools import starmap
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from focused.kernels import page_links

KIND_NAMES = {
    "p": "BLOCK",
    "ul": "BLOCK",
    "li": "BLOCK",
    "nav": "BLOCK",
    "a": "LINK",
    "br": "BREAK",
    "img": "IMAGE",
    "area": "LEAF",
    "script": "SKIPPED",
    "h2": "HEADING",
    "h5": "LOW_HEADING",
}
ATTRIBUTES = st.dictionaries(
    st.sampled_from(("href", "data-href", "class", "id", "role", "rel", "title", "alt")),
    st.sampled_from(("/a", "/b#c", "#", "", "main-nav x", "menu", "nofollow UGC", "é\ud800")),
    max_size=3,
)
TAGS = st.builds(
    lambda name, values: "<" + " ".join((name, *starmap('{}="{}"'.format, values.items()))) + ">",
    st.sampled_from(
        (*KIND_NAMES, "span", "my-tag", "html", "/ul", "/nav", "/a", "/h2", "/span", "/script")
    ),
    ATTRIBUTES,
)
PAGES = st.lists(st.text("ab é\u3000中\n", max_size=9) | TAGS, max_size=60).map("".join)


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("page_links")


def read(kernel: Any, html: str, max_links: int) -> object:
    tree = LexborHTMLParser(html.encode("utf-8", "replace"))
    kinds = bytearray([kernel.INLINE] * 256)
    for tag, kind in KIND_NAMES.items():
        kinds[tree.create_node(tag).tag_id] = getattr(kernel, kind)
    kinds[LexborHTMLParser("text").body.first_child.tag_id] = kernel.TEXT
    walk = kernel.WalkedTree()

    def on_area(node: Any) -> None:
        walk.add_link("area", node.attributes, "href", ("alt",))

    kernel.walk_tree(walk, tree.root, bytes(kinds), on_area)
    return kernel.read_walk(walk, "/own", lambda url: url.partition("#")[0] or "/own", max_links)


@settings(deadline=None)
@given(PAGES, st.integers(1, 5))
def test_compiled_and_interpreted_read_alike(source, html, max_links):
    assert read(page_links, html, max_links) == read(source, html, max_links)


def test_a_link_has_the_words_around_it_and_its_path(source):
    html = (
        "<h2>Head</h2><ul class=nav><li>many words that stand before it, <a href=/x>to x</a> after"
    )
    found: Any = read(source, html, 5)
    text, headings, links, cut = found
    assert (text, headings, cut) == (
        "Head many words that stand before it, to x after",
        ["Head"],
        0,
    )
    url, anchor, context, path, *_ = links[0]
    assert (url, anchor, context) == ("/x", "to x", "many words that stand before it, after Head")
    assert path == "body/ul.nav/li/a"
    assert found == read(page_links, html, 5)


@given(st.lists(st.text("ab é\u3000\u2009\xa0\x1c\n\t", max_size=6), max_size=12))
def test_white_space_is_collapsed_across_pieces_and_offsets_are_those_of_their_ends(pieces):
    text, offsets = page_links.join_collapsed(pieces)
    joined = [" ".join("".join(pieces[:end]).split()) for end in range(len(pieces) + 1)]
    assert text == joined[-1]
    assert [offsets[i] for i in range(len(pieces) + 1)] == list(map(len, joined))
