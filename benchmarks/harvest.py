"""The main benchmark: harvest of the policies on four webs and 28 topics.

``python benchmarks/harvest.py`` (or ``make benchmark-harvest``) builds missing recorded webs,
compares the main policies on every topic from seeds on and off topic, the doc web with and without
a host cap, and writes tables, plots and a report into ``benchmarks/results/harvest/``. An
interrupted benchmark resumes. ``--ablations`` compares our policy with its ablations, without a
cap.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from focused.cli import main as focused
from focused.orderings import ordering_names
from focused.orderings.policy_names import ABLATION_PREFIX
from focused_lab.analysis.comparison_analysis import analyse_runs, analysis_to_dict
from focused_lab.analysis.comparison_runs import ExperimentSettings, runs_of
from focused_lab.analysis.report_files import write_comparison_report
from focused_lab.analysis.tables import all_tables
from focused_lab.trials import PlannedTrials, plan_trials

ROOT = Path(__file__).parents[1]
RESULTS = Path("benchmarks/results")
POLICIES = (
    *("focused", "shark", "best-first", "anchor", "two-phase", "ache", "tag-path", "bfs"),
    *("oracle", "path-oracle", "classifier-oracle"),
)
ABLATIONS = ("focused", *(name for name in ordering_names() if name.startswith(ABLATION_PREFIX)))


@dataclass(frozen=True, slots=True)
class Part:
    """One web of the benchmark: its builder, its topics, and its host caps."""

    web: Path
    build: tuple[str, ...]
    topics: tuple[str, ...]
    host_caps: tuple[str, ...]


PARTS = (
    Part(
        Path("webs/docweb-medium"),
        ("docweb", "--tier", "medium"),
        (
            *("databases", "security", "docweb/networking", "astronomy"),
            *("parallel-computing", "statistics", "cryptography"),
            *("docweb/http", "docweb/text-processing", "docweb/software-testing"),
        ),
        ("none", "100"),
    ),
    # Webs of one to three hosts: a cap would be a budget.
    Part(
        Path("webs/foldoc"),
        ("foldoc",),
        tuple(
            f"foldoc/{name}"
            for name in (
                *("networking", "hardware", "operating-system"),
                *("storage", "mathematics", "database"),
            )
        ),
        ("none",),
    ),
    Part(
        Path("webs/wordnet"),
        ("wordnet",),
        tuple(
            f"wordnet/{name}"
            for name in ("chemistry", "law", "military", "music", "mythology", "sport")
        ),
        ("none",),
    ),
    Part(
        Path("webs/debian"),
        ("debian",),
        tuple(
            f"debian/{name}"
            for name in ("electronics", "games", "hamradio", "mail", "math", "sound")
        ),
        ("none",),
    ),
)


def main() -> int:
    """Run what is missing, write and print the results; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ablations", action="store_true", help="what each part of ours is worth")
    parser.add_argument("--policies", help="names, with commas between")
    parser.add_argument("--budget", default="500", help="pages per run (default: 500)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    name = "ablations" if options.ablations else "harvest"
    options.policies = options.policies or ",".join(ABLATIONS if options.ablations else POLICIES)
    options.out = options.out or RESULTS / name
    options.work = options.work or Path("crawls") / f"benchmark-{name}"
    os.chdir(ROOT)  # the report names folders as they were given, so paths are relative
    began_s = time.monotonic()
    documents = []
    for part in PARTS:
        folder = options.work / part.web.name
        build(part)
        if status := _compare(part, folder, options):
            return status
        documents.append(json.loads((folder / "comparison.json").read_text(encoding="utf-8")))
    whole = merged(documents)
    for path in write_comparison_report(whole, options.out):
        print(path)
    for table in all_tables(analyse_runs(runs_of(whole["runs"]), whole["settings"]["seed"])):
        Console(width=110).print(table)
    minutes = (time.monotonic() - began_s) / 60
    print(f"{len(whole['runs']):,} runs; this session took {minutes:.1f} minutes")
    return 0


def merged(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Comparisons with the same settings as one, and analyse all runs together."""
    first = documents[0]
    runs = [run for each in documents for run in each["runs"]]
    return {
        **first,
        "command": ["benchmarks/harvest.py", *sys.argv[1:]],
        "webs": [web for each in documents for web in each["webs"]],
        "runs": runs,
        "skipped": [skipped for each in documents for skipped in each["skipped"]],
        **analysis_to_dict(runs, first["settings"]["seed"]),
    }


def build(*parts: Part) -> None:
    """Build the webs that don't exist; exit with the status of one that cannot be built."""
    for part in parts:
        if not (part.web / "web.json").is_file():
            status = run_focused("web", "build", *part.build, "--folder", str(part.web))
            if status:
                sys.exit(status)


def parts_of(webs: str) -> list[Part]:
    """Return the parts whose webs are named, with commas between the names."""
    return [part for part in PARTS if part.web.name in webs.split(",")]


def plan_topic(
    part: Part, topic: str, budget: int, draws: int = 1
) -> AbstractContextManager[PlannedTrials]:
    """Plan ``draws`` focused crawls of a topic by ``budget`` pages, from five pages on topic."""
    settings = ExperimentSettings(str(budget), draws)
    return plan_trials(part.web, [Path(f"topics/{topic}.toml")], settings)


def collect(rows: Iterable[Any], out: Path | None = None) -> pd.DataFrame:
    """Print rows, which are dataclasses, as they come; write them into a JSON file."""
    found = []
    for row in rows:
        found.append(asdict(row))
        print(*found[-1].values(), sep="\t", flush=True)
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return pd.DataFrame(found)


def _compare(part: Part, folder: Path, options: argparse.Namespace) -> int:
    words = ["--web", str(part.web), "--policies", options.policies, "--budget", options.budget]
    for topic in part.topics:
        words += ["--topic", f"topics/{topic}.toml"]
    for cap in part.host_caps[:1] if options.ablations else part.host_caps:
        words += ["--host-cap", cap]
    for seeds in ("on-topic:5", "off-topic:5"):
        words += ["--seeds", seeds]
    words += ["--repeat", str(options.repeat), "--jobs", str(options.jobs), "--out", str(folder)]
    return run_focused("compare", *words)


def run_focused(*words: str) -> int:
    """Run the command ``focused`` in this process; return its exit status."""
    try:
        focused(list(words), standalone_mode=False)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
