"""The text of a page's blocks without navigation and advertising, to compare versions of a page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from focused.web.decoding import MAX_PARSED_BYTES, decode, limit_markup, media_type_of
from focused.web.html.tree_walk import BLOCK_TAGS, BREAK_TAGS, SKIPPED_TAGS
from focused.web.page import Fetched

MAX_BLOCK_TEXT_CHARS = 200_000

# fmt: off
_ADVERTISING_WORDS = frozenset({
    "ad", "ads", "adsbygoogle", "advert", "advertisement", "advertising", "adverts", "consent",
    "cookie", "cookies", "newsletter", "promo", "recommended", "share", "sharing", "social",
    "sponsor", "sponsored", "sponsors", "trending",
})
# fmt: on
_MIN_SHARE = 0.2
_MAX_NAME_CHARS = 200
_CACHED_NAMES = 4_096


def text_blocks(fetched: Fetched) -> tuple[str, ...]:
    """Return the texts of a page's block elements in document order, white space collapsed.

    Leaves out blocks that declare themselves navigation or advertising, unless four fifths of the
    page do. Uses the first 2,000,000 bytes and 200,000 characters. Never raises for a page that
    :func:`~focused.web.html.parse.parse_page` accepts.
    """
    html, _ = decode(fetched.body[:MAX_PARSED_BYTES], fetched.headers)
    if media_type_of(fetched.headers) == "text/plain":
        return _split_blocks([html])
    try:
        tree = LexborHTMLParser(limit_markup(html), scripting=True)
    except SelectolaxError as error:  # Lexbor fails only for lack of memory
        raise MemoryError("no memory to parse the page") from error
    own, other = _collect(tree.body)
    blocks, left_out = _split_blocks(own), _split_blocks(other)
    own_chars, other_chars = sum(map(len, blocks)), sum(map(len, left_out))
    return blocks if own_chars >= _MIN_SHARE * (own_chars + other_chars) else blocks + left_out


def _collect(root: LexborNode | None) -> tuple[list[str], list[str]]:
    """Return the text of a tree, and that of its navigation and advertising."""
    own: list[str] = []
    other: list[str] = []
    pieces = own
    stack: list[tuple[LexborNode, bool]] = []  # open elements; whether one ends navigation
    node = root
    while node is not None:
        tag = node.tag or ""
        if tag == "-text":
            pieces.append((node.text_content or "").replace("\n", " "))
        elif tag not in SKIPPED_TAGS:
            is_block = tag in BLOCK_TAGS
            if is_block or tag in BREAK_TAGS:
                pieces.append("\n")
            begins_other = pieces is own and (is_block or tag == "ins") and _is_other(tag, node)
            child = node.first_child
            if child is not None:
                stack.append((node, begins_other))
                pieces = other if begins_other else pieces
                node = child
                continue
        following = node.next
        while following is None and stack:
            node, ends_other = stack.pop()
            if node.tag in BLOCK_TAGS:
                pieces.append("\n")
            if ends_other:
                pieces = own
            following = node.next
        node = following
    return own, other


def _is_other(tag: str, node: LexborNode) -> bool:
    attributes = node.attributes
    # An aside that declares nothing else may hold footnotes.
    if is_navigation("div" if tag == "aside" else tag, attributes):
        return True
    if not attributes or tag == "body":
        return False
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    return len(names) > 1 and _has_advertising_name(names[:_MAX_NAME_CHARS])


@lru_cache(_CACHED_NAMES)
def _has_advertising_name(names: str) -> bool:
    return any(name.rpartition("-")[2] in _ADVERTISING_WORDS for name in _split_names(names))


def _split_names(names: str) -> list[str]:
    return names.lower().replace("_", "-").split()


def _split_blocks(pieces: list[str]) -> tuple[str, ...]:
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    blocks: list[str] = []
    chars = 0
    for line in lines:
        if line:
            blocks.append(line[: MAX_BLOCK_TEXT_CHARS - chars])
            chars += len(line)
            if chars >= MAX_BLOCK_TEXT_CHARS:
                break
    return tuple(blocks)


_NAVIGATION_TAGS = frozenset({"nav", "header", "footer", "aside"})
_NAVIGATION_ROLES = frozenset({"navigation", "menu", "menubar", "banner", "contentinfo"})
# fmt: off
_NAVIGATION_WORDS = frozenset({
    "banner", "breadcrumb", "breadcrumbs", "crumbs", "footer", "header", "masthead", "menu",
    "menubar", "nav", "navbar", "navfooter", "navheader", "navigation", "navpath", "pager",
    "pagination", "related", "sidebar", "sidenav", "sphinxsidebar", "subnav", "toc", "topbar",
    "topnav",
})
# fmt: on
# ``has-sidebar`` and ``grid-for-nav`` describe the page, not the element.
_NEGATING_WORDS = frozenset({"for", "has", "hide", "no", "show", "with", "without"})


def is_navigation(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """Whether an element declares itself navigation; ``html`` and ``body`` never do.

    Declarations are the elements nav, header, footer and aside, some ARIA roles, and class and id
    names whose last word is one of a list (``main-nav``, but neither ``nav-content`` nor
    ``grid-for-nav``). Nothing is inferred from layout. The first 200 characters of class and id are
    read.
    """
    if tag in _NAVIGATION_TAGS:
        return True
    if not attributes or tag in ("html", "body"):
        return False
    role = attributes.get("role")
    if role and role.strip().lower() in _NAVIGATION_ROLES:
        return True
    classes, name = attributes.get("class"), attributes.get("id")
    return bool(
        (classes and _has_navigation_name(classes[:_MAX_NAME_CHARS]))
        or (name and _has_navigation_name(name[:_MAX_NAME_CHARS]))
    )


@lru_cache(_CACHED_NAMES)
def _has_navigation_name(names: str) -> bool:
    for name in _split_names(names):
        if name.rpartition("-")[2] in _NAVIGATION_WORDS and _NEGATING_WORDS.isdisjoint(
            name.split("-")
        ):
            return True
    return False
