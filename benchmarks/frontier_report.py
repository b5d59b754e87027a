"""The frontier benchmark's tables, with the targets for ten million links."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from focused.files import write_atomically

WIDTH = 110
GROWTH_AT_MOST = 2.0

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One measure: its name, its value in a stage, and its maximum at ten million links."""

    name: str
    read: Callable[[Figures], float]
    at_most: float | None = None
    cost: bool = False
    """Whether it is the cost of an operation, which may grow by :data:`GROWTH_AT_MOST`."""
    digits: int = 1


def _timed(name: str, key: str, at_most: float | None = None) -> Sequence[Line]:
    return (
        Line(
            f"{name}, median µs", lambda stage: float(stage[key]["median_us"]), at_most, cost=True
        ),
        Line("  of CPU, mean", lambda stage: float(stage[key]["cpu_us"]), cost=True),
        Line("  mean", lambda stage: float(stage[key]["mean_us"])),
        Line("  p99", lambda stage: float(stage[key]["p99_us"])),
    )


LINES: Sequence[Line] = (
    Line("hosts", lambda stage: float(stage["hosts"]), digits=0),
    Line("pushed links that waited already, %", lambda stage: 100 * float(stage["share_waited"])),
    *_timed("push, a link", "push", 15.0),
    Line("  a new link, median µs", lambda stage: float(stage["push_new"]["median_us"])),
    Line("  one that waits, median µs", lambda stage: float(stage["push_again"]["median_us"])),
    Line("look-ups before it, median µs", lambda stage: float(stage["look_up"]["median_us"])),
    *_timed("pop", "pop", 25.0),
    *_timed("pop with patience", "pop_patient"),
    *_timed("turn: pop, look up, push a page", "turn"),
    Line("pushed links a second", lambda stage: float(stage["pushed_links_per_s"]), digits=0),
    Line("sync once a second, median ms", lambda stage: float(stage["sync_ms_median"])),
    Line("disk, bytes a link", lambda stage: bytes_a_link(stage), 200.0),
    Line("memory of the frontier, MB", lambda stage: float(stage["anonymous_mb"])),
    Line("  at most, while it grew", lambda stage: float(stage["anonymous_most_mb"]), 300.0),
    Line("  with Python and the benchmark", lambda stage: float(stage["anonymous_in_all_mb"])),
    Line("order: a better host was due, by nats", lambda stage: _order(stage, "among_hosts"), 0.0),
    Line("order: the host had better, by nats", lambda stage: _order(stage, "in_host"), 0.0),
    Line("reopened after kill -9, s", lambda stage: _reopened(stage, "warm"), 5.0, digits=2),
    Line("  with nothing cached, s", lambda stage: _reopened(stage, "cold"), digits=2),
    Line("committed links lost by the kill", lambda stage: lost(stage), 0.0, digits=0),
)


def growth_table(stages: Sequence[Figures]) -> Table:
    """A column per size, the ratio of last to first, and the target."""
    table = Table(title="Our frontier as it grows", title_justify="left")
    table.add_column("")
    for stage in stages:
        table.add_column(f"{stage['links']:,}", justify="right")
    table.add_column("growth", justify="right")
    table.add_column("wanted", justify="right")
    for line in LINES:
        values = [line.read(stage) for stage in stages]
        growth = values[-1] / values[0] if values[0] else None
        table.add_row(
            line.name,
            *(f"{value:,.{line.digits}f}" for value in values),
            ""
            if growth is None
            else _marked(f"{growth:.2f}", line.cost and growth > GROWTH_AT_MOST),
            _wanted(line, values[-1]),
        )
    return table


def beside_table(size: Figures) -> Table:
    """Ours and Scrapy's at a size that Scrapy can handle: medians of the rounds, and ratios."""
    title = f"{size['links']:,} links on {size['hosts']:,} hosts, medians of rounds"
    table = Table(title=title, title_justify="left", caption_justify="left")
    for name in ("", "push µs", "p99", "pop µs", "p99", "links/s", "B/link", "MB", "lost"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    mine = _row(size["ours"])
    table.add_row("ours", *_told(mine), f"{max(lost(stage) for stage in size['ours']):,.0f}")
    ended = []
    for stock in size["scrapy"]:
        name = f"Scrapy, {stock['steps'] + 1} priorities"
        died = [stage["died"] for stage in stock["rounds"] if "died" in stage]
        if died:
            ended.append(f"{name}: ended at {died[0]['links']:,} links: {died[0]['why']}")
            continue
        theirs = _row(stock["rounds"])
        killed = [stage for stage in stock["rounds"] if not stage["closed"]]
        gone = max(stage["left"] - stage["came_back"] for stage in killed)
        table.add_row(name, *_told(theirs), f"{gone:,}")
        ratios = (them / us if us else None for them, us in zip(theirs, mine, strict=True))
        table.add_row("  times ours", *("" if r is None else f"{r:.2f}" for r in ratios))
    table.caption = "\n".join(["lost: links that were queued, after kill -9", *ended])
    return table


def written(tables: Sequence[Table], file: Path) -> None:
    """Print tables, and write them to a file."""
    console = Console(width=WIDTH, record=True)
    for table in tables:
        console.print(table)
    write_atomically(file, console.export_text().encode())


def lost(stage: Figures) -> float:
    """Committed links that were missing after the kill."""
    return float(stage["committed"] - stage["reopened_warm"]["links"])


def bytes_a_link(stage: Figures) -> float:
    """Bytes on disk per queued link."""
    return float(stage["disk_bytes"] / stage["links"])


def _row(rounds: Sequence[Figures]) -> Sequence[float]:
    columns: Sequence[Callable[[Figures], float]] = (
        lambda stage: stage["push"]["median_us"],
        lambda stage: stage["push"]["p99_us"],
        lambda stage: stage["pop"]["median_us"],
        lambda stage: stage["pop"]["p99_us"],
        lambda stage: stage["pushed_links_per_s"],
        lambda stage: stage["disk_bytes"] / stage.get("left", stage["links"]),
        lambda stage: stage["anonymous_mb"],
    )
    # Bytes that Scrapy writes are only known for rounds that ended normally.
    return [
        statistics.median(
            read(stage)
            for stage in rounds
            if read is not columns[5] or stage["disk_bytes"] is not None
        )
        for read in columns
    ]


def _told(row: Sequence[float]) -> Sequence[str]:
    return [f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" for value in row]


def _order(stage: Figures, key: str) -> float:
    return float(stage["order"][key])


def _reopened(stage: Figures, how: str) -> float:
    return float(stage[f"reopened_{how}"]["to_first_offer_s"])


def _wanted(line: Line, value: float) -> str:
    if line.at_most is None:
        return f"growth ≤ {GROWTH_AT_MOST:.0f}" if line.cost else ""
    return _marked(f"≤ {line.at_most:,.0f}", value > line.at_most)


def _marked(text: str, missed: bool) -> str:
    return f"[red]{text}[/red]" if missed else text
