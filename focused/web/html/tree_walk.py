"""Walk a document's tree and collect its text, links, headings and metadata."""

from __future__ import annotations

from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from focused.kernels.page_links import (
    BLOCK,
    BREAK,
    HEADING,
    IMAGE,
    INLINE,
    LABEL_ATTRIBUTES,
    LEAF,
    LINK,
    LOW_HEADING,
    SKIPPED,
    TEXT,
    Attributes,
    WalkedTree,
    collapse_whitespace,
    walk_tree,
)
from focused.web.decoding import media_type
from focused.web.http_response import parse_refresh
from focused.web.robots.robots_tags import ALL_ROBOTS

MAX_TITLE_CHARS = 500
MAX_DESCRIPTION_CHARS = 1_000
_MAX_TOLD_ROBOTS = 20

# fmt: off
_KINDS = {
    "-text": TEXT,
    **dict.fromkeys((
        "-comment", "-doctype", "!doctype", "datalist", "noembed", "noframes", "noscript", "style",
        "svg", "template",
    ), SKIPPED),
    **dict.fromkeys(("br", "hr"), BREAK),
    "img": IMAGE,
    **dict.fromkeys(("area", "base", "frame", "iframe", "link", "meta", "script", "title"), LEAF),
    "a": LINK,
    **dict.fromkeys((
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
        "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "li",
        "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "td", "th", "tr",
        "ul",
    ), BLOCK),
    **dict.fromkeys(("h4", "h5", "h6"), LOW_HEADING),
    **dict.fromkeys(("h1", "h2", "h3"), HEADING),
}
# fmt: on

SKIPPED_TAGS = frozenset(tag for tag, kind in _KINDS.items() if kind == SKIPPED) | {"script"}
BLOCK_TAGS = frozenset(tag for tag, kind in _KINDS.items() if kind >= BLOCK)
BREAK_TAGS = frozenset({"br", "hr"})
_NEXT_PAGES = frozenset({"next", "prev"})
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})


def get(attributes: Attributes, *names: str) -> str:
    """Return the first of these attributes that is not empty, else ``""``."""
    for name in names:
        if value := attributes.get(name):
            return value
    return ""


def is_json_ld(script_type: str | None) -> bool:
    """Return whether a script with this ``type``, parameters included, is JSON-LD."""
    return media_type(script_type or "") == "application/ld+json"


class TreeWalk:
    """Walks a tree once; its attributes hold the metadata, ``tree`` text, headings and links.

    ``meta`` has the first content of each meta element by lower-case name or property,
    ``meta_robots`` all contents for ``robots`` and for ``robot``; ``json_ld`` are the scripts in
    JSON-LD. Missing strings are ``""``.
    """

    def __init__(self, root: LexborNode | None, robot: str = "") -> None:
        self.tree = WalkedTree()
        self.meta: dict[str, str] = {}
        self.meta_robots: list[str] = []
        self.json_ld: list[str] = []
        self._robot_names = frozenset({ALL_ROBOTS, robot.lower()} - {""})
        self.title = ""
        self.base = ""
        self.canonical = ""
        self.feed = ""
        self.amp = ""
        self.refresh = ""
        self.language = get(root.attributes, "lang", "xml:lang") if root is not None else ""
        walk_tree(self.tree, root, _KIND_BY_TAG_ID, self._on_leaf)

    def add_declared_link(self, url: str, name: str) -> None:
        """Add a link that only the page's description has, after all others."""
        self.tree.add_link("script", {"href": url, "title": name}, "href", LABEL_ATTRIBUTES)

    def _on_leaf(self, node: LexborNode) -> None:
        _ON_LEAF[node.tag or ""](self, node)

    def _on_area(self, node: LexborNode) -> None:
        self.tree.add_link("area", node.attributes, "href", ("alt", *LABEL_ATTRIBUTES))

    def _on_frame(self, node: LexborNode) -> None:
        self.tree.add_link("frame", node.attributes, "src", LABEL_ATTRIBUTES)

    def _on_link(self, node: LexborNode) -> None:
        attributes = node.attributes
        relations = get(attributes, "rel").lower().split()
        if "canonical" in relations:
            self.canonical = self.canonical or get(attributes, "href")
        elif "amphtml" in relations:
            self.amp = self.amp or get(attributes, "href")
        elif "alternate" in relations and media_type(get(attributes, "type")) in _FEED_TYPES:
            self.feed = self.feed or get(attributes, "href")
        elif not _NEXT_PAGES.isdisjoint(relations) or (
            "alternate" in relations and attributes.get("hreflang")
        ):
            self.tree.add_link("link", attributes, "href", LABEL_ATTRIBUTES)

    def _on_meta(self, node: LexborNode) -> None:
        attributes = node.attributes
        content = get(attributes, "content")
        if name := get(attributes, "name", "property"):
            name = name.strip().lower()
            content = collapse_whitespace(content, MAX_DESCRIPTION_CHARS)
            self.meta.setdefault(name, content)
            if name in self._robot_names and len(self.meta_robots) < _MAX_TOLD_ROBOTS:
                self.meta_robots.append(content)
        elif get(attributes, "http-equiv").strip().lower() == "refresh" and (
            not self.refresh and parse_refresh(content) is not None
        ):
            self.refresh = content

    def _on_script(self, node: LexborNode) -> None:
        if is_json_ld(node.attributes.get("type")):
            self.json_ld.append(node.text())

    def _on_base(self, node: LexborNode) -> None:
        self.base = self.base or get(node.attributes, "href")

    def _on_title(self, node: LexborNode) -> None:
        self.title = self.title or collapse_whitespace(node.text(), MAX_TITLE_CHARS)


def _kinds_by_tag_id() -> bytes:
    """Return the kinds by Lexbor's number of the tag, which is read faster than its name.

    The numbers of the standard's tags are constants; other tags have no kind.
    """
    tree = LexborHTMLParser("<!doctype html><!-- -->text")
    assert tree.root is not None and tree.body is not None
    nodes = [tree.body.first_child, comment := tree.root.prev, comment and comment.prev]
    nodes += [tree.create_node(tag) for tag in _KINDS if tag[0].isalpha()]
    known = {node.tag_id: _KINDS[node.tag or ""] for node in nodes if node is not None}
    return bytes(known.get(number, INLINE) for number in range(max(known) + 1))


_KIND_BY_TAG_ID = _kinds_by_tag_id()


_ON_LEAF: dict[str, Callable[[TreeWalk, LexborNode], None]] = {
    "area": TreeWalk._on_area,
    "base": TreeWalk._on_base,
    "frame": TreeWalk._on_frame,
    "iframe": TreeWalk._on_frame,
    "link": TreeWalk._on_link,
    "meta": TreeWalk._on_meta,
    "script": TreeWalk._on_script,
    "title": TreeWalk._on_title,
}
