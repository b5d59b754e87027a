"""``focused compare``: orderings on recorded webs, in simulated or live crawls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from focused.cli.common import ANY_PATH, FILE, FOLDER, SECONDS


@click.command()
@click.option(
    "--web",
    "webs",
    type=ANY_PATH,
    multiple=True,
    help="A recorded web, or a WARC file; all WARC files are one web. Repeatable; required.",
)
@click.option("--labels", type=FILE, help="Ground truth instead of the webs' own.")
@click.option(
    "--topic", "topics", type=FILE, multiple=True, help="A topic file. Repeatable; required."
)
@click.option(
    "--policies",
    default="focused,best-first,bfs",
    show_default=True,
    help="Orderings to compare, separated by commas.",
)
@click.option(
    "--budget",
    default="1000",
    show_default=True,
    help="Pages per run; xF: F times the topic's on-topic pages.",
)
@click.option(
    "--seeds",
    multiple=True,
    default=("topic",),
    show_default=True,
    help="Seed set: topic, on-topic:5, off-topic:5, or a file of URLs. Repeatable.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Repetitions with other seeds, latencies and tie-breaking.",
)
@click.option(
    "--host-cap",
    "host_caps",
    multiple=True,
    help="Maximum number of pages per host, or none. Default: the topic's. Repeatable.",
)
@click.option(
    "--latency-s", type=SECONDS, default=0.2, show_default=True,
    help="Mean response time in seconds.",
)  # fmt: skip
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for sampling seeds and tie-breaking.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes.",
)
@click.option("--json", "json_path", type=FILE, help="Also write all runs there.")
@click.option(
    "--out",
    "folder",
    type=FOLDER,
    default=Path("comparison"),
    show_default=True,
    help="Folder of the results.",
)
@click.option("--fresh", is_flag=True, help="Move the journal of --out aside; repeat all runs.")
@click.option(
    "--live", is_flag=True, help="Run real crawls over the replayed web instead of simulations."
)
@click.option(
    "--delay-s",
    type=SECONDS,
    default=0.02,
    show_default=True,
    help="With --live: seconds between two requests to a host.",
)
@click.option("--from", "document", type=FILE, help="Only report the runs of this comparison.json.")
def compare(
    budget: str,
    repeat: int,
    latency_s: float,
    seed: int,
    folder: Path,
    live: bool,
    delay_s: float,
    document: Path | None,
    **options: Any,
) -> None:
    """Simulate crawls of recorded webs and compare orderings by the webs' labels.

    The same command resumes an interrupted comparison. See docs/how-to/compare.md.
    """
    from focused_lab.analysis.comparison_runs import ExperimentSettings
    from focused_lab.commands.compare_actions import (
        CompareOptions,
        compare_policies,
        show_comparison_file,
    )

    if document is not None:
        sys.exit(show_comparison_file(document, folder))
    settings = ExperimentSettings(budget, repeat, latency_s, seed, delay_s if live else None)
    sys.exit(compare_policies(CompareOptions(settings=settings, folder=folder, **options)))
