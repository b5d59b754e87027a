"""The tables of the crawling benchmark, with the spread of each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

Runs = Sequence[Mapping[str, Any]]


def print_tables(runs: Runs, out: Path) -> None:
    """Print, and write to ``out``."""
    parts = []
    for kind in dict.fromkeys(str(run["kind"]) for run in runs):
        of_kind = [run for run in runs if run["kind"] == kind]
        parts += [_heading(of_kind), _figures(of_kind), _stages(of_kind)]
    text = "\n\n".join(part for part in parts if part)
    print(text)
    out.write_text(f"{text}\n")


def _heading(runs: Runs) -> str:
    first, rounds = runs[0], len({run["round"] for run in runs})
    return (
        f"{first['kind']}: {first['pages']} pages of {first['mean_bytes']} bytes, {rounds} rounds; "
        "median (least-most)"
    )


def _figures(runs: Runs) -> str:
    frame = pd.DataFrame(runs)
    frame["pages/s"] = frame["crawled_pages"] / frame["crawled_s"]
    frame["CPU ms"] = 1000 * frame["crawled_cpu_s"] / frame["crawled_pages"]
    frame["x stock"] = _ratios(frame, "pages/s", lambda name: "stock")
    frame["x one core"] = _ratios(frame, "pages/s", lambda name: name.removesuffix("-2"))
    frame["peak MB"], frame["start s"] = frame["peak_mb"], frame["to_first_page_s"]
    frame["end s"] = frame["wall_s"] - frame["crawled_s"]
    columns = ["pages/s", "x stock", "CPU ms", "x one core", "peak MB", "start s", "end s"]
    table: str = frame.groupby("contender", sort=False)[columns].agg(_spread).to_string()
    return table


def _ratios(frame: pd.DataFrame, column: str, to: Any) -> pd.Series[float]:
    """Ratios to another contender's figure of the same round."""
    by = frame.set_index(["round", "contender"])[column]
    pairs = zip(frame["round"], frame["contender"].map(to), strict=True)
    return frame[column] / pd.Series([by.get(pair, float("nan")) for pair in pairs], frame.index)


def _stages(runs: Runs) -> str:
    """Milliseconds per page by stage; for pages parsed elsewhere, those of the other process."""
    rows = [
        {"contender": run["contender"]}
        | {
            stage: 1000 * seconds / run["profile"]["pages"]
            for stage, seconds in run["profile"]["stages"].items()
        }
        | {"blocked ms": 1000 * run["profile"]["reactor_blocked"]["longest_s"]}
        for run in runs
        if run.get("profile")
    ]
    if not rows:
        return ""
    table: str = pd.DataFrame(rows).groupby("contender", sort=False).median().round(2).to_string()
    return f"milliseconds a page by stage; longest that the reactor was blocked\n{table}"


def _spread(values: pd.Series[float]) -> str:
    if values.isna().all():
        return "-"
    return f"{values.median():.2f} ({values.min():.2f}-{values.max():.2f})"
