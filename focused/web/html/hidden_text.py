"""Find pages that hide most of their text from readers.

Only inline styles and the attribute ``hidden`` are read: style sheets hide menus, tabs and notes of
many honest pages, and what applies to an element takes a browser to know.
"""

from __future__ import annotations

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
    ids = {node.mem_id for node in found}
    hidden = sum(_count_words(node) for node in found if not _is_inside(node, ids))
    return hidden >= MIN_HIDDEN_WORDS and hidden > MIN_HIDDEN_SHARE * _count_words(tree.body)


def _count_words(node: LexborNode) -> int:
    code = sum(len(each.text().split()) for each in node.css("script, style"))
    return len(node.text(separator=" ").split()) - code


def _is_inside(node: LexborNode, ids: set[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in ids:
            return True
        parent = parent.parent
    return False
