"""Walk a document's tree; collect its text, headings and links with their context.

Blocks, headings and links are ranges of text pieces, so that a link's context is a slice of its
block: the cost is proportional to the size of the page. The walk has its own stack, so that depth
never causes recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from librt.vecs import vec
from mypy_extensions import i64

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# Kinds of nodes. From LINK on, the end of the element matters.
TEXT: Final = 0
SKIPPED: Final = 1
BREAK: Final = 2
IMAGE: Final = 3
LEAF: Final = 4
INLINE: Final = 5
LINK: Final = 6
BLOCK: Final = 7
LOW_HEADING: Final = 8
HEADING: Final = 9

MAX_HEADINGS: Final = 200
MAX_ALTS: Final = 10
MAX_INLINE: Final = 24  # inline elements kept between a block or link and its parent block
LABEL_ATTRIBUTES: Final = ("title", "aria-label")

HEADING_WORDS: Final = 10
MAX_ANCHOR_CHARS: Final = 300
MAX_HEADING_CHARS: Final = 500
MAX_LINK_TITLE_CHARS: Final = 200
MAX_REL_TOKENS: Final = 8

_HALF: Final = 20
_BLANK: Final = 32
_MIN_CONTEXT_CHARS: Final = 10  # a block with fewer characters gives way to its parent
_MAX_CONTEXT_LEVELS: Final = 2
_WINDOW_CHARS: Final = 200
_PATH_DEPTH: Final = 24
_PATH_CLASSES: Final = 2
_PATH_NAME_CHARS: Final = 40
_MAX_NAME_CHARS: Final = 200
_CACHED_NAMES: Final = 4_096
_REL_CHARS: Final = 200
_REL_TOKEN_CHARS: Final = 20
_NOT_FOLLOWED: Final = frozenset({"nofollow", "ugc", "sponsored"})

Attributes = dict[str, str | None]
LinkRow = tuple[str, str, str, str, float, bool, str, tuple[str, ...]]
"""The fields of :class:`focused.web.page.Link`."""


class Block:
    """A block element as a range of pieces; ``end`` is set when the walk leaves it.

    ``inline`` holds the inline elements between the parent block and this block, outermost first,
    then the block itself. ``path`` is None until it is known.
    """

    def __init__(
        self, start: int, parent: Block | None, inline: list[LexborNode], depth: int
    ) -> None:
        self.start = start
        self.end = start
        self.parent = parent
        self.inline = inline
        self.depth = depth
        self.path: str | None = None


class RawLink:
    """A link with an unresolved URL; pieces ``start`` to ``end`` are its anchor.

    ``label`` names the attributes that replace a missing anchor; ``inline`` holds the inline
    elements between the link and its block. ``alts`` are those of the first images in the link.
    """

    def __init__(
        self,
        tag: str,
        href: str,
        attributes: Attributes,
        label: tuple[str, ...],
        start: int,
        block: Block,
        inline: list[LexborNode],
        heading: tuple[int, int],
    ) -> None:
        self.tag = tag
        self.href = href
        self.attributes = attributes
        self.label = label
        self.start = start
        self.end = start
        self.block = block
        self.inline = inline
        self.heading = heading
        self.alts: tuple[str, ...] = ()


class WalkedTree:
    """What a walk found; ``headings`` are the ranges of h1 to h3."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.links: list[RawLink] = []
        self.headings: list[tuple[int, int]] = []
        self.block = Block(0, None, [], 0)
        self.block.path = ""
        self.stack: list[LexborNode] = []
        self.heading = (0, 0)

    def add_link(
        self, tag: str, attributes: Attributes, target: str, label: tuple[str, ...]
    ) -> bool:
        """Add a link at the present place, if it has a target."""
        href = attributes.get(target)
        if not href:
            return False
        depth = self.block.depth
        inline = self.stack[depth : depth + MAX_INLINE]
        start = len(self.pieces)
        self.links.append(
            RawLink(tag, href, attributes, label, start, self.block, inline, self.heading)
        )
        return True


def walk_tree(
    walk: WalkedTree,
    root: LexborNode | None,
    kinds: bytes,
    on_leaf: Callable[[LexborNode], object],
) -> None:
    """Walk a tree; ``kinds`` are those of nodes by tag number, :data:`INLINE` for larger numbers.

    ``on_leaf`` is called with each :data:`LEAF`, and may add a link.
    """
    node = root
    pieces, stack = walk.pieces, walk.stack
    open_kinds: list[i64] = []  # of the elements in the stack
    open_links: list[RawLink] = []
    while node is not None:
        kind = kind_of(node, kinds)
        if kind == TEXT:
            pieces.append(node.text_content or "")
        elif kind == BREAK:
            pieces.append("\n")
        elif kind == LEAF:
            on_leaf(node)
        elif kind == IMAGE:
            if open_links:
                _add_alt(open_links[-1], node.attributes.get("alt"))
        elif kind != SKIPPED:
            if kind == LINK:
                attributes = node.attributes
                if not (
                    walk.add_link("a", attributes, "href", LABEL_ATTRIBUTES)
                    or walk.add_link("a", attributes, "data-href", LABEL_ATTRIBUTES)
                ):
                    kind = INLINE
            elif kind != INLINE:
                pieces.append("\n")
            child = node.first_child
            if child is not None:
                # The common case: a single text child.
                if kind <= BLOCK and kind_of(child, kinds) == TEXT and child.next is None:
                    pieces.append(child.text_content or "")
                    if kind == LINK:
                        walk.links[-1].end = len(pieces)
                    elif kind == BLOCK:
                        pieces.append("\n")
                else:
                    stack.append(node)
                    open_kinds.append(kind)
                    if kind == LINK:
                        open_links.append(walk.links[-1])
                    elif kind != INLINE:
                        depth = walk.block.depth
                        inline = stack[depth : depth + MAX_INLINE]
                        walk.block = Block(len(pieces), walk.block, inline, len(stack))
                    node = child
                    continue
        following = node.next
        while following is None and stack:
            node = stack.pop()
            kind = open_kinds.pop()
            if kind == LINK:
                open_links.pop().end = len(pieces)
            elif kind != INLINE:
                _leave_block(walk, kind)
            following = node.next
        node = following
    walk.block.end = len(pieces)


def kind_of(node: LexborNode, kinds: bytes) -> i64:
    """Return the kind of a node by its tag number."""
    tag: i64 = i64(node.tag_id)
    return i64(kinds[tag]) if tag < len(kinds) else INLINE


def _add_alt(link: RawLink, alt: str | None) -> None:
    if alt and len(link.alts) < MAX_ALTS:
        link.alts += (alt,)


def _leave_block(walk: WalkedTree, kind: i64) -> None:
    block, end = walk.block, len(walk.pieces)
    block.end = end
    walk.pieces.append("\n")
    if block.parent is not None:
        walk.block = block.parent
    if kind != BLOCK:
        walk.heading = (block.start, end)
        if kind == HEADING and len(walk.headings) < MAX_HEADINGS:
            walk.headings.append(walk.heading)


def collapse_whitespace(text: str, max_chars: int) -> str:
    """Return the beginning of a text with white space collapsed."""
    return " ".join(text[: 4 * max_chars].split())[:max_chars]


def read_walk(
    walk: WalkedTree, own_url: str, resolve: Callable[[str], str | None], max_links: int
) -> tuple[str, list[str], list[LinkRow], int]:
    """Return the text of a finished walk, its headings, its links, and the number of links cut.

    The links to each target are merged: the longest anchor, at the place of the first link. A
    target is nofollow only if all its links are. Links beyond ``max_links`` targets, and links to
    ``own_url``, are left out; the former are counted.
    """
    text, offsets = join_collapsed(walk.pieces)
    headings = []
    for start, end in walk.headings:
        heading = _beginning(text, offsets[start], offsets[end], MAX_HEADING_CHARS)
        if heading:
            headings.append(heading)
    targets, cut = _group_by_target(walk.links, own_url, resolve, max_links)
    best: list[RawLink] = []
    anchors: list[str] = []
    for same in targets.values():
        link = same[0]
        anchor = _anchor(link, text, offsets)
        for other in same[1:]:
            other_anchor = _anchor(other, text, offsets)
            if len(other_anchor) > len(anchor):
                link, anchor = other, other_anchor
        best.append(link)
        anchors.append(anchor)
    last = max(1, len(best) - 1)
    headings_above: dict[tuple[int, int], str] = {}
    rows: list[LinkRow] = []
    for url, same in targets.items():
        i = len(rows)
        link = best[i]
        above = headings_above.get(link.heading)
        if above is None:
            start, end = link.heading
            above = _beginning(text, offsets[start], offsets[end], MAX_HEADING_CHARS)
            above = headings_above[link.heading] = " ".join(above.split()[:HEADING_WORDS])
        context = _context(link, text, offsets, above)
        nofollow, rel = _merge_rel(same)
        title = _title(link.attributes, anchors[i])
        path = _tag_path(link)
        rows.append((url, anchors[i], context, path, i / last, nofollow, title, rel))
    return text, headings, rows, cut


def join_collapsed(pieces: list[str]) -> tuple[str, vec[i64]]:
    """Join pieces and collapse their white space.

    Return the text, and where in it each piece begins and the last one ends; a blank between two
    pieces belongs to the second.
    """
    parts: list[str] = []
    offsets = vec[i64]([0] * (len(pieces) + 1))
    length: i64 = 0
    follows_blank = False  # white space that comes before the next word, if there is one
    for place, piece in enumerate(pieces):
        # Most pieces are the one that begins or ends a block.
        if piece == "\n" or piece.isspace():
            follows_blank = True
        elif piece:
            # The only white space that is printable is the blank.
            is_collapsed = piece.isprintable() and "  " not in piece
            part = piece.strip() if is_collapsed else " ".join(piece.split())
            if length > 0 and (follows_blank or piece[0].isspace()):
                parts.append(" ")
                length += 1
            parts.append(part)
            length += len(part)
            follows_blank = piece[-1].isspace()
        offsets[place + 1] = length
    return "".join(parts), offsets


def _group_by_target(
    links: list[RawLink], own_url: str, resolve: Callable[[str], str | None], max_links: int
) -> tuple[dict[str, list[RawLink]], int]:
    """Return the links by target, and the number of links beyond ``max_links`` targets."""
    targets: dict[str, list[RawLink]] = {}
    resolved: dict[str, str | None] = {}
    cut = 0
    for link in links:
        # Tables of contents and indexes have many links that differ only in their fragments.
        href = link.href
        place = href.find("#")
        if place >= 0:
            href = href[: place + 1]
        if href not in resolved:
            resolved[href] = resolve(href)
        target = resolved[href]
        if target is None or target == own_url:
            continue
        known = targets.get(target)
        if known is not None:
            known.append(link)
        elif len(targets) < max_links:
            targets[target] = [link]
        else:
            cut += 1
    return targets, cut


def _beginning(text: str, begin: i64, end: i64, max_chars: i64) -> str:
    """Return the beginning of a range of a collapsed text."""
    if begin < end and ord(text[begin]) == _BLANK:
        begin += 1
    return text[begin : min(end, begin + max_chars)]


def _anchor(link: RawLink, text: str, offsets: vec[i64]) -> str:
    """Return the link's text with the alts of its images, else its label."""
    anchor = _beginning(text, offsets[link.start], offsets[link.end], MAX_ANCHOR_CHARS)
    if link.alts:
        anchor = collapse_whitespace(" ".join([anchor, *link.alts]), MAX_ANCHOR_CHARS)
    return anchor or collapse_whitespace(_first(link.attributes, link.label), MAX_ANCHOR_CHARS)


def _first(attributes: Attributes, names: tuple[str, ...]) -> str:
    """Return the first of these attributes that is not empty, else ``""``."""
    for name in names:
        value = attributes.get(name)
        if value:
            return value
    return ""


def _context(link: RawLink, text: str, offsets: vec[i64], heading: str) -> str:
    """Return the words of the link's block around it, then the heading above.

    A block with little other text (a list item, a cell) gives way to its parent.
    """
    start, end = offsets[link.start], offsets[link.end]
    block = link.block
    first, last = offsets[block.start], offsets[block.end]
    levels = 0
    while start - first + last - end < _MIN_CONTEXT_CHARS and levels < _MAX_CONTEXT_LEVELS:
        parent = block.parent
        if parent is None:
            break
        levels += 1
        block = parent
        first, last = offsets[block.start], offsets[block.end]
    before = _last_words(text, max(first, start - _WINDOW_CHARS), start)
    after = _first_words(text, end, min(last, end + _WINDOW_CHARS))
    return " ".join([each for each in (before, after, heading) if each])


def _last_words(text: str, first: i64, end: i64) -> str:
    """Return the last words of a range of a text, as many as stand on one side of a link."""
    begin: i64 = end
    words = 0
    while begin > first:
        if ord(text[begin - 1]) == _BLANK:
            words += 1
            if words == _HALF:
                break
        begin -= 1
    return text[begin:end].strip()


def _first_words(text: str, begin: i64, last: i64) -> str:
    """Return the first words of a range of a text, likewise."""
    if begin < last and ord(text[begin]) == _BLANK:
        begin += 1
    end: i64 = begin
    words = 0
    while end < last:
        if ord(text[end]) == _BLANK:
            words += 1
            if words == _HALF:
                break
        end += 1
    return text[begin:end].strip()


def _tag_path(link: RawLink) -> str:
    """Return the elements from ``body`` to the link, with classes, 24 levels at most."""
    path = _path_of_block(link.block)
    if link.inline:
        path = _extend(path, link.inline)
    if len(link.attributes) == 1:  # only the target
        return f"{path}/{link.tag}"
    return f"{path}/{_name(link.tag, link.attributes)}"


def _path_of_block(block: Block) -> str:
    path = block.path
    if path is not None:
        return path
    pending: list[Block] = []
    above: Block | None = block
    while above is not None:
        path = above.path
        if path is not None:
            break
        pending.append(above)
        above = above.parent
    found = path or ""
    for each in reversed(pending):
        found = each.path = _extend(found, each.inline)
    return found


def _extend(path: str, elements: list[LexborNode]) -> str:
    for node in elements:
        tag = node.tag or ""
        if tag == "html":
            continue
        if path.count("/") >= _PATH_DEPTH:
            break
        name = _name(tag, node.attributes)
        path = f"{path}/{name}" if path else name
    return path


def _name(tag: str, attributes: Attributes) -> str:
    if not attributes:
        return tag
    classes = attributes.get("class")
    return _name_with_classes(tag, classes[:_MAX_NAME_CHARS]) if classes else tag


@lru_cache(_CACHED_NAMES)
def _name_with_classes(tag: str, classes: str) -> str:
    return ".".join([tag, *classes.split()[:_PATH_CLASSES]])[:_PATH_NAME_CHARS]


def _title(attributes: Attributes, anchor: str) -> str:
    """Return the link's title if the anchor does not contain it, else ``""``."""
    # Most links have only a target.
    title = _first(attributes, LABEL_ATTRIBUTES) if len(attributes) > 1 else ""
    if not title:
        return ""
    title = collapse_whitespace(title, MAX_LINK_TITLE_CHARS)
    return "" if title in anchor else title


def _merge_rel(links: list[RawLink]) -> tuple[bool, tuple[str, ...]]:
    """Return whether the rel of all links says nofollow, ugc or sponsored, and their tokens.

    Tokens are in lower case: the first 8, of 20 characters at most.
    """
    is_nofollow = True
    tokens: dict[str, None] = {}
    for link in links:
        rel = link.attributes.get("rel") if len(link.attributes) > 1 else None
        if not rel:
            is_nofollow = False
            continue
        is_nofollow = is_nofollow and not _NOT_FOLLOWED.isdisjoint(rel.lower().split())
        for word in rel[:_REL_CHARS].lower().split():
            tokens[word[:_REL_TOKEN_CHARS]] = None
    return is_nofollow, tuple(list(tokens)[:MAX_REL_TOKENS])
