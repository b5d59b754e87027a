"""Find the search forms of a page.

A search form sends one text by GET and has no side effects. Everything else (logins, orders,
subscriptions, uploads, several text fields, POST) is not returned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from focused.web.decoding import MAX_PARSED_BYTES, decode, limit_markup
from focused.web.page import Fetched, Link
from focused.web.urls import make_resolver, normalize_url

MAX_FORMS = 20

_QUERY_NAMES = re.compile(
    r"(?:^|[-_\[\].])(?:q|s|qs|kw|query|search\w*|keywords?|terms?|words?|text|find|suche?|recherche"
    r"|busca|buscar|cerca|zoek|szukaj|wd)(?:$|[-_\[\].])",
    re.IGNORECASE,
)
_SEARCH_WORDS = re.compile(
    r"search|find|query|lookup|suche?n?|rechercher?|buscar?|cerca|zoek|szukaj|поиск|найти|搜索|検索",
    re.IGNORECASE,
)
_SIDE_EFFECTS = re.compile(
    r"log-?[io]n|sign-?(?:in|up)|regist|subscri|newsletter|comment|contact|feedback|cart|buy"
    # not "orderby", "ordering" and "border"
    r"|(?<!\bb)(?<!_b)order(?![-_ ]?(?:by|way|dir)|ing)"
    r"|checkout|pay|donat|vote|delete|remove|edit|upload|e-?mail|unsubscri|captcha|logout",
    re.IGNORECASE,
)
_TEXT_TYPES = frozenset({"", "text", "search"})
_IGNORED_TYPES = frozenset({"submit", "button", "image", "reset"})
_CHOICES = frozenset({"checkbox", "radio"})
_NEXT_WORDS = frozenset(
    {"next", "next page", "older", "more", "weiter", "suivant", "suivante", "siguiente"}
)
_NEXT_SIGNS = frozenset("\u2192\u203a\u00bb>")
_MAX_NEXT_CHARS = 100
"""Longer texts of links say more than "next"."""
_OUTER_SIGNS = re.compile(r"\A\W++|\W++\Z")
_MAX_FIELDS = 40


@dataclass(frozen=True, slots=True)
class SearchForm:
    """A form that sends one text by GET.

    ``action`` is absolute and normalised, without query. ``fixed`` are the other fields with their
    default values.
    """

    action: str
    field: str
    fixed: tuple[tuple[str, str], ...] = ()

    def url(self, query: str) -> str | None:
        """Return the normalised URL of the results for ``query``; None if it cannot be crawled."""
        return normalize_url(f"{self.action}?{urlencode([*self.fixed, (self.field, query)])}")

    def query_of(self, url: str) -> str | None:
        """Return the query whose results a normalised URL shows, also further pages of them."""
        path, _, query = url.partition("?")
        if path != self.action:
            return None
        return dict(parse_qsl(query)).get(self.field)

    def next_page(self, url: str, links: tuple[Link, ...]) -> str | None:
        """Return the next page of the results at ``url``, of the page's ``links``, or None."""
        query = self.query_of(url)
        own = [link for link in links if self.query_of(link.url) == query and link.url != url]
        for link in own:
            if "next" in link.rel or _says_next(link.anchor) or _says_next(link.title):
                return link.url
        return None


def _says_next(text: str) -> bool:
    """Whether the text of a link is a word for the next page, or nothing but signs like ``>>``."""
    if len(text) > _MAX_NEXT_CHARS:
        return False
    word = _OUTER_SIGNS.sub("", text).lower()
    return word in _NEXT_WORDS if word else not _NEXT_SIGNS.isdisjoint(text)


def find_search_forms(fetched: Fetched) -> tuple[SearchForm, ...]:
    """Return the search forms of a page, the likeliest first; never raises."""
    if b"<form" not in fetched.body.lower():
        return ()
    html, charset = decode(fetched.body[:MAX_PARSED_BYTES], fetched.headers)
    try:
        tree = LexborHTMLParser(limit_markup(html), scripting=True)
    except SelectolaxError:
        return ()
    bases = tree.css("base[href]")
    base = (
        make_resolver(fetched.url, charset)(bases[0].attributes.get("href") or "")
        if (bases)
        else None
    )
    resolve = make_resolver(base or fetched.url, charset)
    rated: dict[SearchForm, int] = {}
    for node in tree.css("form")[:MAX_FORMS]:
        found = _read_form(node, resolve(node.attributes.get("action") or fetched.url))
        if found is not None:
            form, rating = found
            rated[form] = max(rating, rated.get(form, 0))
    return tuple(sorted(rated, key=lambda form: -rated[form]))


def _read_form(node: LexborNode, action: str | None) -> tuple[SearchForm, int] | None:
    """Return the form and how likely it is a search form, from 1; None if it is none."""
    attributes = node.attributes
    if action is None or (attributes.get("method") or "get").strip().lower() != "get":
        return None
    fields = node.css("input, select, textarea, button")
    if len(fields) > _MAX_FIELDS:
        return None
    texts: list[LexborNode] = []
    fixed: dict[str, str] = dict(parse_qsl(urlsplit(action).query))
    labels = [_label(attributes), urlsplit(action).path]
    for each in fields:
        kind = (each.attributes.get("type") or "").strip().lower()
        if each.tag in ("input", "textarea") and kind in _TEXT_TYPES:
            texts.append(each)
        elif each.tag == "button" or kind in _IGNORED_TYPES:
            labels.append(f"{_label(each.attributes)} {each.text()[:100]}")
        elif each.tag == "select":
            _read_select(each, fixed)
        elif kind == "hidden" or (kind in _CHOICES and "checked" in each.attributes):
            if name := each.attributes.get("name"):
                fixed[name] = each.attributes.get("value") or ("on" if kind in _CHOICES else "")
        elif kind not in _CHOICES:
            return None  # passwords, files, numbers, dates, e-mail addresses
    if len(texts) != 1 or texts[0].tag != "input" or not texts[0].attributes.get("name"):
        return None
    text = texts[0].attributes
    name = text.get("name") or ""
    if any(_SIDE_EFFECTS.search(label) for label in (*labels, _label(text), *fixed)):
        return None
    rating = 2 * bool(_QUERY_NAMES.search(name))
    rating += 2 * ((text.get("type") or "").lower() == "search")
    rating += 2 * ((attributes.get("role") or "").lower() == "search")
    rating += any(_SEARCH_WORDS.search(label) for label in (*labels, _label(text)))
    fixed.pop(name, None)
    form = SearchForm(action.partition("?")[0], name, tuple(fixed.items()))
    return (form, rating) if rating >= 2 else None


def _label(attributes: dict[str, str | None]) -> str:
    names = ("name", "id", "class", "value", "title", "placeholder", "aria-label")
    return " ".join(value for name in names if (value := attributes.get(name)))


def _read_select(select: LexborNode, fixed: dict[str, str]) -> None:
    name = select.attributes.get("name")
    options = select.css("option")
    if not name or not options:
        return
    chosen = next((each for each in options if "selected" in each.attributes), options[0])
    value = chosen.attributes.get("value")
    fixed[name] = chosen.text(strip=True) if value is None else value
