"""Cost of pushes and pops as the frontier grows to ten million links.

``python benchmarks/frontier.py`` (or ``make benchmark-frontier``) grows one frontier to a
hundredth, a tenth and all of ``--links``, measures it at each size, kills it with ``kill -9`` and
opens it again; beside it, Scrapy's stock scheduler with its disk queues, at sizes that it can
handle. The links are sampled from those that a real crawl of a recorded web pushed. Prints tables
and writes them and ``frontier.json`` to ``benchmarks/results/frontier/``. Ten million links need
some gigabytes on disk, which are checked first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import frontier_growth as ours
from frontier_growth import grow_and_measure, reopen
from frontier_machine import forget_cached, is_in_memory, killed_at_last, machine
from frontier_recording import Recording, facts, recorded
from frontier_report import beside_table, growth_table, written
from frontier_scrapy import Died, StockJob, StockStage, stock_grow_and_measure, stock_reopen
from frontier_stages import Job, Reopened, Stage, sizes_up_to
from harvest import ROOT, Part, build

from focused.files import write_json_atomically

LINKS = 10_000_000
LEAST_LINKS = 100_000
LINKS_A_HOST = 100  # ten million links on a hundred thousand hosts
BYTES_A_LINK_AT_MOST = 500  # on disk; checked before the start, not after hours
BESIDE = ((10_000, 1_000), (100_000, 1_000))
STEPS = (100, 10)
RECORDED_PAGES = 2_000


def main() -> int:
    """Measure, print, write; return the exit status."""
    options = _options()
    os.chdir(ROOT)
    if trouble := _no_room(options.folder, options.links):
        print(trouble, file=sys.stderr)
        return 1
    build(Part(options.web, ("docweb", "--tier", "small"), (), ()))
    began_s = time.monotonic()
    recording = recorded(options.web, options.topic, RECORDED_PAGES, options.work)
    with tempfile.TemporaryDirectory(prefix="benchmark-frontier-", dir=options.folder) as folder:
        stages = _grow(recording, options.links, Path(folder) / "state")
        shutil.rmtree(Path(folder) / "state")
        beside = [
            _beside(recording, links, hosts, options.rounds, Path(folder))
            for links, hosts in BESIDE
            if links <= options.links
        ]
    whole = {
        "command": " ".join(["python", "benchmarks/frontier.py", *sys.argv[1:]]),
        "machine": machine(),
        "links_drawn_from": facts(recording),
        "terms": _terms(),
        "stages": stages,
        "beside": beside,
        "minutes": (time.monotonic() - began_s) / 60,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_json_atomically(options.out / "frontier.json", whole)
    tables = [growth_table(stages), *(beside_table(size) for size in beside)]
    written(tables, options.out / "tables.txt")
    print(f"{options.out / 'frontier.json'}; {whole['minutes']:.1f} minutes")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--links", type=int, default=LINKS, help="the largest size")
    parser.add_argument("--rounds", type=int, default=3, help="beside Scrapy; 2 at least")
    parser.add_argument(
        "--folder", type=Path, help="for the state, on a disk (default: the system's temporary one)"
    )
    parser.add_argument("--web", type=Path, default=Path("webs/docweb-small"))
    parser.add_argument("--topic", type=Path, default=Path("topics/parallel-computing.toml"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/frontier"))
    parser.add_argument("--work", type=Path, default=Path("crawls/benchmark-frontier"))
    options = parser.parse_args()
    if options.rounds < 2 or options.links < LEAST_LINKS:
        parser.error(f"--rounds is 2 at least, --links {LEAST_LINKS:,}")
    options.folder = (options.folder or Path(tempfile.gettempdir())).absolute()
    return options


def _no_room(folder: Path, links: int) -> str | None:
    """What is wrong with the folder for the state, if anything."""
    if not folder.is_dir():
        return f"{folder} is no folder: make it, or name another with --folder"
    if is_in_memory(folder):
        return f"{folder} is in memory, not on a disk: name another with --folder"
    needed, free = links * BYTES_A_LINK_AT_MOST, shutil.disk_usage(folder).free
    if free < needed:
        return (
            f"{folder} has {free / 1e9:.1f} GB free and {links:,} links may need "
            f"{needed / 1e9:.1f}: name another with --folder, or fewer with --links"
        )
    return None


def _terms() -> Mapping[str, Any]:
    return {
        "links_a_host": LINKS_A_HOST,
        "recorded_pages": RECORDED_PAGES,
        "window_pages": ours.WINDOW_PAGES,
        "pops": ours.POPS,
        "patient_pops": ours.PATIENT_POPS,
        "turns": ours.TURNS,
        "in_flight": ours.UNDER_WAY,
        "delay_s": ours.DELAY_S,
        "patience_s": ours.PATIENCE_S,
        "turn_s": ours.TURN_S,
    }


def _grow(recording: Recording, links: int, folder: Path) -> Sequence[Mapping[str, Any]]:
    """Grow one frontier; measure, kill and reopen it at each size."""
    job = Job(folder, recording, 0, links // LINKS_A_HOST, LINKS_A_HOST)
    stages = []
    for size in sizes_up_to(links):
        stage, job = _stage(replace(job, links=size))
        stages.append(stage)
    return stages


def _stage(job: Job) -> tuple[Mapping[str, Any], Job]:
    began_s = time.monotonic()
    print(f"growing to {job.links:,} links ...", flush=True)
    with killed_at_last(grow_and_measure, job) as connection:
        stage: Stage = connection.recv()
        committed: int = connection.recv()
    job = replace(job, drawn=stage.drawn, now=stage.now)
    warm = _reopened(job)
    forget_cached(job.folder)
    cold = _reopened(job)
    row = asdict(stage)
    del row["drawn"]
    row |= {
        "committed": committed,
        "reopened_warm": asdict(warm),
        "reopened_cold": asdict(cold),
        "minutes": (time.monotonic() - began_s) / 60,
    }
    print(json.dumps(row), flush=True)
    return row, job


def _reopened(job: Job) -> Reopened:
    with killed_at_last(reopen, job) as connection:
        answer: Reopened = connection.recv()
    return answer


def _beside(
    recording: Recording, links: int, hosts: int, rounds: int, folder: Path
) -> Mapping[str, Any]:
    """Ours and Scrapy's, in turn, so that other work on the machine disturbs both."""
    mine: list[Mapping[str, Any]] = []
    stock: dict[int, list[Mapping[str, Any]]] = {steps: [] for steps in STEPS}
    for number in range(rounds):
        print(f"{links:,} links on {hosts:,} hosts, round {number + 1} ...", flush=True)
        with tempfile.TemporaryDirectory(dir=folder) as state:
            job = Job(Path(state) / "state", recording, links, hosts, links // hosts, number)
            stage, _ = _stage(job)
        mine.append(stage)
        for steps in STEPS:
            with tempfile.TemporaryDirectory(dir=folder) as state:
                jobdir = Path(state) / "job"
                stock[steps].append(
                    _stock(StockJob(jobdir, recording, links, hosts, steps, number == 0, number))
                )
    return {
        "links": links,
        "hosts": hosts,
        "ours": mine,
        "scrapy": [{"steps": steps, "rounds": rounds} for steps, rounds in stock.items()],
    }


def _stock(job: StockJob) -> Mapping[str, Any]:
    with killed_at_last(stock_grow_and_measure, job) as connection:
        answer: StockStage | Died = connection.recv()
    if isinstance(answer, Died):
        return {"died": asdict(answer)}
    with killed_at_last(stock_reopen, job) as connection:
        came_back: int = connection.recv()
    return {**asdict(answer), "closed": job.closes, "came_back": came_back}


if __name__ == "__main__":
    sys.exit(main())
