"""The tables of the crawling benchmark: each figure beside those of the others, with its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd


def print_tables(runs: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Print, and write to ``out``."""
    text = "\n\n".join(_table(pd.DataFrame(runs), kind) for kind in dict.fromkeys(_kinds(runs)))
    print(text)
    out.write_text(f"{text}\n")


def _kinds(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(run["kind"]) for run in runs]


def _table(runs: pd.DataFrame, kind: str) -> str:
    runs = runs[runs["kind"] == kind].copy()
    runs["pages/s"] = runs["pages"] / runs["wall_s"]
    runs["CPU ms"] = 1000 * runs["cpu_s"] / runs["pages"]
    runs["times stock"] = _ratios(runs, "pages/s", "stock")
    runs["CPU x bare"] = _ratios(runs, "CPU ms", "bare")
    columns = ["pages/s", "times stock", "CPU ms", "CPU x bare", "peak_mb", "to_first_page_s"]
    table = runs.groupby("contender", sort=False)[columns].agg(_spread)
    first = runs.iloc[0]
    rounds = runs["round"].nunique()
    heading = f"{kind}: {first['pages']} pages of {first['mean_bytes']} bytes, {rounds} rounds"
    return f"{heading}\n{table.to_string()}"


def _ratios(runs: pd.DataFrame, column: str, to: str) -> pd.Series:
    """To the other contender's figure of the same round."""
    other = runs[runs["contender"] == to].set_index("round")[column]
    return runs[column] / runs["round"].map(other)


def _spread(values: pd.Series) -> str:
    if values.isna().all():
        return "-"
    return f"{values.median():.2f} ({values.min():.2f}-{values.max():.2f})"
