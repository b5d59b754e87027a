"""Detect pages that may need JavaScript, from a response and the text that it shows without.

A page with enough text is not parsed a second time: it costs one search for ``<script``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from focused.web.decoding import MAX_PARSED_BYTES, limit_markup, media_type_of
from focused.web.page import Failed, FailureKind, Fetched, Page

FEW_WORDS = 30
"""A page with fewer words shows nothing of its own."""

ENOUGH_WORDS = 200
"""A page with so many words is not searched for signs."""

_MAX_ROOT_WORDS = 5
_CHARS_PER_WORD = 10  # also without spaces between words; more is rare
_SCRIPT_TAGS = (b"<script", b"<SCRIPT")
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_SCRIPT_TYPES = frozenset(
    {"", "module", "text/javascript", "application/javascript", "text/babel", "text/ecmascript"}
)
_ROOTS = ", ".join(
    (
        *("#root", "#app", "#__next", "#__nuxt", "#___gatsby", "#svelte", "#app-root", "#main-app"),
        *("#q-app", "#ember-app", "#react-root", "#application", "#mount", "app-root", "[ng-app]"),
        *("[data-ng-app]", "[ng-version]", "[data-reactroot]", "[data-v-app]", "[data-ember-root]"),
        *("[x-data]", "[data-sveltekit-hydrate]", "[q\\:container]", "astro-island"),
    )
)


class JavascriptNeed(StrEnum):
    """How likely a page needs JavaScript, by its signs alone.

    ``NONE``: it has no scripts. ``UNLIKELY``: it has scripts and text. ``POSSIBLE``: it has signs
    of an application, and some text. ``LIKELY``: it has scripts and shows nothing.
    """

    NONE = "none"
    UNLIKELY = "unlikely"
    POSSIBLE = "possible"
    LIKELY = "likely"


@dataclass(frozen=True, slots=True)
class ScriptSigns:
    """What a page shows without JavaScript, and what hints at more.

    ``words`` and ``links`` are those of the page without scripts; ``scripts`` counts executable
    script elements, ``modules`` those with ``type=module``. ``asks_for_javascript``: a ``noscript``
    element mentions JavaScript or leads elsewhere. ``has_empty_root``: a framework's root element
    is empty. ``has_fragment``: ``<meta name=fragment>`` of the former AJAX crawling scheme.
    """

    words: int
    links: int
    scripts: int = 0
    modules: int = 0
    asks_for_javascript: bool = False
    has_empty_root: bool = False
    has_fragment: bool = False

    @property
    def need(self) -> JavascriptNeed:
        """How likely the page needs JavaScript."""
        if not self.scripts:
            return JavascriptNeed.NONE
        is_application = self.asks_for_javascript or self.has_empty_root or self.has_fragment
        if self.words < FEW_WORDS and (is_application or self.modules or not self.links):
            return JavascriptNeed.LIKELY
        if self.words < ENOUGH_WORDS and (is_application or self.words < FEW_WORDS):
            return JavascriptNeed.POSSIBLE
        return JavascriptNeed.UNLIKELY


def javascript_need(fetched: Fetched, parsed: Page | Failed) -> JavascriptNeed:
    """Return how likely the page of a response needs JavaScript.

    ``parsed`` is the page without scripts, or why there is none: a page without text and links
    fails as :attr:`FailureKind.EMPTY`.
    """
    if isinstance(parsed, Failed):
        if parsed.kind is not FailureKind.EMPTY:
            return JavascriptNeed.NONE
        words, links = 0, 0
    else:
        if parsed.format:
            return JavascriptNeed.NONE
        words, links = _count_words(parsed.text), len(parsed.links)
    if media_type_of(fetched.headers) not in _HTML_TYPES:
        return JavascriptNeed.NONE
    if not any(each in fetched.body for each in _SCRIPT_TAGS):
        return JavascriptNeed.NONE
    if words >= ENOUGH_WORDS:
        return JavascriptNeed.UNLIKELY
    return read_signs(fetched.body, words, links).need


def read_signs(body: bytes, words: int, links: int) -> ScriptSigns:
    """Read the signs of an HTML document that shows so many words and links."""
    html = limit_markup(body[:MAX_PARSED_BYTES].decode("utf-8", "replace"))
    try:
        tree = LexborHTMLParser(html, scripting=True)
    except SelectolaxError:  # no memory for it
        return ScriptSigns(words, links)
    types = [_type_of(script) for script in tree.css("script")]
    return ScriptSigns(
        words,
        links,
        scripts=sum(each in _SCRIPT_TYPES for each in types),
        modules=types.count("module"),
        asks_for_javascript=_asks_for_javascript(tree.css("noscript")),
        has_empty_root=any(map(_is_empty, tree.css(_ROOTS))),
        has_fragment=bool(tree.css("meta[name=fragment]")),
    )


def _count_words(text: str) -> int:
    """Return the number of words, or :data:`ENOUGH_WORDS` without splitting a long text."""
    at_least = len(text) // _CHARS_PER_WORD
    return ENOUGH_WORDS if at_least >= ENOUGH_WORDS else max(at_least, len(text.split()))


def _type_of(script: LexborNode) -> str:
    return (script.attributes.get("type") or "").strip().lower()


def _asks_for_javascript(noscripts: Iterable[LexborNode]) -> bool:
    # With scripting, the content of noscript is text.
    texts = (node.text().lower() for node in noscripts)
    return any("javascript" in text or "http-equiv" in text for text in texts)


def _is_empty(root: LexborNode) -> bool:
    return len(root.text(deep=True, separator=" ").split()) < _MAX_ROOT_WORDS
