"""Find pages that hide most of their text from readers.

Only inline styles and the attribute ``hidden`` are read: style sheets hide menus, tabs and notes of
many honest pages, and what applies to an element takes a browser to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

MIN_HIDDEN_WORDS = 100
MIN_HIDDEN_SHARE = 0.5

_STYLES = ("display:none", "display: none", "visibility:hidden", "visibility: hidden")
_SELECTOR = ",".join(("[hidden]", *(f'[style*="{style}"]' for style in _STYLES)))
_SIGNS = (" hidden", *_STYLES)


def hides_text(html: str, tree: LexborHTMLParser) -> bool:
    """Whether at least a hundred words, and more than half of a page's, are in hidden elements."""
    if not any(sign in html for sign in _SIGNS):
        return False
    found = tree.css(_SELECTOR)
    if not found or tree.body is None:
        return False
    hidden = sum(map(_count_words, _outermost(found)))
    return hidden >= MIN_HIDDEN_WORDS and hidden > MIN_HIDDEN_SHARE * _count_words(tree.body)


def _count_words(node: LexborNode) -> int:
    code = sum(len(each.text().split()) for each in node.css("script, style"))
    return len(node.text(separator=" ").split()) - code


def _outermost(nodes: Iterable[LexborNode]) -> Iterator[LexborNode]:
    """Yield those of the matching nodes, in document order, that are in no other one.

    Each node is below one outermost node at most, so that the cost is linear.
    """
    inner: set[int] = set()
    for node in nodes:
        if node.mem_id not in inner:
            inner.update(each.mem_id for each in node.css(_SELECTOR))
            yield node
