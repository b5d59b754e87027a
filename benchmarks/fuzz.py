"""Breaks pages, URLs, robots.txt, feeds and headers in many ways, and reads them all.

    python benchmarks/fuzz.py [--minutes 10] [--seed 1] [--web webs/docweb-small]

Each case must be read without an exception and within a few seconds of CPU
time, must keep the promises of what it became, and memory must stay bounded.
A finding is told with the file that holds its bytes. One process; the same
seed makes the same cases. A case that hangs ends the run: see the traceback.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fuzz_mutations import MAX_CASE_BYTES, SEEDS, TOKENS, mutated

from focused.errors import RecordedWebError
from focused.recorded.store import RecordedWeb
from focused.web.decode import decode, sniff_type
from focused.web.feeds import parse_feed
from focused.web.fingerprint import content_fingerprint
from focused.web.page import Fetched, Page
from focused.web.parse import parse_page
from focused.web.response import outcome_of, retry_after_s
from focused.web.robots import rules_from_fetch
from focused.web.robots_tags import read_tags
from focused.web.url import host_of, normalise, resolver, robots_url

URL = "https://e.example/docs/page.html"
NOW = 1_800_000_000.0
MAX_CPU_S = 3.0
HANG_S = 120.0  # of the clock: the machine may be busy
MAX_MEMORY_BYTES = 1_500_000_000
_REAL_PAGES = 400
_CHARSETS = ("utf-8", "cp1252", "shift_jis", "iso2022_jp", "gb18030", "euc_kr", "big5", "koi8-r")
# fmt: off
_TYPES = (
    "", "text/html", "text/html; charset=utf-8", "application/xhtml+xml", "text/plain",
    "application/xml", "text/html; charset=iso-2022-jp", "text/html; charset=utf-16",
    "application/rss+xml",
)
# fmt: on

Target = Callable[[bytes, random.Random], None]


def read_page(case: bytes, rng: random.Random) -> None:
    """A page keeps its promises: normal targets, each once, not itself."""
    headers = {"content-type": rng.choice(_TYPES)}
    page = parse_page(Fetched(URL, 200, headers, case))
    if not isinstance(page, Page):
        return
    targets = [link.url for link in page.links]
    assert len(targets) == len(set(targets))
    assert all(normalise(target) == target for target in targets[:200])
    assert "\x00" not in "".join(targets)
    assert page.text == " ".join(page.text.split())
    content_fingerprint(page)


def read_url(case: bytes, rng: random.Random) -> None:
    """A URL is normal after one turn, and what is made of it can be asked for."""
    text = case[:20_000].decode("utf-8", rng.choice(("replace", "surrogateescape")))
    for raw in (text, f"http://{text}", f"http://h/{text}"):
        for url in (normalise(raw), resolver(URL, rng.choice(_CHARSETS))(raw)):
            if url is not None:
                assert normalise(url) == url
                assert url.isascii()
                assert robots_url(url).startswith("http")
                assert host_of(url)


def read_robots(case: bytes, rng: random.Random) -> None:
    """Rules answer for any URL, and survive being kept."""
    headers = {"cache-control": case[:50].decode("latin-1")}
    rules = rules_from_fetch(Fetched("https://e.example/robots.txt", 200, headers, case), NOW)
    tail = case[-200:].decode("latin-1")
    for path in ("/", "/" + "a" * 2_000, f"/{tail}"):
        url = normalise(f"https://e.example{path}")
        if url is not None:
            rules.allows(url, "FuzzBot/1.0")
    rules.crawl_delay_s("FuzzBot/1.0")
    named = rules.sitemaps("https://e.example/robots.txt")
    assert all(normalise(url) == url for url in named[:100])
    assert type(rules).from_state(rules.to_state()).allows(URL, "x") == rules.allows(URL, "x")


def read_feed(case: bytes, rng: random.Random) -> None:
    """A feed has normal targets."""
    page = parse_feed(Fetched(URL, 200, {"content-type": rng.choice(_TYPES)}, case))
    if page is not None:
        assert all(normalise(link.url) == link.url for link in page.links[:200])


def read_bytes(case: bytes, rng: random.Random) -> None:
    """Any bytes have a type and a text."""
    text, charset = decode(case, {"content-type": rng.choice(_TYPES)})
    text.encode(charset, "replace")
    assert "/" in sniff_type(case)


def read_headers(case: bytes, rng: random.Random) -> None:
    """Any answer is an outcome."""
    value = case[:5_000].decode("latin-1")
    names = ("location", "retry-after", "content-type", "x-robots-tag", "refresh")
    headers = {name: value for name in names if rng.random() < 0.6}
    status = rng.choice((200, 301, 302, 404, 429, 500, 503, 999))
    outcome_of(status, headers, URL, case[:1_000], 0.1, NOW)
    waits_s = retry_after_s(headers, NOW)
    assert waits_s is None or waits_s >= 0.0
    read_tags(value, [value], "fuzzbot")


TARGETS: Mapping[str, Target] = {
    "page": read_page,
    "url": read_url,
    "robots": read_robots,
    "feed": read_feed,
    "bytes": read_bytes,
    "headers": read_headers,
}


class Findings:
    """Counts cases, keeps the bytes of those that went wrong."""

    def __init__(self, folder: Path) -> None:
        self.cases: Counter[str] = Counter()
        self.slowest_s: dict[str, float] = {}
        self.found: list[str] = []
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._current = folder / "current.bin"

    def run(self, name: str, case: bytes, rng: random.Random) -> None:
        """Give one case to one target."""
        self.cases[name] += 1
        self._current.write_bytes(case)
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        began = time.process_time()
        trouble = ""
        try:
            TARGETS[name](case, rng)
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"[:300]
        took_s = time.process_time() - began
        faulthandler.cancel_dump_traceback_later()
        self.slowest_s[name] = max(took_s, self.slowest_s.get(name, 0.0))
        if took_s > MAX_CPU_S:
            trouble = trouble or f"took {took_s:.1f} s of CPU time"
        if trouble:
            self._keep(name, case, trouble)

    def _keep(self, name: str, case: bytes, trouble: str) -> None:
        path = self._folder / f"{name}-{len(self.found)}.bin"
        path.write_bytes(case)
        self.found.append(f"{name}: {trouble}: {path}")
        print(f"FOUND {self.found[-1]}", flush=True)


def corpus_of(web: Path, rng: random.Random) -> list[bytes]:
    """Real pages, as many as are of use, and the seeds as often: half of the cases are small."""
    try:
        with RecordedWeb.open(web) as recorded:
            urls = rng.sample(list(recorded.page_urls), _REAL_PAGES)
            answers = [recorded.get(url) for url in urls]
    except RecordedWebError as error:
        print(f"{error}; the seeds alone are broken", file=sys.stderr)
        return list(SEEDS)
    pages = [answer.body[:MAX_CASE_BYTES] for answer in answers if answer is not None]
    return [*pages, *rng.choices([*SEEDS, *TOKENS], k=len(pages))]


def fuzz(minutes: float, seed: int, web: Path, out: Path) -> Findings:
    """Run for so many minutes of the clock."""
    rng = random.Random(seed)
    corpus = corpus_of(web, rng)
    findings = Findings(out)
    names = tuple(TARGETS)
    ends_at = time.monotonic() + 60.0 * minutes
    while time.monotonic() < ends_at:
        case = mutated(rng, corpus)
        for name in rng.sample(names, 3):
            findings.run(name, case, rng)
    return findings


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, print the table, return 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    options = parser.parse_args(arguments)
    findings = fuzz(options.minutes, options.seed, options.web, options.out)
    memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for name, count in sorted(findings.cases.items()):
        print(f"{name:8} {count:9,} cases, the slowest {findings.slowest_s[name]:.2f} s of CPU")
    print(
        f"{findings.cases.total():,} cases in {time.process_time() / 60:.1f} minutes of CPU time, "
        f"{len(findings.found)} findings, {memory_bytes / 1e6:.0f} MB at most"
    )
    return int(bool(findings.found) or memory_bytes > MAX_MEMORY_BYTES)


if __name__ == "__main__":
    sys.exit(main())
