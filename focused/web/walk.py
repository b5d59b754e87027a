"""The walk over a document's tree that lays its text down in one string.

Blocks, headings and links are ranges of it. What is found on the way is kept
raw; :mod:`focused.web.parse` makes a page of it. The walk keeps its own
stack: depth costs memory, never recursion; and what is read around a link is
bounded, so that the whole stays linear in the size of the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

from selectolax.lexbor import LexborNode

CONTEXT_WORDS = 40
HEADING_WORDS = 10
MAX_ANCHOR_CHARS = 300
MAX_TITLE_CHARS = 500
MAX_DESCRIPTION_CHARS = 1_000
MAX_HEADINGS = 200

# Kinds of nodes: what the walk does with them. From _LINK on, leaving them matters.
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
_NOT_FOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})
_NEXT_PAGES = frozenset({"next", "prev"})

_FEW_CHARS = 30  # a block with less around a link says too little
_WIDER_BLOCKS = 2
_WINDOW_CHARS = 200
_PATH_DEPTH = 24
_PATH_CLASSES = 2
_PATH_NAME_CHARS = 40

_Attributes = dict[str, str | None]


@dataclass(slots=True)
class Block:
    """A block element as a range of pieces; ``end`` is known once it is left."""

    start: int
    parent: Block | None
    depth: int
    end: int = 0
    path: str | None = None


@dataclass(slots=True)
class RawLink:
    """A link whose URL is not resolved; pieces ``start`` to ``end`` are its anchor."""

    href: str
    start: int
    end: int
    block: Block
    heading: tuple[int, int]
    tag_path: str
    nofollow: bool
    label: str  # what it is called when it has no text
    alts: list[str] = field(default_factory=list)


def _get(attributes: _Attributes, *names: str) -> str:
    """Return the first of these attributes that says something."""
    for name in names:
        if value := attributes.get(name):
            return value
    return ""


def _collapse(text: str, max_chars: int) -> str:
    return " ".join(text[: 4 * max_chars].split())[:max_chars]


class Walk:
    """Visits a tree once; afterwards its attributes hold what was found.

    ``meta`` has the lower-case names (or properties) of meta elements and
    their first contents. Strings are ``""`` when the page does not say.
    """

    def __init__(self, root: LexborNode | None) -> None:
        self.links: list[RawLink] = []
        self.meta: dict[str, str] = {}
        self.title = ""
        self.base = ""
        self.canonical = ""
        self.refresh = ""
        self.language = _get(root.attributes, "lang", "xml:lang") if root else ""
        self._pieces: list[str] = []
        self._stack: list[tuple[LexborNode, int]] = []
        self._block = Block(0, None, 0, path="")
        self._open_links: list[RawLink] = []
        self._heading = (0, 0)
        self._headings: list[tuple[int, int]] = []
        self._visit(root)
        self._block.end = len(self._pieces)
        self._text = "".join(self._pieces)
        self._offsets = [0, *accumulate(map(len, self._pieces))]

    def _visit(self, node: LexborNode | None) -> None:
        pieces, stack = self._pieces, self._stack
        while node is not None:
            kind = _KINDS.get(node.tag or "", _INLINE)
            if kind == _TEXT:
                pieces.append(node.text_content or "")
            elif kind == _LEAF:
                _ON_LEAF[node.tag or ""](self, node)
            elif kind != _SKIPPED:
                child = node.first_child
                if kind != _INLINE:
                    kind = self._enter(kind, node, child is not None)
                if child is not None:
                    stack.append((node, kind))
                    node = child
                    continue
            following = node.next
            while following is None and stack:
                node, kind = stack.pop()
                if kind != _INLINE:
                    self._leave(kind)
                following = node.next
            node = following

    def _enter(self, kind: int, node: LexborNode, has_content: bool) -> int:
        """Begin a block or a link; return the kind to leave it by."""
        if kind == _LINK:
            attributes = node.attributes
            href = attributes.get("href")
            if not href:
                return _INLINE
            label = _get(attributes, "title", "aria-label")
            self._add_link("a", attributes, href, label)
            if has_content:
                self._open_links.append(self.links[-1])
            return kind
        self._pieces.append("\n")
        if has_content:
            self._block = Block(len(self._pieces), self._block, len(self._stack) + 1)
        return kind

    def _leave(self, kind: int) -> None:
        if kind == _LINK:
            self._open_links.pop().end = len(self._pieces)
            return
        block = self._block
        block.end = len(self._pieces)
        self._pieces.append("\n")
        if block.parent is not None:
            self._block = block.parent
        if kind != _BLOCK:
            self._heading = (block.start, block.end)
            if kind == _HEADING and len(self._headings) < MAX_HEADINGS:
                self._headings.append(self._heading)

    def _on_area(self, node: LexborNode) -> None:
        attributes = node.attributes
        if href := attributes.get("href"):
            self._add_link(
                "area", attributes, href, _get(attributes, "alt", "title", "aria-label")
            )

    def _on_frame(self, node: LexborNode) -> None:
        attributes = node.attributes
        if src := attributes.get("src"):
            self._add_link("frame", attributes, src, _get(attributes, "title"))

    def _on_link(self, node: LexborNode) -> None:
        attributes = node.attributes
        href = attributes.get("href")
        relations = _get(attributes, "rel").lower().split()
        if href and "canonical" in relations:
            self.canonical = self.canonical or href
        elif href and not _NEXT_PAGES.isdisjoint(relations):
            self._add_link("link", attributes, href, _get(attributes, "title"))

    def _on_image(self, node: LexborNode) -> None:
        if self._open_links and (alt := _get(node.attributes, "alt")):
            self._open_links[-1].alts.append(_collapse(alt, MAX_ANCHOR_CHARS))

    def _on_meta(self, node: LexborNode) -> None:
        attributes = node.attributes
        content = _get(attributes, "content")
        if name := _get(attributes, "name", "property"):
            self.meta.setdefault(
                name.strip().lower(), _collapse(content, MAX_DESCRIPTION_CHARS)
            )
        elif _get(attributes, "http-equiv").strip().lower() == "refresh":
            self.refresh = self.refresh or content

    def _on_base(self, node: LexborNode) -> None:
        self.base = self.base or _get(node.attributes, "href")

    def _on_title(self, node: LexborNode) -> None:
        self.title = self.title or _collapse(node.text(), MAX_TITLE_CHARS)

    def _on_break(self, node: LexborNode) -> None:
        self._pieces.append("\n")

    def _add_link(
        self, tag: str, attributes: _Attributes, href: str, label: str
    ) -> None:
        here = len(self._pieces)
        path = f"{self._path()}/{_path_name(tag, attributes)}"
        rel = attributes.get("rel")
        nofollow = rel is not None and not _NOT_FOLLOWED.isdisjoint(rel.lower().split())
        self.links.append(
            RawLink(href, here, here, self._block, self._heading, path, nofollow, label)
        )

    def _path(self) -> str:
        """Return the path from ``body`` to the innermost open element, classes included."""
        pending: list[Block] = []
        block: Block | None = self._block
        while block is not None and block.path is None:
            pending.append(block)
            block = block.parent
        path, depth = (block.path or "", block.depth) if block is not None else ("", 0)
        for block in reversed(pending):
            path = block.path = self._path_down(path, depth, block.depth)
            depth = block.depth
        return self._path_down(path, depth, len(self._stack))

    def _path_down(self, path: str, depth: int, to_depth: int) -> str:
        for node, _ in self._stack[depth : min(to_depth, _PATH_DEPTH)]:
            tag = node.tag or ""
            if tag != "html":
                name = _path_name(tag, node.attributes)
                path = f"{path}/{name}" if path else name
        return path

    def text(self) -> str:
        """Return the visible text, white space collapsed."""
        return " ".join(self._text.split())

    def headings(self) -> tuple[str, ...]:
        """Return the texts of h1 to h3."""
        texts = (self._slice(range_, MAX_TITLE_CHARS) for range_ in self._headings)
        return tuple(text for text in texts if text)

    def anchor(self, link: RawLink) -> str:
        """Return the link's own text with the alts of its images, or else its label."""
        text = self._slice((link.start, link.end), MAX_ANCHOR_CHARS)
        if link.alts:
            text = " ".join((text, *link.alts)).strip()[:MAX_ANCHOR_CHARS]
        return text or _collapse(link.label, MAX_ANCHOR_CHARS)

    def context(self, link: RawLink) -> str:
        """Return the words around a link: of its block, then of the heading above.

        A block that holds little else (a list item, a cell, a result's title)
        gives way to the one around it.
        """
        offsets = self._offsets
        start, end = offsets[link.start], offsets[link.end]
        block = link.block
        around = offsets[block.start], offsets[block.end]
        for _ in range(_WIDER_BLOCKS):
            if (
                start - around[0] + around[1] - end >= _FEW_CHARS
                or block.parent is None
            ):
                break
            block = block.parent
            around = offsets[block.start], offsets[block.end]
        half = CONTEXT_WORDS // 2
        words = self._text[max(around[0], start - _WINDOW_CHARS) : start].split()[
            -half:
        ]
        words += self._text[end : min(around[1], end + _WINDOW_CHARS)].split()[:half]
        words += self._slice(link.heading, MAX_TITLE_CHARS).split()[:HEADING_WORDS]
        return " ".join(words)

    def _slice(self, range_: tuple[int, int], max_chars: int) -> str:
        text = self._text[self._offsets[range_[0]] : self._offsets[range_[1]]]
        return _collapse(text, max_chars)


def _path_name(tag: str, attributes: _Attributes) -> str:
    classes = attributes.get("class")
    if not classes:
        return tag
    return ".".join((tag, *classes[:200].split()[:_PATH_CLASSES]))[:_PATH_NAME_CHARS]


_ON_LEAF = {
    "area": Walk._on_area,
    "base": Walk._on_base,
    "br": Walk._on_break,
    "frame": Walk._on_frame,
    "hr": Walk._on_break,
    "iframe": Walk._on_frame,
    "img": Walk._on_image,
    "link": Walk._on_link,
    "meta": Walk._on_meta,
    "title": Walk._on_title,
}
