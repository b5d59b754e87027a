"""Cost of hostile answers: CPU seconds and memory of each, in its own process.

    python benchmarks/hostile.py [NAME...]

Memory is the process's peak above its level before the answer was read, the answer included. Prints
a Markdown table.
"""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import brotli  # type: ignore[import-untyped]  # it has no types
from scrapy.http import Request, Response
from scrapy.utils.test import get_crawler

from focused.scrapy_addon.middlewares import DecodingMiddleware
from focused.scrapy_addon.outcomes import ResponseTooLargeError
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused_lab.run_measures import peak_mb, reset_peak

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_PAGE_BYTES = 10_000_000
_URL = "https://e.example/page"
_UNPACKED_MB = 1_000
_MEGABYTE = bytes(1_000_000)
_WHOLE = 10_000_000  # bytes of a page; the first 2,000,000 are parsed


def filled(piece: bytes, before: bytes = b"", after: bytes = b"") -> Callable[[], bytes]:
    """Generate a page of ten megabytes."""
    return lambda: before + piece * (_WHOLE // len(piece)) + after


def zlib_bomb(wbits: int) -> bytes:
    """A gzip bomb of that many megabytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join([packer.compress(_MEGABYTE) for _ in range(_UNPACKED_MB)]) + packer.flush()


def brotli_bomb() -> bytes:
    """The same with Brotli."""
    packer = brotli.Compressor(quality=1)
    pieces = [bytes(packer.process(_MEGABYTE)) for _ in range(_UNPACKED_MB)]
    return b"".join(pieces) + bytes(packer.finish())


def zstd_bomb() -> bytes:
    """The same with Zstandard."""
    packer = zstd.ZstdCompressor()
    return b"".join([packer.compress(_MEGABYTE) for _ in range(_UNPACKED_MB)]) + packer.flush()


def sitemap_bomb() -> bytes:
    """Twelve million elements, gzipped."""
    return gzip.compress(b"<urlset>" + b"<x/>" * 12_000_000, 9)


PAGES: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "a page of words, for comparison": (filled(b"<p>whales and words "), "text/html"),
    "a million links": (
        lambda: b"".join(b"<a href=%d>x</a>" % n for n in range(1_000_000)),
        "text/html",
    ),
    "nested `div`, 2,000,000 deep": (filled(b"<div>"), "text/html"),
    "links in links": (filled(b"<object><a href=x>y"), "text/html"),
    "misnested": (filled(b"<b><p></b></p>"), "text/html"),
    "`option`s in a `select`": (filled(b"<option href=x>y", b"<select>"), "text/html"),
    "closed `option`s in a `select`": (filled(b"<option>x</option>", b"<select>"), "text/html"),
    "nested `rt` without `ruby`": (filled(b"<rt>x"), "text/html"),
    "nested `dt` and `li`": (filled(b"<dt><li>x"), "text/html"),
    "nested `optgroup`": (filled(b"<optgroup>x"), "text/html"),
    "misnested formatting": (filled(b"<b><i><u><a href=x><p>"), "text/html"),
    "1,000 open `font`s, then paragraphs": (
        filled(b"<p>x", b"".join(b"<font a%d>" % n for n in range(1_000))),
        "text/html",
    ),
    "tags of 6,000 attributes": (
        filled(b"<p " + b" ".join(b"a%d" % n for n in range(6_000)) + b">x"),
        "text/html",
    ),
    "attributes without end": (filled(b" a=b", b"<a href=x"), "text/html"),
    "URLs of 100 kB": (
        lambda: b"".join(b"<a href='/%s'>x</a>" % (b"%d" % n * 20_000) for n in range(20)),
        "text/html",
    ),
    "invalid UTF-8": (
        filled(b"\xff\xfe\xc3\x28 \xed\xa0\x80 ", b"<p>"),
        "text/html; charset=utf-8",
    ),
    "broken ISO-2022-JP": (filled(b"\x1b$B\xff~ ", b"<p>"), "text/html; charset=iso-2022-jp"),
    "UTF-16 declared as UTF-8": (
        lambda: ("<p>whale " * 600_000).encode("utf-16"),
        "text/html; charset=utf-8",
    ),
    "a sitemap of 12 million elements in 49 kB": (sitemap_bomb, "application/gzip"),
}
BOMBS: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "gzip bomb, 1 GB": (lambda: zlib_bomb(31), "gzip"),
    "deflate bomb, 1 GB": (lambda: zlib_bomb(15), "deflate"),
    "brotli bomb, 1 GB": (brotli_bomb, "br"),
    "zstd bomb, 1 GB": (zstd_bomb, "zstd"),
    "gzip in gzip, 1 GB": (lambda: gzip.compress(zlib_bomb(31)), "gzip, gzip"),
}


def read_page(body: bytes, content_type: str) -> str:
    """Parse it; describe the result."""
    found = parse_page(Fetched(_URL, 200, {"content-type": content_type}, body))
    if not isinstance(found, Page):
        return f"`{found.kind}`"
    return f"{len(found.links):,} links, {len(found.text):,} characters"


def unpack(body: bytes, codings: str) -> str:
    """Unpack it as a crawl does; describe the result."""
    crawler = get_crawler(settings_dict={"DOWNLOAD_MAXSIZE": MAX_PAGE_BYTES})
    middleware = DecodingMiddleware.from_crawler(crawler)
    packed = Response(_URL, headers={"Content-Encoding": codings}, body=body)
    try:
        middleware.process_response(Request(_URL), packed)
    except ResponseTooLargeError:
        return "`too-large`"
    return "unpacked"


@dataclass(frozen=True, slots=True)
class Cost:
    """``took_s`` of CPU and ``memory_mb`` of additional memory for ``sent_mb`` of answer."""

    sent_mb: float
    took_s: float
    memory_mb: float
    outcome: str


def measure(name: str) -> Cost:
    """Read one answer in this process."""
    work = read_page if name in PAGES else unpack
    make, content_type = {**PAGES, **BOMBS}[name]
    body = make()
    work(b"<p>whale", "text/html" if name in PAGES else "")  # what is loaded once
    reset_peak()
    before_mb = peak_mb() or 0.0
    began = time.process_time()
    outcome = work(body, content_type)
    took_s = time.process_time() - began
    sent_mb = len(body) / 1e6
    return Cost(sent_mb, took_s, (peak_mb() or 0.0) - before_mb + sent_mb, outcome)


def main(arguments: list[str]) -> None:
    """Measure all, or those named, each in its own process."""
    if arguments[:1] == ["--one"]:
        resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, 6_000_000_000))
        name = arguments[1]
        cost = measure(name)
        figures = f"{cost.sent_mb:.2f} | {cost.took_s:.2f} | {cost.memory_mb:.0f}"
        print(f"| {name} | {figures} | {cost.outcome} |")
        return
    print(
        "| answer | MB sent | s of CPU | MB of memory | what comes of it |\n|---|---|---|---|---|"
    )
    for name in arguments or [*PAGES, *BOMBS]:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name], text=True, capture_output=True, check=True
        )
        print(done.stdout.strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
