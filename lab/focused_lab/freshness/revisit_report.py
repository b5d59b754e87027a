"""Statistics, tables, files and curves of a comparison of revisit policies.

Intervals are 95%, by a bootstrap over sites: pages of one site change together, so pages are not
independent. All policies share the resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from rich.table import Table

from focused.corpus.writers import escape_formulas
from focused.durations import DAY_S
from focused.errors import ComparisonError
from focused.files import write_atomically, write_json_atomically
from focused.reports.crawl_plots import (
    INK,
    PALETTE,
    REST,
    CurveStyle,
    add_text,
    new_figure,
    spread_labels,
    style_axes,
    to_png,
)
from focused_lab.analysis.inference import FloatArray, bootstrap_weights, middle_part
from focused_lab.analysis.number_format import NONE
from focused_lab.analysis.svg import to_svg
from focused_lab.analysis.tables import new_table
from focused_lab.freshness.revisit_comparison import (
    BOUNDS,
    OPTIMAL,
    UNIFORM,
    UPPER_BOUND,
    RevisitSettings,
    SiteRow,
)

OURS = "hazard"


class Measure(msgspec.Struct, frozen=True):
    """A measure over all sites, with its interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class PolicyMeasures(msgspec.Struct, frozen=True):
    """What one policy reached at one mean interval and budget, over all repeats."""

    policy: str
    interval_days: float
    budget: str
    freshness: Measure
    gain: Measure
    """Freshness above uniform, as a share of what the optimum with true rates is above it."""
    bound_gain: Measure
    """The same as a share of what the upper bound is above uniform."""
    age_days: Measure
    caught: Measure
    """Share of the changes whose version was fetched."""
    visits: int
    microseconds: float
    """CPU time per visit, with the simulation."""


def summarise(rows: Sequence[SiteRow], seed: int = 0) -> list[PolicyMeasures]:
    """Compute the measures of each policy, interval and budget."""
    frame = pd.DataFrame([msgspec.structs.asdict(row) for row in rows])
    sites = list(dict.fromkeys(frame["site"]))
    weights = bootstrap_weights(sites, np.random.default_rng(seed))
    keys = ["budget", "interval_days", "policy", "site"]
    sums = frame.groupby(keys, sort=False).sum(numeric_only=True)
    found = []
    for budget, days in dict.fromkeys(zip(frame["budget"], frame["interval_days"], strict=True)):
        cell = sums.loc[budget, days]
        names = list(dict.fromkeys(cell.index.get_level_values("policy")))
        tables = {name: cell.loc[name].reindex(sites) for name in names}
        found += [
            _measures(name, days, budget, table, tables, weights) for name, table in tables.items()
        ]
    return found


def _measures(
    name: str,
    days: float,
    budget: str,
    table: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    weights: FloatArray,
) -> PolicyMeasures:
    def freshness(each: pd.DataFrame, drawn: FloatArray) -> FloatArray:
        return _ratio(each, "fresh_s", "time_s", drawn)

    def gain(top: str, drawn: FloatArray) -> FloatArray:
        low, high = freshness(tables[UNIFORM], drawn), freshness(tables[top], drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((freshness(table, drawn) - low) / (high - low))

    visits = int(table["visits"].sum())
    return PolicyMeasures(
        name,
        days,
        budget,
        freshness=_measure(lambda drawn: freshness(table, drawn), weights),
        gain=_measure(partial(gain, OPTIMAL), weights),
        bound_gain=_measure(partial(gain, UPPER_BOUND), weights)
        if UPPER_BOUND in tables
        else Measure(None),
        age_days=Measure(None)
        if name == UPPER_BOUND
        else _measure(lambda drawn: _ratio(table, "age_s2", "time_s", drawn) / DAY_S, weights),
        caught=_measure(lambda drawn: _ratio(table, "caught", "changes", drawn), weights),
        visits=visits,
        microseconds=1e6 * float(table["cpu_s"].sum()) / max(visits, 1),
    )


def _ratio(table: pd.DataFrame, part: str, whole: str, drawn: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            (drawn @ table[part].to_numpy(float)) / (drawn @ table[whole].to_numpy(float))
        )


def _measure(compute: Callable[[FloatArray], FloatArray], weights: FloatArray) -> Measure:
    sites = weights.shape[1]
    value = float(compute(np.ones((1, sites)))[0])
    if not np.isfinite(value):
        return Measure(None)
    drawn = compute(weights)
    drawn = drawn[np.isfinite(drawn)]
    if sites < 2 or not drawn.size:
        return Measure(value)
    return Measure(value, *middle_part(drawn))


_SHOWN: Mapping[str, tuple[str, float, int]] = {
    "gain": ("Share of the gap from uniform to optimal with true rates, %", 100, 0),
    "bound_gain": ("Share of the gap from uniform to the upper bound, %", 100, 0),
    "freshness": ("Freshness, %", 100, 1),
    "age_days": ("Age, days", 1, 2),
    "caught": ("Changes caught, %", 100, 1),
}
"""The measures in tables: title, factor and digits."""


def result_tables(measures: Sequence[PolicyMeasures]) -> list[Table]:
    """Create a table per measure and budget: policies by mean intervals."""
    found = []
    for budget in dict.fromkeys(each.budget for each in measures):
        rows = [each for each in measures if each.budget == budget]
        days = list(dict.fromkeys(each.interval_days for each in rows))
        by_cell = {(each.policy, each.interval_days): each for each in rows}
        for measure, (title, factor, digits) in _SHOWN.items():
            table = new_table(
                f"{title} · {budget} budget", "policy",
                *(column for each in days for column in (f"{each:g} days", "95%")),
            )  # fmt: skip
            for name in rank_policies(rows):
                shown = [getattr(by_cell[name, each], measure) for each in days]
                cells = [text for each in shown for text in _cells(each, factor, digits)]
                table.add_row(name, *cells)
            found.append(table)
    return found


def rank_policies(measures: Sequence[PolicyMeasures]) -> list[str]:
    """Return the policies by mean gain, the best first; bounds come last."""
    gains: dict[str, list[float]] = {}
    for each in measures:
        gains.setdefault(each.policy, []).append(each.gain.value or 0.0)
    return sorted(gains, key=lambda name: (name in BOUNDS, -float(np.mean(gains[name]))))


def _cells(measure: Measure, factor: float, digits: int) -> tuple[str, str]:
    def number(value: float | None) -> str:
        if value is None:
            return NONE
        # Adding zero turns a rounded minus zero into zero.
        return f"{round(factor * value, digits) + 0.0:.{digits}f}".replace("-", "−")

    low_high = NONE if measure.low is None else f"{number(measure.low)} to {number(measure.high)}"
    return number(measure.value), low_high


def measures_frame(measures: Sequence[PolicyMeasures]) -> pd.DataFrame:
    """The measures as a flat frame: a row per policy, interval and budget."""
    rows = []
    for each in measures:
        row: dict[str, Any] = {}
        for key, value in msgspec.structs.asdict(each).items():
            if isinstance(value, Measure):
                row |= {key: value.value, f"{key}_low": value.low, f"{key}_high": value.high}
            else:
                row[key] = value
        rows.append(row)
    return pd.DataFrame(rows)


def write_report(
    settings: RevisitSettings,
    rows: Sequence[SiteRow],
    measures: Sequence[PolicyMeasures],
    folder: Path,
) -> list[Path]:
    """Write ``revisits.json``, ``measures.csv``, ``sites.csv`` and the curves as PNG and SVG.

    Raises ComparisonError when the folder cannot be written.
    """
    sites = pd.DataFrame([msgspec.structs.asdict(row) for row in rows])
    sites["site"] = sites["site"].map(escape_formulas)  # a file's name is untrusted
    contents = {
        "measures.csv": measures_frame(measures).to_csv(index=False).encode(),
        "sites.csv": sites.to_csv(index=False).encode(),
    }
    for budget in dict.fromkeys(each.budget for each in measures):
        for name, (png, svg) in plot_curves(measures, budget).items():
            contents[f"{name}-{budget}.png"] = png
            contents[f"{name}-{budget}.svg"] = svg
    document = {
        "settings": msgspec.to_builtins(settings),
        "measures": msgspec.to_builtins(list(measures)),
        "sites": msgspec.to_builtins(list(rows)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json_atomically(folder / "revisits.json", document)
        written = [write_atomically(folder / name, content) for name, content in contents.items()]
    except OSError as error:
        where = error.filename or folder
        raise ComparisonError(f"{where} cannot be written: {error.strerror}") from error
    return [folder / "revisits.json", *written]


def plot_curves(measures: Sequence[PolicyMeasures], budget: str) -> dict[str, tuple[bytes, bytes]]:
    """Draw freshness and gain against the mean interval; PNG and SVG by name."""
    rows = [each for each in measures if each.budget == budget]
    drawn = {}
    for name, title in (
        ("freshness", "Freshness by mean interval between visits"),
        ("gain", "Share of the gap from uniform to optimal with true rates"),
    ):
        figure = new_figure(9, 5)
        axes = figure.add_subplot()
        style_axes(axes, title, f"{budget} budget; bands: 95% over sites")
        _plot_measure(axes, rows, name, clip=name == "gain")
        drawn[name] = (to_png(figure), to_svg(figure, f"{name}-{budget}").encode())
    return drawn


def _plot_measure(axes: Axes, rows: Sequence[PolicyMeasures], measured: str, *, clip: bool) -> None:
    days = sorted({each.interval_days for each in rows})
    styles = _styles(rank_policies(rows))
    ends: dict[str, float] = {}
    for name, style in styles.items():
        curve = sorted(
            (each for each in rows if each.policy == name), key=lambda each: each.interval_days
        )
        points = [(each.interval_days, getattr(each, measured)) for each in curve]
        points = [(at, measure) for at, measure in points if measure.value is not None]
        if not points:
            continue
        x, y = [at for at, _ in points], [measure.value or 0.0 for _, measure in points]
        axes.plot(
            x, y, style.style, color=style.colour, lw=style.width, marker="o", ms=3,
            zorder=3 if style.main else 2,
        )  # fmt: skip
        if style.main and all(measure.low is not None for _, measure in points):
            lows = [measure.low or 0.0 for _, measure in points]
            highs = [measure.high or 0.0 for _, measure in points]
            axes.fill_between(x, lows, highs, color=style.colour, alpha=0.12, lw=0)
        ends[name] = y[-1]
    if clip:
        axes.set_ylim(-1.0, 1.1)
    axes.set_xscale("log")
    axes.set_xlim(days[0], days[-1] if len(days) > 1 else days[0] * 1.1)
    axes.xaxis.set_major_locator(FixedLocator(days))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("mean interval, days", color=INK)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    low, high = axes.get_ylim()
    heights = [min(max((end - low) / (high - low), 0.0), 1.0) for end in ends.values()]
    for (name, end), place in zip(ends.items(), spread_labels(heights, 0.04), strict=True):
        style = styles[name]
        add_text(
            axes, 1.02, float(place), f"{name}  {end:.0%}", va="center",
            color=style.colour if style.main else REST, fontsize=8 if style.main else 6.5,
        )  # fmt: skip


def _styles(ranked: Sequence[str]) -> dict[str, CurveStyle]:
    """Colours for ours, uniform and the best others; bounds are dashed, the rest grey."""
    chosen = [name for name in (OURS, UNIFORM) if name in ranked]
    chosen += [name for name in ranked if name not in chosen and name not in BOUNDS]
    colours = dict(zip(chosen, PALETTE, strict=False))
    dashes = dict(zip(BOUNDS, ("--", ":"), strict=True))
    return {
        name: CurveStyle(INK, dashes[name], 1.4, True)
        if name in dashes
        else CurveStyle(colours[name], "-", 2.2 if name == OURS else 1.6, True)
        if name in colours
        else CurveStyle(REST, "-", 0.7, False)
        for name in ranked
    }
