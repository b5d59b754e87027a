"""The context of a link: anchor, words around it, tag path, block, navigation.

All reads are slices of bounded length, so that the cost is proportional to the number of links.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec

from focused.web.html.tree_walk import (
    LABEL_ATTRIBUTES,
    Block,
    RawLink,
    Stack,
    TreeWalk,
    collapse_whitespace,
    get,
)

CONTEXT_WORDS = 40
_HALF = CONTEXT_WORDS // 2
HEADING_WORDS = 10
MAX_ANCHOR_CHARS = 300
MAX_HEADING_CHARS = 500
MAX_LINK_TITLE_CHARS = 200
MAX_REL_TOKENS = 8

_NOT_FOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})
_MIN_CONTEXT_CHARS = 30  # a block with fewer characters gives way to its parent
_MAX_CONTEXT_LEVELS = 2
_WINDOW_CHARS = 200
_PATH_DEPTH = 24
_PATH_CLASSES = 2
_PATH_NAME_CHARS = 40
_MAX_NAME_CHARS = 200
_CACHED_NAMES = 4_096
_REL_CHARS = 200
_REL_TOKEN_CHARS = 20


class LinkContext(msgspec.Struct, frozen=True, gc=False):
    """The words around a link: see :class:`focused.web.page.Link`."""

    text: str
    words_before: int
    heading_words: int
    context_levels: int


class LinkContextReader:
    """Reads the text and the links' context from a finished walk."""

    def __init__(self, walk: TreeWalk) -> None:
        self._walk = walk
        self._text = "".join(walk.pieces)
        self._offsets = [0, *accumulate(map(len, walk.pieces))]
        self._heading_words: dict[tuple[int, int], list[str]] = {}

    def text(self) -> str:
        """Return the page's visible text with white space collapsed."""
        return " ".join(self._text.split())

    def headings(self) -> tuple[str, ...]:
        """Return the texts of h1 to h3, in document order."""
        texts = (self._slice(range_, MAX_HEADING_CHARS) for range_ in self._walk.headings)
        return tuple(text for text in texts if text)

    def anchor(self, link: RawLink) -> str:
        """Return the link's text with the alts of its images, else its label."""
        offsets = self._offsets
        text = collapse_whitespace(
            self._text[offsets[link.start] : offsets[link.end]], MAX_ANCHOR_CHARS
        )
        if link.alts:
            text = collapse_whitespace(" ".join((text, *link.alts)), MAX_ANCHOR_CHARS)
        return text or collapse_whitespace(get(link.attributes, *link.label), MAX_ANCHOR_CHARS)

    def context(self, link: RawLink) -> LinkContext:
        """Return the words of the link's block around it, then the heading above.

        A block with little other text (a list item, a cell) gives way to its parent.
        """
        offsets = self._offsets
        start, end = offsets[link.start], offsets[link.end]
        block = link.block
        first, last = offsets[block.start], offsets[block.end]
        context_levels = 0
        while (
            start - first + last - end < _MIN_CONTEXT_CHARS and context_levels < _MAX_CONTEXT_LEVELS
        ):
            if block.parent is None:
                break
            context_levels += 1
            block = block.parent
            first, last = offsets[block.start], offsets[block.end]
        text, heading = self._text, self._words_of_heading(link.heading)
        before = text[max(first, start - _WINDOW_CHARS) : start].rsplit(None, _HALF)
        after = text[end : min(last, end + _WINDOW_CHARS)].split(None, _HALF)
        # The rest of the text is one more item.
        words = before[-_HALF:]
        words_before = len(words)
        words += after[:_HALF]
        words += heading
        return LinkContext(" ".join(words), words_before, len(heading), context_levels)

    def place(self, link: RawLink) -> tuple[str, bool]:
        """Return a link's tag path, and whether it stands in navigation.

        The path goes from ``body`` to the link, with classes, 24 levels at most.
        """
        path, navigation = _place_of(link.block)
        if link.inline:
            path, navigation = _extend((path, navigation), link.inline)
        if len(link.attributes) == 1:  # only the target
            return f"{path}/{link.tag}", navigation
        navigation = navigation or is_navigation(link.tag, link.attributes)
        classes = (link.attributes.get("class") or "")[:_MAX_NAME_CHARS]
        return f"{path}/{_name(link.tag, classes)}", navigation

    def is_in_navigation(self, link: RawLink) -> bool:
        """Whether a link stands in navigation."""
        return _place_of(link.block)[1] or self.place(link)[1]

    def title(self, link: RawLink, anchor: str) -> str:
        """Return the link's title if the anchor does not contain it, else ``""``."""
        # Most links have only a target.
        title = get(link.attributes, *LABEL_ATTRIBUTES) if len(link.attributes) > 1 else ""
        if not title:
            return ""
        title = collapse_whitespace(title, MAX_LINK_TITLE_CHARS)
        return "" if title in anchor else title

    def _words_of_heading(self, heading: tuple[int, int]) -> list[str]:
        words = self._heading_words.get(heading)
        if words is None:
            words = self._slice(heading, MAX_HEADING_CHARS).split()[:HEADING_WORDS]
            self._heading_words[heading] = words
        return words

    def _slice(self, range_: tuple[int, int], max_chars: int) -> str:
        text = self._text[self._offsets[range_[0]] : self._offsets[range_[1]]]
        return collapse_whitespace(text, max_chars)


def merge_rel(links: Sequence[RawLink]) -> tuple[bool, tuple[str, ...]]:
    """Return whether the rel of all links says nofollow, ugc or sponsored, and their tokens.

    Tokens are in lower case: the first 8, of 20 characters at most.
    """
    rels = [rel for link in links if (rel := link.attributes.get("rel"))]
    if not rels:
        return False, ()
    is_nofollow = len(rels) == len(links) and all(
        not _NOT_FOLLOWED.isdisjoint(rel.lower().split()) for rel in rels
    )
    words = [word for rel in rels for word in rel[:_REL_CHARS].lower().split()]
    tokens = [word[:_REL_TOKEN_CHARS] for word in words]
    return is_nofollow, tuple(dict.fromkeys(tokens))[:MAX_REL_TOKENS]


def _place_of(block: Block) -> tuple[str, bool]:
    """Return the tag path of a block, and whether it is navigation."""
    if block.place is not None:
        return block.place
    pending = []
    above: Block | None = block
    while above is not None and above.place is None:
        pending.append(above)
        above = above.parent
    place = ("", False) if above is None or above.place is None else above.place
    for each in reversed(pending):
        place = each.place = _extend(place, each.inline)
    return place


def _extend(place: tuple[str, bool], elements: Stack) -> tuple[str, bool]:
    path, navigation = place
    for node, _ in elements:
        tag, attributes = node.tag or "", node.attributes
        extended = _extend_path(path, tag, (attributes.get("class") or "")[:_MAX_NAME_CHARS])
        if extended is not path:
            path = extended
            navigation = navigation or is_navigation(tag, attributes)
    return path, navigation


@lru_cache(_CACHED_NAMES)
def _extend_path(path: str, tag: str, classes: str) -> str:
    """Return the path of an element below ``path``; ``path`` itself if that is long enough."""
    if tag == "html" or path.count("/") >= _PATH_DEPTH:
        return path
    name = _name(tag, classes)
    return f"{path}/{name}" if path else name


@lru_cache(_CACHED_NAMES)
def _name(tag: str, classes: str) -> str:
    return ".".join((tag, *classes.split()[:_PATH_CLASSES]))[:_PATH_NAME_CHARS] if classes else tag


def group_by_block(links: Sequence[RawLink]) -> list[tuple[int, int]]:
    """Return, for each link, the number of its block and how many of the links that block holds.

    A link's block is the nearest one around it that holds another of the links, else the page.
    Numbers follow document order. The cost is that of sorting, however deep blocks nest.
    """
    order = sorted(range(len(links)), key=lambda i: links[i].start)
    starts = [links[i].start for i in order]
    groups = [(0, 1)] * len(links)
    known: dict[int, tuple[int, int]] = {}
    before = -1
    for i, after in zip(order, [*starts[1:], sys.maxsize], strict=False):
        block = links[i].block
        while before < block.start and block.end < after and block.parent is not None:
            block = block.parent
        group = known.get(id(block))
        if group is None:
            held = bisect_right(starts, block.end) - bisect_left(starts, block.start)
            group = known[id(block)] = (len(known), held)
        groups[i] = group
        before = links[i].start
    return groups


NAVIGATION_TAGS = frozenset({"nav", "header", "footer", "aside"})
NAVIGATION_ROLES = frozenset({"navigation", "menu", "menubar", "banner", "contentinfo"})
# fmt: off
NAVIGATION_WORDS = frozenset({
    "banner", "breadcrumb", "breadcrumbs", "crumbs", "footer", "header", "masthead", "menu",
    "menubar", "nav", "navbar", "navfooter", "navheader", "navigation", "navpath", "pager",
    "pagination", "related", "sidebar", "sidenav", "sphinxsidebar", "subnav", "toc", "topbar",
    "topnav",
})
# ``has-sidebar`` and ``grid-for-nav`` describe the page, not the element.
_NEGATING_WORDS = frozenset({"for", "has", "hide", "no", "show", "with", "without"})


def is_navigation(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """Whether an element declares itself navigation; ``html`` and ``body`` never do.

    Declarations are the elements nav, header, footer and aside, some ARIA roles, and class and id
    names whose last word is one of a list (``main-nav``, but neither ``nav-content`` nor
    ``grid-for-nav``). Nothing is inferred from layout. The first 200 characters of class and id are
    read.
    """
    if tag in NAVIGATION_TAGS:
        return True
    if not attributes or tag in ("html", "body"):
        return False
    role = attributes.get("role")
    if role and role.strip().lower() in NAVIGATION_ROLES:
        return True
    classes, name = attributes.get("class"), attributes.get("id")
    return bool(
        (classes and _has_navigation_name(classes[:_MAX_NAME_CHARS]))
        or (name and _has_navigation_name(name[:_MAX_NAME_CHARS]))
    )


@lru_cache(_CACHED_NAMES)
def _has_navigation_name(names: str) -> bool:
    for name in names.lower().replace("_", "-").split():
        if name.rpartition("-")[2] in NAVIGATION_WORDS and _NEGATING_WORDS.isdisjoint(
            name.split("-")
        ):
            return True
    return False
