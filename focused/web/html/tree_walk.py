"""Walk a document's tree and collect its text, links, headings and metadata.

Blocks, headings and links are ranges of text pieces.
:class:`~focused.web.html.link_context.LinkContextReader` reads them only for the links that are
kept. The walk has its own stack, so that depth never causes recursion.
"""

from __future__ import annotations

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from focused.web.http_response import parse_refresh
from focused.web.robots.robots_tags import ALL_ROBOTS

MAX_TITLE_CHARS = 500
MAX_DESCRIPTION_CHARS = 1_000
MAX_HEADINGS = 200
_MAX_TOLD_ROBOTS = 20
MAX_ALTS = 10
MAX_INLINE = 24  # inline elements kept between a block or link and its parent block

# Kinds of nodes. From _LINK on, the end of the element matters.
_TEXT, _SKIPPED, _LEAF, _INLINE, _LINK, _BLOCK, _LOW_HEADING, _HEADING = range(8)

# fmt: off
_KINDS = {
    "-text": _TEXT,
    **dict.fromkeys((
        "-comment", "-doctype", "!doctype", "datalist", "noembed", "noframes", "noscript",
        "script", "style", "svg", "template",
    ), _SKIPPED),
    **dict.fromkeys((
        "area", "base", "br", "frame", "hr", "iframe", "img", "link", "meta", "title",
    ), _LEAF),
    "a": _LINK,
    **dict.fromkeys((
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
        "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "li",
        "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "td", "th", "tr",
        "ul",
    ), _BLOCK),
    **dict.fromkeys(("h4", "h5", "h6"), _LOW_HEADING),
    **dict.fromkeys(("h1", "h2", "h3"), _HEADING),
}
# fmt: on

SKIPPED_TAGS = frozenset(tag for tag, kind in _KINDS.items() if kind == _SKIPPED)
BLOCK_TAGS = frozenset(tag for tag, kind in _KINDS.items() if kind >= _BLOCK)
BREAK_TAGS = frozenset({"br", "hr"})
_HREF_ATTRIBUTES = ("href", "data-href")
_NEXT_PAGES = frozenset({"next", "prev"})
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
LABEL_ATTRIBUTES = ("title", "aria-label")

Attributes = dict[str, str | None]
Stack = list[tuple[LexborNode, int]]


# Structs, not dataclasses: a page has hundreds, and structs are created three times as fast.
class Block(msgspec.Struct, gc=False):
    """A block element as a range of pieces; ``end`` is set when the walk leaves it.

    ``inline`` holds the inline elements between the parent block and this block, outermost first,
    then the block itself.
    """

    start: int
    parent: Block | None
    inline: Stack
    depth: int
    end: int = 0
    place: tuple[str, bool] | None = None


class RawLink(msgspec.Struct, gc=False):
    """A link with an unresolved URL; pieces ``start`` to ``end`` are its anchor.

    ``label`` names the attributes that replace a missing anchor; ``inline`` holds the inline
    elements between the link and its block. ``alts`` are those of the first images in the link.
    """

    tag: str
    href: str
    attributes: Attributes
    start: int
    end: int
    block: Block
    inline: Stack
    heading: tuple[int, int]
    label: tuple[str, ...] = LABEL_ATTRIBUTES
    alts: tuple[str, ...] = ()


def get(attributes: Attributes, *names: str) -> str:
    """Return the first of these attributes that is not empty, else ``""``."""
    for name in names:
        if value := attributes.get(name):
            return value
    return ""


def collapse_whitespace(text: str, max_chars: int) -> str:
    """Return the beginning of a text with white space collapsed."""
    return " ".join(text[: 4 * max_chars].split())[:max_chars]


class TreeWalk:
    """Walks a tree once; its attributes hold the results.

    The text is ``"".join(pieces)``. ``headings`` are the ranges of h1 to h3. ``meta`` has the first
    content of each meta element by lower-case name or property, ``meta_robots`` all contents for
    ``robots`` and for ``robot``. Missing strings are ``""``.
    """

    def __init__(self, root: LexborNode | None, robot: str = "") -> None:
        self.pieces: list[str] = []
        self.links: list[RawLink] = []
        self.headings: list[tuple[int, int]] = []
        self.meta: dict[str, str] = {}
        self.meta_robots: list[str] = []
        self._robot_names = frozenset({ALL_ROBOTS, robot.lower()} - {""})
        self.title = ""
        self.base = ""
        self.canonical = ""
        self.feed = ""
        self.amp = ""
        self.refresh = ""
        self.language = get(root.attributes, "lang", "xml:lang") if root is not None else ""
        self._stack: Stack = []
        self._block = Block(0, None, [], 0, place=("", False))
        self._open_links: list[RawLink] = []
        self._heading = (0, 0)
        self._visit(root)
        self._block.end = len(self.pieces)

    def _visit(self, node: LexborNode | None) -> None:
        pieces, stack, kinds = self.pieces, self._stack, _KIND_BY_TAG_ID.get
        while node is not None:
            kind = kinds(node.tag_id, _INLINE)
            if kind == _TEXT:
                pieces.append(node.text_content or "")
            elif kind == _LEAF:
                _ON_LEAF[node.tag or ""](self, node)
            elif kind != _SKIPPED:
                child = node.first_child
                if kind == _LINK:
                    kind = self._begin_link(node)
                elif kind != _INLINE:
                    pieces.append("\n")
                if child is not None:
                    # The common case: a single text child.
                    if kind <= _BLOCK and kinds(child.tag_id) == _TEXT and child.next is None:
                        pieces.append(child.text_content or "")
                        if kind == _LINK:
                            self.links[-1].end = len(pieces)
                        elif kind == _BLOCK:
                            pieces.append("\n")
                    else:
                        stack.append((node, kind))
                        if kind == _LINK:
                            self._open_links.append(self.links[-1])
                        elif kind != _INLINE:
                            around = self._block
                            depth = around.depth
                            inline = stack[depth : depth + MAX_INLINE]
                            self._block = Block(len(pieces), around, inline, len(stack))
                        node = child
                        continue
            following = node.next
            while following is None and stack:
                node, kind = stack.pop()
                if kind == _LINK:
                    self._open_links.pop().end = len(pieces)
                elif kind != _INLINE:
                    self._leave_block(kind)
                following = node.next
            node = following

    def _leave_block(self, kind: int) -> None:
        block, end = self._block, len(self.pieces)
        block.end = end
        self.pieces.append("\n")
        if block.parent is not None:
            self._block = block.parent
        if kind != _BLOCK:
            self._heading = (block.start, end)
            if kind == _HEADING and len(self.headings) < MAX_HEADINGS:
                self.headings.append(self._heading)

    def _begin_link(self, node: LexborNode) -> int:
        """Store the link's target; return the element's kind."""
        attributes = node.attributes
        for target in _HREF_ATTRIBUTES:
            if attributes.get(target):
                self._add_link("a", attributes, target)
                return _LINK
        return _INLINE

    def _add_link(
        self,
        tag: str,
        attributes: Attributes,
        target: str = "href",
        label: tuple[str, ...] = LABEL_ATTRIBUTES,
    ) -> None:
        if href := attributes.get(target):
            here = len(self.pieces)
            block = self._block
            inline = self._stack[block.depth : block.depth + MAX_INLINE]
            self.links.append(
                RawLink(tag, href, attributes, here, here, block, inline, self._heading, label)
            )

    def add_declared_link(self, url: str, name: str) -> None:
        """Add a link that only the page's description has, after all others."""
        self._add_link("script", {"href": url, "title": name})

    def _on_area(self, node: LexborNode) -> None:
        self._add_link("area", node.attributes, label=("alt", *LABEL_ATTRIBUTES))

    def _on_frame(self, node: LexborNode) -> None:
        self._add_link("frame", node.attributes, target="src")

    def _on_link(self, node: LexborNode) -> None:
        attributes = node.attributes
        relations = get(attributes, "rel").lower().split()
        if "canonical" in relations:
            self.canonical = self.canonical or get(attributes, "href")
        elif "amphtml" in relations:
            self.amp = self.amp or get(attributes, "href")
        elif "alternate" in relations and (
            get(attributes, "type").partition(";")[0].strip().lower() in _FEED_TYPES
        ):
            self.feed = self.feed or get(attributes, "href")
        elif not _NEXT_PAGES.isdisjoint(relations) or (
            "alternate" in relations and attributes.get("hreflang")
        ):
            self._add_link("link", attributes)

    def _on_image(self, node: LexborNode) -> None:
        if self._open_links and (alt := get(node.attributes, "alt")):
            link = self._open_links[-1]
            if len(link.alts) < MAX_ALTS:
                link.alts += (alt,)

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

    def _on_base(self, node: LexborNode) -> None:
        self.base = self.base or get(node.attributes, "href")

    def _on_title(self, node: LexborNode) -> None:
        self.title = self.title or collapse_whitespace(node.text(), MAX_TITLE_CHARS)

    def _on_break(self, node: LexborNode) -> None:
        self.pieces.append("\n")


def _kinds_by_tag_id() -> dict[int, int]:
    """Return the kinds by Lexbor's number of the tag, which is read faster than its name.

    The numbers of the standard's tags are constants; other tags have no kind.
    """
    tree = LexborHTMLParser("<!doctype html><!-- -->text")
    assert tree.root is not None and tree.body is not None
    nodes = [tree.body.first_child, comment := tree.root.prev, comment and comment.prev]
    nodes += [tree.create_node(tag) for tag in _KINDS if tag[0].isalpha()]
    return {node.tag_id: _KINDS[node.tag or ""] for node in nodes if node is not None}


_KIND_BY_TAG_ID = _kinds_by_tag_id()


_ON_LEAF = {
    "area": TreeWalk._on_area,
    "base": TreeWalk._on_base,
    "br": TreeWalk._on_break,
    "frame": TreeWalk._on_frame,
    "hr": TreeWalk._on_break,
    "iframe": TreeWalk._on_frame,
    "img": TreeWalk._on_image,
    "link": TreeWalk._on_link,
    "meta": TreeWalk._on_meta,
    "title": TreeWalk._on_title,
}
