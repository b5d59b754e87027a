"""Hostile servers among good ones: each fault has its name, no good page is lost."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import brotli
import pytest

from focused_lab.run_measures import peak_mb
from tests.live.hostile_server import Play, answer, endless, hostile, packed, raw_bytes
from tests.support.crawling import ROOT, Finished, command, finish, write_topic
from tests.support.warm import crawl_warm

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGE_BYTES = 1_000_000
MEGABYTE = bytes(1_000_000)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
MEMORY_BYTES = 500_000_000  # of which Python and its libraries take 350


def bomb(wbits: int) -> bytes:
    """A thousand megabytes in one: one deflated megabyte, a thousand times.

    The checksum at the end is wrong; a client that reads so far has failed already.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    first, again = (packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * 999 + packer.flush()


def page(text: str, *hosts: str) -> Play:
    links = "".join(f'<p><a href="http://{host}/">{host}</a>' for host in hosts)
    return answer(f"<title>{text}</title><p>{text}{links}".encode())


@cache
def gzip_bomb() -> bytes:
    return bomb(31)


FAULTS: dict[str, tuple[Play, str]] = {
    "gzip-bomb": (packed(gzip_bomb, "Content-Encoding: gzip"), "too-large"),
    "bomb-in-bomb": (
        packed(lambda: gzip.compress(gzip_bomb()), "Content-Encoding: gzip, gzip"),
        "too-large",
    ),
    "deflate-bomb": (packed(lambda: bomb(15), "Content-Encoding: deflate"), "too-large"),
    "brotli-bomb": (
        packed(lambda: brotli.compress(MEGABYTE * 100, quality=5), "Content-Encoding: br"),
        "too-large",
    ),
    "zstd-bomb": (
        packed(lambda: zstd.compress(MEGABYTE * 100), "Content-Encoding: zstd"),
        "too-large",
    ),
    "thrice-packed-is-the-most": (
        answer(b"whales", "Content-Encoding: gzip, gzip, gzip, gzip"),
        "bad-encoding",
    ),
    "no-gzip": (answer(b"<p>whales", "Content-Encoding: gzip"), "bad-encoding"),
    "no-brotli": (answer(b"<p>whales", "Content-Encoding: br"), "bad-encoding"),
    "no-zstd": (answer(b"<p>whales", "Content-Encoding: zstd"), "bad-encoding"),
    "no-deflate": (answer(b"<p>whales", "Content-Encoding: deflate"), "bad-encoding"),
    "endless-body": (
        endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"w" * 4096 + b"\r\n"),
        "too-large",
    ),
    "endless-without-length": (endless(OK + b"\r\n", b"word " * 1_000), "too-large"),
    "length-of-a-terabyte": (
        raw_bytes(OK + b"Content-Length: 1000000000000\r\n\r\n<p>short"),
        "too-large",
    ),
    "endless-headers": (endless(OK, b"".join(b"X-%d: y\r\n" % i for i in range(999))), "too-large"),
    "endless-interim-answers": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "too-large"),
    "endless-header": (endless(OK + b"X-Long: ", b"x" * 10_000), "reset"),
    "body-a-byte-at-a-time": (endless(OK + b"\r\n", b"x", pause_s=0.05), "timeout"),
    "headers-a-line-at-a-time": (endless(OK, b"X-Slow: y\r\n", pause_s=0.05), "timeout"),
    "silence": (endless(b"", b"", pause_s=0.05), "timeout"),
    "no-http": (raw_bytes(b"\x00\xff\r\n\r\n" * 100), "reset"),
    "negative-length": (raw_bytes(OK + b"Content-Length: -5\r\n\r\n<p>short"), "reset"),
    "length-cut-short": (raw_bytes(OK + b"Content-Length: 500\r\n\r\n<p>short"), "reset"),
    "broken-chunks": (
        raw_bytes(OK + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\n<p>\r\n"),
        "reset",
    ),
    "unknown-transfer": (raw_bytes(OK + b"Transfer-Encoding: gzip\r\n\r\n<p>x"), "reset"),
}
GOOD = [f"good-{number}.test" for number in range(len(FAULTS))]


@dataclass(frozen=True, slots=True)
class Survived:
    """A crawl that is over, what was asked of the server, and the memory that it took."""

    crawl: Finished
    asked: Counter[str]
    memory_bytes: int


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Survived:
    hosts = [host for pair in zip(FAULTS, GOOD, strict=True) for host in pair]
    plays = {f"{name}/": play for name, (play, _) in FAULTS.items()}
    plays |= {f"{host}/": page(f"{host} whales") for host in GOOD}
    plays["start.test/"] = page("start whales", *hosts)
    topic = write_topic(
        tmp_path_factory.mktemp("hostile"),
        "http://start.test/",
        timeout_s=2.0,
        politeness="max_tries = 2",
        scope=f"max_page_bytes = {PAGE_BYTES}",
    )
    with hostile(plays) as site:
        done, memory_bytes = _crawl_weighed(topic, site.address)
    return Survived(done, site.asked, memory_bytes)


def _crawl_weighed(topic: Path, address: str) -> tuple[Finished, int]:
    """Crawl, and tell the most memory that the process had, in bytes."""
    process = subprocess.Popen(
        command(topic, address),
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    # Not what wait4 tells of it: to a new process Linux counts that of its parent, the whole suite.
    with ThreadPoolExecutor(1) as watching:
        peak_mb = watching.submit(_peak_mb, process)
        done = finish(process, topic)
    return done, int(peak_mb.result() * 1e6)


def _peak_mb(process: subprocess.Popen[str]) -> float:
    most = 0.0
    while process.poll() is None:
        most = peak_mb(Path(f"/proc/{process.pid}")) or most
        time.sleep(0.02)
    return most


def test_the_crawl_ends_by_itself_and_in_order(survived: Survived) -> None:
    done = survived.crawl
    assert done.status == 0, done.output
    assert "Traceback" not in (done.folder / "crawl.log").read_text()


def test_every_good_page_is_harvested(survived: Survived) -> None:
    done = survived.crawl
    assert set(done.fetched()) >= {f"http://{host}/" for host in GOOD}


@pytest.mark.parametrize("host", FAULTS)
def test_each_fault_is_counted_under_its_name(survived: Survived, host: str) -> None:
    assert survived.crawl.pages.loc[f"http://{host}/", "failure"] == FAULTS[host][1]


def test_no_host_is_asked_more_often_than_it_may(survived: Survived) -> None:
    assert max(survived.asked[f"{host}/"] for host in FAULTS) <= 2


def test_memory_is_bounded(survived: Survived) -> None:
    assert 0 < survived.memory_bytes < MEMORY_BYTES


BAD_RULES: dict[str, Play] = {
    "packed-rules": answer(b"User-agent: *", "Content-Encoding: gzip"),
    "dripping-rules": endless(OK + b"\r\n", b"#", pause_s=0.05),
}


@pytest.mark.parametrize("name", BAD_RULES)
def test_a_robots_txt_that_cannot_be_had_forbids_its_host(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plays = {
        "start.test/": page("start whales", f"{name}.test"),
        f"{name}.test/robots.txt": BAD_RULES[name],
        f"{name}.test/": page("whales"),
    }
    topic = write_topic(
        tmp_path_factory.mktemp(name),
        "http://start.test/",
        timeout_s=1.0,
        politeness="max_tries = 1",
        scope=f"max_page_bytes = {PAGE_BYTES}",
    )
    with hostile(plays) as site:
        done = crawl_warm(topic, site.address, timeout_s=60.0)
    assert done.status == 0, done.output
    assert site.asked[f"{name}.test/"] == 0
    assert done.fetched() == ["http://start.test/"]
