"""Fuzz the parsers and the crawl: broken pages, URLs, feeds, headers, WARC and DNS records.

    python benchmarks/fuzz.py [--minutes 10] [--seed 1] [--web webs/docweb-small]

Each case must be read without an exception and within a few seconds of CPU time, its result must
keep its invariants, and memory must stay bounded. A finding is reported with the file of its bytes.
One process; the same seed gives the same cases. A case that hangs ends the run: see the traceback.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from fuzz_crawl import settle_answer
from fuzz_mutations import MAX_CASE_BYTES, SEEDS, TOKENS, mutated
from fuzz_targets import PARSERS, Target

from focused.errors import RecordedWebError
from focused_lab.recorded_web.recorded_web import RecordedWeb

MAX_CPU_S = 3.0
HANG_S = 120.0  # of the clock: the machine may be busy
MAX_MEMORY_BYTES = 1_500_000_000
_REAL_PAGES = 400

TARGETS: Mapping[str, Target] = {**PARSERS, "crawl": settle_answer}


class Findings:
    """Counts cases, and stores the bytes of those that failed."""

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, Target] = TARGETS,
        max_cpu_s: float = MAX_CPU_S,
    ) -> None:
        self.cases: Counter[str] = Counter()
        self.slowest_s: dict[str, float] = {}
        self.found: list[str] = []
        self._folder = folder
        self._targets = targets
        self._max_cpu_s = max_cpu_s
        folder.mkdir(parents=True, exist_ok=True)
        self._current = folder / "current.bin"

    def run(self, name: str, case: bytes, rng: random.Random) -> None:
        """Pass one case to one target."""
        self.cases[name] += 1
        self._current.write_bytes(case)
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        began = time.process_time()
        trouble = ""
        try:
            self._targets[name](case, rng)
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"[:300]
        took_s = time.process_time() - began
        faulthandler.cancel_dump_traceback_later()
        self.slowest_s[name] = max(took_s, self.slowest_s.get(name, 0.0))
        if took_s > self._max_cpu_s:
            trouble = trouble or f"took {took_s:.1f} s of CPU time"
        if trouble:
            self._keep(name, case, trouble)

    def _keep(self, name: str, case: bytes, trouble: str) -> None:
        path = self._folder / f"{name}-{len(self.found)}.bin"
        path.write_bytes(case)
        self.found.append(f"{name}: {trouble}: {path}")
        print(f"FOUND {self.found[-1]}", flush=True)


def corpus_of(web: Path, rng: random.Random) -> list[bytes]:
    """Real pages, a useful number, and as many seeds: half of the cases are small."""
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
    """Run for that many minutes of the clock."""
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
