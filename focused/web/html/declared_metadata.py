"""What a page declares about itself: authors, dates, licences, and what robots may do with it.

Nothing is guessed from the text (:mod:`focused.web.html.document` does), and nothing is taken from
reviews, comments and images on the page. All values are untrusted: they are cleaned and limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import msgspec
from lxml import etree
from lxml.html import HtmlElement

from focused.web.html.json_ld import is_part, page_nodes
from focused.web.html.text_structure import clean_line
from focused.web.html.tree_walk import is_json_ld
from focused.web.http_response import linked_targets, parse_date_time
from focused.web.robots.robots_tags import robots_words
from focused.web.urls import make_resolver

MAX_VALUES = 10
MAX_VALUE_CHARS = 300
_MAX_URL_CHARS = 2_000

_AUTHOR_NAMES = ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author")
_PUBLISHED_NAMES = (
    "citation_publication_date",
    "article:published_time",
    "og:article:published_time",
    "dcterms.issued",
    "dc.date.issued",
    "dc.date.created",
    "dcterms.created",
    "dc.date",
    "datepublished",
    "date",
)
_MODIFIED_NAMES = (
    "article:modified_time",
    "og:updated_time",
    "dcterms.modified",
    "dc.date.modified",
    "datemodified",
    "last-modified",
)
_LICENCE_NAMES = ("dcterms.license", "dc.rights", "dcterms.rights", "dc.rights.license", "license")
_RESERVATION = "tdm-reservation"

_CANONICAL = etree.XPath("//link[@rel='canonical']/@href")
_SCRIPTS = etree.XPath("//script[@type]")
_PUBLISHED_TIMES = etree.XPath("//time[@datetime][@pubdate]")
_MICRODATA_NAMES = etree.XPath(".//*[contains(concat(' ', @itemprop, ' '), ' name ')]")
_LICENCE_LINKS = etree.XPath("//*[self::a or self::link or self::area][@rel][@href]")
_DATE = re.compile(r"\s*(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
_ITEMS_OF_PAGE = frozenset({"mainentity", "mainentityofpage", "blogpost", "blogposts"})
_URL_DAY = re.compile(r"/(\d{4})[/-](\d{1,2})[/-](\d{1,2})(?=[/-]|$)")
_YEARS = range(1900, 2101)


class DeclaredMetadata(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Metadata of a page.

    ``published`` and ``modified`` are dates in ISO 8601 (``2026-01-31``), ``""`` if unknown.
    ``licences`` are URLs or names. ``robots`` are the directives of meta robots and X-Robots-Tag
    for all robots, sorted, and ``tdm-reservation`` if the page reserves text and data mining (W3C
    TDM Reservation Protocol).
    """

    authors: tuple[str, ...] = ()
    published: str = ""
    modified: str = ""
    licences: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()


def declared_metadata(
    tree: HtmlElement | None, url: str, headers: Mapping[str, str]
) -> DeclaredMetadata:
    """Return what the page at ``url`` declares; ``headers`` have lower-case names. Never raises."""
    metas = {} if tree is None else _metas(tree)
    scripts = (
        [] if tree is None else [each for each in _SCRIPTS(tree) if is_json_ld(each.get("type"))]
    )
    described = page_nodes(script.text or "" for script in scripts)
    properties = {} if tree is None else _microdata(tree)
    licences = [*_licence_links(tree, properties, url), *_header_licences(headers, url)]
    licences += _values(metas, _LICENCE_NAMES)
    licences += _names(described, "license", ("url", "@id", "name"))
    authors = _values(metas, _AUTHOR_NAMES)
    if not authors:
        authors = _names(described, "author", ("name",))
    if not authors:
        authors = [_microdata_name(each) for each in properties.get("author", ())]
    dates = {
        key: [
            *_names(described, key, ("@value",)),
            *map(_microdata_text, properties.get(key.lower(), ())),
        ]
        for key in ("datePublished", "dateCreated", "dateModified")
    }
    published = [*_url_days(tree, url), *_values(metas, _PUBLISHED_NAMES), *dates["datePublished"]]
    published += () if tree is None else (each.get("datetime") for each in _PUBLISHED_TIMES(tree))
    published += dates["dateCreated"]
    modified = [*_values(metas, _MODIFIED_NAMES), *dates["dateModified"]]
    return DeclaredMetadata(
        # The URL of a profile is no name.
        _unique(name for name in authors if "://" not in name),
        _first_date(published),
        _first_date(modified),
        _unique(licences),
        _robots(metas, headers),
    )


def _metas(tree: HtmlElement) -> dict[str, list[str]]:
    """Return the contents of meta elements by lower-case name or property."""
    found: dict[str, list[str]] = {}
    for meta in tree.iter("meta"):
        content = meta.get("content")
        name = meta.get("name") or meta.get("property") or meta.get("itemprop")
        if content and name:
            values = found.setdefault(name.strip().lower(), [])
            if len(values) < MAX_VALUES:
                values.append(content)
    return found


def _values(metas: Mapping[str, list[str]], names: Iterable[str]) -> list[str]:
    return [value for name in names for value in metas.get(name, ())]


def _names(objects: Iterable[dict[str, Any]], key: str, inner: tuple[str, ...]) -> list[str]:
    """Return the texts under a key, or under the first of the ``inner`` keys of its objects."""
    found: list[str] = []
    for each in objects:
        value = each.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                one = next((text for name in inner if isinstance(text := one.get(name), str)), None)
            if isinstance(one, str) and len(found) < MAX_VALUES:
                found.append(one)
    return found


def _url_days(tree: HtmlElement | None, url: str) -> Iterator[str]:
    """Yield the days in the page's URLs, which are local where declared times are often UTC."""
    canonical = () if tree is None else _CANONICAL(tree)
    for each in (url, *canonical):
        if found := _URL_DAY.search(each[:_MAX_URL_CHARS].partition("?")[0]):
            yield "-".join(found.groups())


def _microdata(tree: HtmlElement) -> dict[str, list[HtmlElement]]:
    """Return the elements with microdata properties of the page's own items, by lower-case name."""
    found: dict[str, list[HtmlElement]] = {}
    of_page = [True]  # of each open item: whether it describes the page or what the page is about
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        is_item = element.get("itemscope") is not None
        if event == "end":
            if is_item:
                of_page.pop()
            continue
        names = (element.get("itemprop") or "").lower().split()
        for name in dict.fromkeys(names) if of_page[-1] else ():
            values = found.setdefault(name, [])
            if len(values) < MAX_VALUES:
                values.append(element)
        if is_item:
            is_own = _ITEMS_OF_PAGE.issuperset(names)
            is_own = is_own and not is_part(*(element.get("itemtype") or "").split())
            of_page.append(of_page[-1] and is_own)
    return found


def _microdata_text(element: HtmlElement) -> str:
    value = element.get("content") or element.get("datetime")
    return str(value or "".join(element.itertext())[:MAX_VALUE_CHARS])


def _microdata_name(author: HtmlElement) -> str:
    """Return the name of a microdata author: an item with a name, or the element's own text."""
    named = _MICRODATA_NAMES(author)
    return _microdata_text(named[0] if named and author.get("itemscope") is not None else author)


def _licence_links(
    tree: HtmlElement | None, properties: Mapping[str, list[HtmlElement]], url: str
) -> Iterator[str]:
    if tree is None:
        return
    resolve = make_resolver(url)
    links = [
        link
        for link in _LICENCE_LINKS(tree)
        if "license" in link.get("rel").lower().split()
        and next(link.iterancestors("figure"), None) is None
    ]
    for link in [*links, *properties.get("license", ())]:
        if target := resolve(link.get("href") or ""):
            yield target


def _header_licences(headers: Mapping[str, str], url: str) -> Iterator[str]:
    resolve = make_resolver(url)
    targets = map(resolve, linked_targets(headers.get("link", ""), "license"))
    return filter(None, targets)


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    lines = (clean_line(value, MAX_VALUE_CHARS) for value in values)
    return tuple(dict.fromkeys(filter(None, lines)))[:MAX_VALUES]


def _first_date(texts: Iterable[str]) -> str:
    return next(filter(None, map(parse_date, texts)), "")


def parse_date(text: str) -> str:
    """Return the day that a text begins with or is, as it is written, in ISO 8601; or ``""``."""
    text = text[:100].strip()
    if (when := parse_date_time(text)) is not None:
        return when.date().isoformat() if when.year in _YEARS else ""
    found = _DATE.match(text)
    if found is None or int(found[1]) not in _YEARS:
        return ""
    try:
        return date(int(found[1]), int(found[3]), int(found[4])).isoformat()
    except ValueError:
        return ""


def _robots(metas: Mapping[str, list[str]], headers: Mapping[str, str]) -> tuple[str, ...]:
    words = robots_words(headers.get("x-robots-tag", ""), metas.get("robots", ()))
    reserved = [*metas.get(_RESERVATION, ()), headers.get(_RESERVATION, "")]
    if any(value.strip() == "1" for value in reserved):
        words |= {_RESERVATION}
    return tuple(sorted(words))[: 2 * MAX_VALUES]
