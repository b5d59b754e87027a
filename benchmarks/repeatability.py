"""Variation of a crawl of the default topic from run to run.

``python benchmarks/repeatability.py`` runs ``focused crawl`` ten times with each of two policies on
the recorded web of ``make crawl``, and prints the harvest rate by labels of each run, and how many
pages all runs share. ``--concurrency 1 --delay-s 0`` are the settings of ``make crawl``;
``--concurrency 16 --delay-s 0.02`` has many requests in flight. ``--json`` names a file for the
report.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl: ``harvest_rate`` by labels, in [0, 1]; ``urls`` in order of fetching."""

    policy: str
    harvest_rate: float
    wall_s: float
    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """The harvest rates of equal runs, in [0, 1].

    ``in_common`` is the share of the first run's pages that all runs fetched.
    """

    policy: str
    runs: int
    lowest: float
    mean: float
    highest: float
    deviation: float
    same_order: bool
    in_common: float


def spread_of(runs: list[Run]) -> Spread:
    """Summarise runs of one policy."""
    rates = [run.harvest_rate for run in runs]
    first, common = runs[0].urls, set.intersection(*(set(run.urls) for run in runs))
    return Spread(
        runs[0].policy,
        len(runs),
        min(rates),
        statistics.mean(rates),
        max(rates),
        statistics.stdev(rates) if len(rates) > 1 else 0.0,
        all(run.urls == first for run in runs),
        len(common) / len(first) if first else 1.0,
    )


def crawl(options: argparse.Namespace, policy: str, folder: Path) -> Run:
    """Crawl once into ``folder``; CalledProcessError when the crawl fails."""
    command = [sys.executable, "-m", "focused.cli", "crawl", str(options.topic)]
    given = {
        "--web": options.web,
        "--policy": policy,
        "--pages": options.pages,
        "--delay-s": options.delay_s,
        "--concurrency": options.concurrency,
        "--folder": folder,
    }
    for name, value in given.items():
        command += [] if value is None else [name, str(value)]
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    wall_s = time.monotonic() - began
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    pages = pd.read_parquet(folder / "pages.parquet", columns=["seq", "url", "outcome"])
    fetched = pages[pages["outcome"] == "fetched"].sort_values("seq")
    return Run(policy, report["by_labels"]["rate"], wall_s, tuple(fetched["url"]))


def main() -> None:
    """Run the crawls and print their spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--policies", default="focused,bfs")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--pages", type=int)
    parser.add_argument("--delay-s", type=float, default=0.0)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    spreads = []
    for policy in options.policies.split(","):
        runs = []
        for number in range(1, options.runs + 1):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(crawl(options, policy, Path(folder) / "crawl"))
            print(f"{policy}, run {number}: {runs[-1].harvest_rate:.1%}, {runs[-1].wall_s:.0f} s")
        spreads.append(spread_of(runs))
        print(described(spreads[-1]))
    if options.json:
        settings = {"concurrency": options.concurrency, "delay_s": options.delay_s}
        document = {**settings, "spreads": [asdict(each) for each in spreads]}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def described(spread: Spread) -> str:
    """The spread in one line."""
    pages = (
        "the same pages in the same order"
        if spread.same_order
        else f"{spread.in_common:.0%} of the pages in common"
    )
    return (
        f"{spread.policy}, {spread.runs} runs: {spread.lowest:.1%} to {spread.highest:.1%}, "
        f"mean {spread.mean:.1%}, standard deviation {100 * spread.deviation:.1f} points; {pages}"
    )


if __name__ == "__main__":
    main()
