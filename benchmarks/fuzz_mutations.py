"""Bytes for the fuzzer: real pages and small seeds, mutated in ways that break parsers."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Sequence

MAX_CASE_BYTES = 300_000
_MAX_REPEATED_BYTES = 200_000

# fmt: off
TOKENS: tuple[bytes, ...] = (
    b"<", b">", b"</", b"/>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?xml", b"<!DOCTYPE", b"&",
    b"&#x", b"&#0;", b"&#xD800;", b"&#99999999;", b"&amp;", b"<a href=", b"<base href=", b"<div>",
    b"</p>", b"<table><td>", b"<svg><a>", b"<template>", b"<title>", b"<textarea>", b"<plaintext>",
    b"<script>", b"<frameset>", b"<select><option>", b"<meta charset=utf-16>", b"\x00", b"\xff\xfe",
    b"<meta http-equiv=refresh content='0;url=", b"<link rel=canonical href=", b"\xef\xbb\xbf",
    b"charset=iso-2022-jp", b"charset=utf-7", b"\x1b$B", b"+ADw-", b"\xc0\xaf", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"http://", b"https://[", b"//", b"\\", b"%", b"%00", b"%2e%2e/", b"..",
    b"?", b"#", b"@", b":", b";jsessionid=", b"xn--", b"&&", b"=", b"\t", b"\r", b"\n", b"\r\n\r\n",
    b"\xe2\x80\xae", b"\xc2\xad", b"User-agent:", b"Disallow:", b"Allow: /*", b"*", b"$", b"****",
    b"Crawl-delay: 1e999", b"Sitemap:", b"<!ENTITY a '", b"%a;", b"&a;", b"SYSTEM 'file:///x'",
    b"<urlset>", b"<url><loc>", b"<rss>", b"<item>", b"<feed xmlns=", b"\x1f\x8b\x08", b"-1",
    b"nan",
    b"99999999999999999999", b"Thu, 01 Jan 1970 00:00:00 GMT", b"noindex", b"unavailable_after:",
)
SEEDS: tuple[bytes, ...] = (
    b"<!doctype html><html lang=en><head><meta charset=utf-8><title>T</title><base href=/b/></head>"
    b"<body><h1>H</h1><ul><li><a href='a?x=1&y=2#f' rel=nofollow>one</a><li><a href=../b>two</a>"
    b"</ul><table><tr><td><iframe src=c></iframe><map><area href=d alt=D></map></table>",
    b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><rss><channel>"
    b"<title>&b;</title><item><link>http://e.example/1</link><description>&lt;p&gt;x"
    b"</description></item></channel></rss>",
    b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://e.example/a"
    b"</loc><lastmod>2024</lastmod></url></urlset>",
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/x'/><title>t</title></entry>"
    b"</feed>",
    b"http://e.example/a\nhttp://e.example/b\n",
    b"User-agent: *\nDisallow: /a*b$\nAllow: /a\nCrawl-delay: 2\nSitemap: http://e.example/s\n",
    gzip.compress(b"<urlset><url><loc>http://e.example/z</loc></url></urlset>"),
    b"http://user:pw@EXAMPLE.com:80/a/./b/%7e;jsessionid=1?utm_source=x&b=2#f",
    "http://bücher.example/ü?q=дом".encode(),
    b"120", b"Wed, 21 Oct 2026 07:28:00 GMT",
)
# fmt: on


def mutated(rng: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Return a case of at most :data:`MAX_CASE_BYTES`: an item of the corpus, mutated one to six
    times.

    One in eight is made of tokens alone.
    """
    if rng.random() < 0.125:
        case = b"".join(rng.choices(TOKENS, k=rng.randint(1, 60)))
    else:
        case = rng.choice(corpus)
    for _ in range(rng.randint(1, 6)):
        case = rng.choice(_MUTATIONS)(rng, case, corpus)
    return case[:MAX_CASE_BYTES]


def _flip(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    flipped = bytearray(case)
    for _ in range(min(len(case), rng.choice((1, 3, 30)))):
        flipped[rng.randrange(len(case))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def _cut(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    start, end = sorted((rng.randint(0, len(case)), rng.randint(0, len(case))))
    return rng.choice((case[start:end], case[:start], case[:start] + case[end:]))


def _splice(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    other = rng.choice(corpus)
    return case[: rng.randint(0, len(case))] + other[rng.randint(0, len(other)) :]


def _repeat(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    """Repeat a piece, possibly very often, to reveal quadratic time."""
    start = rng.randint(0, len(case))
    piece = case[start : start + rng.choice((1, 4, 20, 200))] or rng.choice(TOKENS)
    times = min(rng.choice((2, 50, 5_000, 100_000)), _MAX_REPEATED_BYTES // len(piece))
    return case[:start] + piece * times + case[start:]


def _insert(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(case))
    return case[:at] + b"".join(rng.choices(TOKENS, k=rng.randint(1, 8))) + case[at:]


def _nest(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    token = rng.choice(TOKENS)
    return token * min(rng.choice((10, 1_000, 20_000)), _MAX_REPEATED_BYTES // len(token)) + case


def _encode(rng: random.Random, case: bytes, corpus: Sequence[bytes]) -> bytes:
    name = rng.choice(("utf-16", "utf-16-be", "utf-7", "shift_jis", "utf-8-sig"))
    return case.decode("latin-1").encode(name, "replace")


_MUTATIONS: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    _flip, _cut, _splice, _repeat, _insert, _nest, _encode,
)  # fmt: skip
