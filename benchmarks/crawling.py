"""Cost of a page: our crawl beside Scrapy's own.

``make benchmark-crawl``. nginx, in its own process, serves small and real pages at 250 loopback
addresses; the contenders crawl them in turn, ``--rounds`` times. On one core the crawler has one to
itself and the server the other; with both cores the system schedules crawler, workers and server.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawling_report import print_tables
from crawling_server import served
from crawling_site import Site, addresses, site_of

from focused.reports.crawl_folder import read_crawl

HERE = Path(__file__).parent
ROOT = HERE.parent
KINDS = ("small", "real")
CONTENDERS = ("stock", "focused", "bfs", "focused-2", "bfs-2", "processes-2")
"""``-2``: with both cores; all others on one. ``processes-2`` crawls by two processes."""
TOPIC = """
name = "benchmark"
[seeds]
urls = {seeds}
[training]
directory = ["{root}/training/directories/docweb.tsv"]
good = ["Top/Computers/Parallel_Computing"]
model = "{model}"
link_prior = "without-docweb"
[scope]
allow_hosts = {hosts}
private_addresses = true
[politeness]
user_agent = "FocusedBenchmark/1.0 (+http://127.0.0.1/)"
delay_s = 0.0
fetch_time_factor = 0.0
concurrency = {concurrency}
[budget]
pages = {pages}
[output]
folder = "{folder}/out"
"""


def write_topic(folder: Path, model: Path, seeds: Sequence[str], **limits: int) -> Path:
    """Write the topic file of a crawl into ``folder``; ``limits`` are concurrency and pages."""
    path = folder / "benchmark.toml"
    hosts = json.dumps(addresses())
    seeds_list = json.dumps(seeds)
    path.write_text(
        TOPIC.format(seeds=seeds_list, hosts=hosts, root=ROOT, model=model, folder=folder, **limits)
    )
    return path


def train_model(web: Path, folder: Path) -> Path:
    """Train the model once, on pages of the doc web, as a crawl would that can fetch them.

    From their titles alone it has a tenth of the words, and no spam classifier.
    """
    model = folder / "benchmark.joblib"
    if not model.exists():
        folder.mkdir(parents=True, exist_ok=True)
        topic = write_topic(folder, model, ["http://127.0.1.1/"], concurrency=1, pages=1)
        command = [sys.executable, "-m", "focused.cli", "train", str(topic), "--web", str(web)]
        subprocess.run(command, cwd=ROOT, check=True)
    return model


@dataclass(frozen=True, slots=True)
class Race:
    """One contender on one kind of pages."""

    contender: str
    site: Site
    pages: int
    concurrency: int
    folder: Path
    model: Path

    @property
    def core(self) -> Sequence[str]:
        """The command prefix that pins the crawler to its core."""
        return () if self.contender.endswith("-2") else ("taskset", "-c", "0")

    @property
    def servers_core(self) -> Sequence[str]:
        """The command prefix that pins the server to the other core."""
        return () if self.contender.endswith("-2") else ("taskset", "-c", "1")

    def command(self) -> list[str]:
        """Start the contender; its figures go to ``result.json`` in the folder."""
        began_at = str(time.time())
        result = self.folder / "result.json"
        policy = self.contender.removesuffix("-2")
        if policy == "processes":
            out = self.folder / "out"
            return [
                *(sys.executable, "-m", "focused.cli", "crawl", str(self._topic())),
                *("--processes", "2", "--folder", str(out)),
            ]
        if policy in ("focused", "bfs"):
            return [
                *(*self.core, sys.executable, "-m", "focused.cli", "crawl", str(self._topic())),
                *("--policy", policy, "--folder", str(self.folder / "out")),
                *("-s", "FOCUSED_PROGRESS_INTERVAL_S=0"),
                *("-s", f"METER_RESULT={result}", "-s", f"METER_BEGAN_AT={began_at}"),
                *("-s", 'EXTENSIONS={"crawling_meter.Meter": 0}'),
            ]
        seeds, hosts = self.folder / "seeds.txt", self.folder / "hosts.txt"
        seeds.write_text("\n".join(self.site.seeds))
        hosts.write_text("\n".join(addresses()))
        arguments = [seeds, hosts, self.pages, self.concurrency, result, began_at]
        script = str(HERE / "crawling_stock.py")
        return [*self.core, sys.executable, script, *map(str, arguments)]

    def _topic(self) -> Path:
        return write_topic(
            self.folder, self.model, self.site.seeds, concurrency=self.concurrency, pages=self.pages
        )

    def run(self) -> dict[str, Any]:
        """Crawl, and return the figures."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        environment = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have byte code, too
        command = self.command()
        began_at = time.time()
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        result = self.folder / "result.json"
        if self.contender == "processes-2" and not done.returncode:
            result.write_text(json.dumps(self._figures_by_rows(began_at)))
        if done.returncode or not result.exists():
            sys.exit(f"{self.contender} failed:\n{done.stdout}{done.stderr}")
        figures: dict[str, Any] = json.loads(result.read_text())
        figures |= {"contender": self.contender}
        stats = self.folder / "out" / "stats.json"
        if stats.exists():
            figures["profile"] = json.loads(stats.read_text()).get("profile")
        return figures

    def _figures_by_rows(self, began_at: float) -> dict[str, float]:
        """Return the figures of a crawl by several processes, which no meter sees as one."""
        times = read_crawl(self.folder / "out").pages["fetched_at"]
        return {
            "crawled_pages": len(times) - 1,
            "crawled_s": times.max() - times.min(),
            "crawled_cpu_s": float("nan"),
            "wall_s": time.time() - times.min(),
            "peak_mb": float("nan"),
            "to_first_page_s": times.min() - began_at,
        }


def race(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all rounds of all contenders in turn; each round starts with another."""
    runs: list[dict[str, Any]] = []
    model = train_model(options.web, options.site)
    for kind in options.kinds:
        site = site_of(kind, options.web, options.site / kind, options.port)
        for turn in range(options.rounds):
            shift = turn % len(options.contenders)
            for contender in options.contenders[shift:] + options.contenders[:shift]:
                pages = min(options.pages, site.pages * 3 // 4)
                trial = Race(
                    contender, site, pages, options.concurrency, options.folder / contender, model
                )
                with served(site, trial.servers_core):
                    figures = trial.run()
                setting = {"kind": kind, "round": turn, "pages": pages}
                runs.append(setting | {"mean_bytes": site.mean_bytes} | figures)
                per_s = figures["crawled_pages"] / figures["crawled_s"]
                cpu_ms = 1000 * figures["crawled_cpu_s"] / figures["crawled_pages"]
                print(f"{kind} {contender}: {per_s:.0f} pages/s, {cpu_ms:.2f} ms CPU", flush=True)
    return runs


def main() -> None:
    """Race, print tables, write them."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        options.folder = options.folder or Path(folder)
        runs = race(options)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "crawling.json").write_text(json.dumps(runs, indent=1))
    print_tables(runs, options.out / "tables.txt")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--web", type=Path, default=ROOT / "webs" / "docweb-small")
    parser.add_argument("--site", type=Path, default=ROOT / "webs" / "benchmark-crawl")
    parser.add_argument("--kinds", type=_names(KINDS), default=list(KINDS))
    parser.add_argument("--contenders", type=_names(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=3000, help="pages of each crawl")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--port", type=int, default=8450)
    parser.add_argument("--folder", type=Path, help="where the crawls go; a temporary one, else")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "crawling")
    return parser.parse_args()


def _names(known: Sequence[str]) -> Any:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"{sorted(unknown)} not among {', '.join(known)}")
        return chosen

    return names


if __name__ == "__main__":
    main()
