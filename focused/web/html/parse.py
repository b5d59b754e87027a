"""Parse a response into a page: text, language, links and their context.

The tree is walked once (:mod:`focused.kernels.page_links`); the cost is linear in the size of the
page.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from itertools import islice, starmap

import numpy as np
from resiliparse.parse.lang import detect_fast
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from focused.kernels.page_links import read_walk
from focused.web.decoding import (
    GZIP_START,
    MAX_PARSED_BYTES,
    close_empty_elements,
    decode,
    is_feed,
    limit_markup,
    media_type_of,
    sniff_media_type,
)
from focused.web.html.tree_walk import TreeWalk
from focused.web.http_response import parse_canonical, parse_refresh
from focused.web.page import Failed, FailureKind, Fetched, Link, Page
from focused.web.robots.robots_tags import parse_robots_directives
from focused.web.urls import make_resolver

DEFAULT_MAX_LINKS = 5_000

MAX_QUICK_BYTES = 500_000
MAX_QUICK_TAGS = 15_000

UrlResolver = Callable[[str], str | None]

_MIN_DETECTED_CHARS = 200
_DETECTED_FROM_CHARS = 4_000
_MAX_LANGUAGE_RANK = 1_000  # resiliparse: usually wrong above 1,200
_LANGUAGE = re.compile(r"\s*([A-Za-z]{2})(?![A-Za-z])")


def parse_page(
    fetched: Fetched, max_links: int = DEFAULT_MAX_LINKS, robot: str = ""
) -> Page | Failed:
    """Parse a response into a page; never raises.

    The first 2,000,000 bytes are parsed. The body is sniffed besides the Content-Type: binary data
    sent as HTML is ``Failed(WRONG_TYPE)``, a page without text and links ``Failed(EMPTY)``. The
    caller checks whether the topic's scope allows the type. At most ``max_links`` targets are
    returned and the rest is counted; sitemaps and feeds may have more. ``robot`` is the product
    token that robots directives may name.
    """
    body = fetched.body[:MAX_PARSED_BYTES]
    if not body.strip():
        return Failed(fetched.url, FailureKind.EMPTY, fetched.status, "the body is empty")
    if is_feed(fetched):
        from focused.web.feeds import parse_feed  # few pages are feeds

        if (feed := parse_feed(fetched, robot=robot)) and feed.links:
            return feed
    seen_type = sniff_media_type(body)
    if not seen_type.startswith("text/") and not seen_type.endswith("xml"):
        detail = f"the body looks like {seen_type}"
        return Failed(fetched.url, FailureKind.WRONG_TYPE, fetched.status, detail)
    html, charset = decode(body, fetched.headers)
    content_type = media_type_of(fetched.headers) or seen_type
    if content_type == "text/plain":
        page = _plain_page(fetched, html, charset, robot)
    else:
        # Lexbor reads UTF-8, and would encode the decoded text again.
        source = body.removeprefix(BOM_UTF8) if charset == "utf-8" else html
        if content_type == "application/xhtml+xml":
            source = html = close_empty_elements(html)
        page = _html_page(fetched, html, source, charset, max_links, robot)
    if page.text or page.links or page.refresh or page.canonical:
        return page
    return Failed(fetched.url, FailureKind.EMPTY, fetched.status, "neither text nor links")


def needs_parser_process(fetched: Fetched) -> bool:
    """Whether parsing may take long enough to need a process that can be killed.

    True for many bytes or tags, and for gzipped feeds, which may decompress to megabytes.
    """
    body = fetched.body
    if len(body) > MAX_QUICK_BYTES or body.startswith(GZIP_START):
        return True
    if len(body) <= MAX_QUICK_TAGS:
        return False
    tags = np.count_nonzero(np.frombuffer(body, np.uint8) == ord("<"))  # faster than bytes.count
    return int(tags) > MAX_QUICK_TAGS


def _plain_page(fetched: Fetched, text: str, charset: str, robot: str) -> Page:
    text = " ".join(text.split())
    tags = parse_robots_directives(fetched.headers.get("x-robots-tag", ""), (), robot)
    canonical = parse_canonical(fetched.headers.get("link", ""))
    return Page(
        url=fetched.url,
        text=text,
        canonical=make_resolver(fetched.url)(canonical) if canonical else None,
        language=_detect_language(text),
        charset=charset,
        noindex=tags.noindex,
        nofollow=tags.nofollow,
        unavailable_after=tags.unavailable_after,
    )


def _html_page(
    fetched: Fetched, html: str, source: str | bytes, charset: str, max_links: int, robot: str
) -> Page:
    limited = limit_markup(html)
    # scripting=True: a <noscript> in <head> cannot end the head.
    try:
        tree = LexborHTMLParser(source if limited is html else limited, scripting=True)
    except SelectolaxError as error:  # Lexbor fails only for lack of memory
        raise MemoryError("no memory to parse the page") from error
    walk = TreeWalk(tree.root, robot)
    described = ""
    if walk.json_ld:
        from focused.web.html import json_ld  # few pages have such scripts

        nodes = list(json_ld.json_ld_nodes(walk.json_ld))
        described = json_ld.headline(nodes)
        for url, name in islice(json_ld.named_urls(nodes), json_ld.MAX_LINKS):
            walk.add_declared_link(url, name)
    base = make_resolver(fetched.url, charset)(walk.base) if walk.base else None
    resolve = make_resolver(base or fetched.url, charset)
    own_url = make_resolver(fetched.url)("") or ""
    text, headings, links, links_over_limit = read_walk(walk.tree, own_url, resolve, max_links)
    tags = parse_robots_directives(fetched.headers.get("x-robots-tag", ""), walk.meta_robots, robot)
    refresh = parse_refresh(fetched.headers.get("refresh", ""))
    refresh = parse_refresh(walk.refresh) if refresh is None else refresh
    canonical = walk.canonical or parse_canonical(fetched.headers.get("link", ""))
    return Page(
        url=fetched.url,
        title=walk.title or walk.meta.get("og:title", "") or described,
        headings=tuple(headings),
        description=walk.meta.get("description", "") or walk.meta.get("og:description", ""),
        text=text,
        links=tuple(starmap(Link, links)),
        links_over_limit=links_over_limit,
        canonical=resolve(canonical) if canonical else None,
        feed=resolve(walk.feed) if walk.feed else None,
        amp=resolve(walk.amp) if walk.amp else None,
        refresh=_resolve_refresh(refresh, own_url, resolve),
        language=_declared_language(walk.language) or _detect_language(text),
        charset=charset,
        noindex=tags.noindex,
        nofollow=tags.nofollow,
        unavailable_after=tags.unavailable_after,
    )


def _resolve_refresh(refresh: str | None, own_url: str, resolve: UrlResolver) -> str | None:
    target = resolve(refresh) if refresh else None
    return target if target != own_url else None


def _declared_language(lang: str) -> str:
    match = _LANGUAGE.match(lang)
    return match[1].lower() if match else ""


def _detect_language(text: str) -> str:
    if len(text) < _MIN_DETECTED_CHARS:
        return ""
    language, rank = detect_fast(text[:_DETECTED_FROM_CHARS], _MAX_LANGUAGE_RANK)
    return _declared_language(language) if 0 < rank <= _MAX_LANGUAGE_RANK else ""
