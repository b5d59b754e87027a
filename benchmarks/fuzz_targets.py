"""The fuzzer's targets: each parser, and the invariants of its result for any bytes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

import numpy as np

from focused.text.content_signatures import (
    bag_of_words_hash,
    content_fingerprint,
    opening_digest,
    page_template,
    text_digest,
)
from focused.text.shingles import estimate_resemblance, make_sketch, shingles
from focused.web.decoding import (
    close_empty_elements,
    decode,
    encoding_of_label,
    limit_markup,
    sniff_media_type,
)
from focused.web.feed_entries import MAX_TITLE_CHARS, FeedEntry, read_entries
from focused.web.feeds import parse_feed
from focused.web.html.parse import parse_page
from focused.web.http_response import outcome_from_response, parse_canonical, retry_after_s
from focused.web.page import Fetched, Link, Page
from focused.web.robots.robots_rules import rules_from_fetch
from focused.web.robots.robots_tags import parse_robots_directives
from focused.web.scope_filter import QueryParameterFilter, find_url_trap
from focused.web.url_patterns import (
    MAX_PARTS_PER_URL,
    ignorable_parts,
    patterns_of_url,
    without_parts,
)
from focused.web.urls import host_of, make_resolver, normalize_url, robots_url
from focused.web.warc_reader import read_responses
from focused.web.warc_records import response_record

URL = "https://e.example/docs/page.html"
NOW = 1_800_000_000.0
# fmt: off
_TYPES = (
    "", "text/html", "text/html; charset=utf-8", "application/xhtml+xml", "text/plain",
    "application/xml", "text/html; charset=iso-2022-jp", "text/html; charset=utf-16",
    "application/rss+xml",
)
_CHARSETS = (
    "utf-8", "windows-1252", "shift_jis", "iso-2022-jp", "gb18030", "euc-kr", "big5", "koi8-r",
    "utf-16",
    "utf-7", "x-user-defined", "hz-gb-2312", "replacement", "rot13", "idna", "unicode_escape",
    "\x00",
)
# fmt: on

Target = Callable[[bytes, random.Random], None]


def read_page(case: bytes, rng: random.Random) -> None:
    """A page has normalised targets, each once, without itself."""
    headers = {"content-type": rng.choice(_TYPES)}
    page = parse_page(Fetched(URL, 200, headers, case))
    if not isinstance(page, Page):
        return
    targets = [link.url for link in page.links]
    assert len(targets) == len(set(targets))
    assert all(normalize_url(target) == target for target in targets[:200])
    assert "\x00" not in "".join(targets)
    assert page.text == " ".join(page.text.split())
    content_fingerprint(page)


def read_url(case: bytes, rng: random.Random) -> None:
    """A normalised URL is a fixed point, and what is derived from it can be requested."""
    text = case[:20_000].decode("utf-8", rng.choice(("replace", "surrogateescape")))
    for raw in (text, f"http://{text}", f"http://h/{text}"):
        for url in (normalize_url(raw), make_resolver(URL, rng.choice(_CHARSETS[:8]))(raw)):
            if url is not None:
                assert normalize_url(url) == url
                assert url.isascii()
                assert robots_url(url).startswith("http")
                assert host_of(url)


def read_robots(case: bytes, rng: random.Random) -> None:
    """Rules answer for any URL, and survive storage."""
    headers = {"cache-control": case[:50].decode("latin-1")}
    rules = rules_from_fetch(Fetched("https://e.example/robots.txt", 200, headers, case), NOW)
    tail = case[-200:].decode("latin-1")
    for path in ("/", "/" + "a" * 2_000, f"/{tail}"):
        url = normalize_url(f"https://e.example{path}")
        if url is not None:
            rules.allows(url, "FuzzBot/1.0")
    rules.crawl_delay_s("FuzzBot/1.0")
    named = rules.sitemaps("https://e.example/robots.txt")
    assert all(normalize_url(url) == url for url in named[:100])
    assert type(rules).from_state(rules.to_state()).allows(URL, "x") == rules.allows(URL, "x")


def read_feed(case: bytes, rng: random.Random) -> None:
    """A feed has normalised targets."""
    page = parse_feed(Fetched(URL, 200, {"content-type": rng.choice(_TYPES)}, case))
    if page is not None:
        assert all(normalize_url(link.url) == link.url for link in page.links[:200])


def read_bytes(case: bytes, rng: random.Random) -> None:
    """Any bytes have a type and a text."""
    _, charset = decode(case, {"content-type": rng.choice(_TYPES)})
    assert encoding_of_label(charset) == charset
    assert "/" in sniff_media_type(case)


def read_headers(case: bytes, rng: random.Random) -> None:
    """Any answer is an outcome."""
    value = case[:5_000].decode("latin-1")
    names = ("location", "retry-after", "content-type", "x-robots-tag", "refresh", "link")
    headers = {name: value for name in names if rng.random() < 0.6}
    status = rng.choice((200, 301, 302, 404, 429, 500, 503, 999))
    outcome_from_response(status, headers, URL, case[:1_000], 0.1, NOW)
    waits_s = retry_after_s(headers, NOW)
    assert waits_s is None or waits_s >= 0.0
    for robot in ("fuzzbot", "", value[:10]):
        parse_robots_directives(value, [value], robot)
    parse_canonical(value)
    parse_canonical(f'<{value}>; rel="canonical", <x>; {value}; rel=canonical')


def read_charset(case: bytes, rng: random.Random) -> None:
    """Any bytes decode with any charset name, and are limited."""
    charset_name = rng.choice((*_CHARSETS, case[:20].decode("latin-1")))
    text, charset = decode(case, {"content-type": f"text/html; charset={charset_name}"})
    assert encoding_of_label(charset) == charset
    close_empty_elements(limit_markup(text))


def read_url_rules(case: bytes, rng: random.Random) -> None:
    """A URL has a pattern, and removing ignorable parts leaves the rest."""
    url = normalize_url("http://h/" + case[:3_000].decode("latin-1"))
    if url is None:
        return
    find_url_trap(url)
    places = patterns_of_url(url)
    assert len({place.name for place in places}) == len(places) >= 3
    slots = ignorable_parts(url)
    assert len(slots) <= MAX_PARTS_PER_URL
    bare = without_parts(url, slots)
    assert len(bare) <= len(url) + 1 + 2 * len(slots)
    name = case[:3].decode("latin-1")
    for names in (("sort", "v*"), (name,), (f"{name}*",), ("*",)):
        dropped = QueryParameterFilter(names)
        shorter = dropped.apply(url)
        assert dropped.apply(shorter) == shorter
        page = Page(url, links=(Link(url), Link(shorter), Link("http://h/")), refresh=shorter)
        targets = [link.url for link in dropped.apply_to_page(page).links]
        assert len(targets) == len(set(targets))


def read_words(case: bytes, rng: random.Random) -> None:
    """A text is similar to itself, and its hashes equal those of a copy."""
    text = case.decode(rng.choice(("utf-8", "latin-1", "utf-16", "shift_jis")), "replace")
    hashes = shingles(text)
    assert bool(np.all(hashes[1:] > hashes[:-1]))
    own = make_sketch(hashes)
    share, of = estimate_resemblance(own, own)
    assert share == float(of > 0)
    half = make_sketch(shingles(text[: len(text) // 2]))
    assert 0.0 <= estimate_resemblance(own, half)[0] <= 1.0
    anchors = tuple(Link("http://h/a", word) for word in text[:2_000].split()[:50])
    one, other = (Page("http://h/", text[:100], text=text, links=anchors) for _ in range(2))
    for made in (
        content_fingerprint,
        text_digest,
        opening_digest,
        page_template,
        bag_of_words_hash,
    ):
        assert made(one) == made(other)
    assert 0.0 <= page_template(one).share <= 1.0


def read_entries_alone(case: bytes, rng: random.Random) -> None:
    """Parsing entries terminates, each entry with a limited size."""
    text = case.decode(rng.choice(("utf-8", "latin-1", "utf-16-le")), "replace")
    for entry in read_entries(text, FeedEntry(), URL):
        assert len(entry.title) <= MAX_TITLE_CHARS
        f"{entry.url}{entry.summary}".encode()


def read_warc(case: bytes, rng: random.Random) -> None:
    """A broken WARC file is read to its end; one of ours restores its content."""
    headers = {"content-type": case[:40].decode("latin-1"), "x-a": case[:300].decode("latin-1")}
    record = response_record(Fetched("http://h/", 200, headers, case, received_at=NOW))
    kept = record[: rng.randint(0, len(record))] if rng.random() < 0.5 else record
    broken = case[:2_000] + record + kept + case[-2_000:]
    with tempfile.NamedTemporaryFile(suffix=".warc.gz") as file:
        path = Path(file.name)
        path.write_bytes(rng.choice((case, broken, record)))
        for _ in islice(read_responses(path), 10_000):
            pass
        path.write_bytes(record)
        (whole,) = read_responses(path)
    assert getattr(whole, "body", None) == case


PARSERS: Mapping[str, Target] = {
    "page": read_page,
    "url": read_url,
    "robots": read_robots,
    "feed": read_feed,
    "bytes": read_bytes,
    "headers": read_headers,
    "charset": read_charset,
    "rules": read_url_rules,
    "words": read_words,
    "entries": read_entries_alone,
    "warc": read_warc,
}
