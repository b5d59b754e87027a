"""The plots of a comparison: curves by kind of start and by topic, ranks, calibration."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from focused.orderings.policy_names import BASELINE, FOCUSED
from focused.reports.crawl_plots import (
    FAINT,
    INK,
    MUTED,
    PALETTE,
    REST,
    CurveStyle,
    label_curve_ends,
    new_figure,
    style_axes,
)
from focused.reports.formatting import single_line
from focused.reports.reliability import BIN_COUNT, MIN_BIN_PAGES, bin_indices
from focused_lab.analysis.comparison_analysis import ComparisonAnalysis
from focused_lab.analysis.comparison_runs import ORACLE_NAMES, Run, RunGrid, format_start_group
from focused_lab.analysis.inference import FloatArray, bootstrap_weights, interval_bands
from focused_lab.analysis.paired_comparison import PolicyRanks

_OURS, _BASELINE, *_OTHERS = PALETTE


def curve_styles(policies: Sequence[str]) -> dict[str, CurveStyle]:
    """Assign a style to each of ``policies``, which are sorted best first.

    Our own, breadth-first and the best others get the six colours; oracles are dashed or dotted,
    the rest grey.
    """
    chosen = {FOCUSED: _OURS, BASELINE: _BASELINE}
    others = [name for name in policies if name not in ORACLE_NAMES and name not in chosen]
    others.sort(
        key=lambda name: name.startswith(f"{FOCUSED}-")
    )  # ablations get the remaining colours
    chosen |= dict(zip(others, _OTHERS, strict=False))
    styles = dict(zip(ORACLE_NAMES, (":", "--", "-."), strict=True))
    return {
        name: CurveStyle(INK, styles[name], 1.6, True)
        if name in styles
        else CurveStyle(chosen[name], "-", 2.4 if name == FOCUSED else 1.8, True)
        if name in chosen
        else CurveStyle(REST, "-", 0.8, False)
        for name in policies
    }


CURVE_POINTS = 100
_SHARES = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """A policy's mean over starts; ``mean``, ``low``, ``high`` have shape (points,).

    ``low`` and ``high`` are the 95% interval, NaN for a single start.
    """

    policy: str
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def mean_curves(
    grid: RunGrid,
    measure: str,
    rng: np.random.Generator | None = None,
    banded: Collection[str] = (),
) -> list[MeanCurve]:
    """One curve per policy with a run; ``measure`` is ``harvest`` or ``recall``.

    Runs are read at every hundredth of their budget, of which an unspent rest counts as off topic.
    Only ``banded`` policies get intervals, resampled by ``rng``.
    """
    clusters = [start.cluster for start in grid.starts]
    weights = None if rng is None else bootstrap_weights(clusters, rng)
    curves = []
    for policy in grid.policies:
        values = _curve_values(grid, policy, measure)
        if np.isnan(values).all():
            continue
        none = np.full(CURVE_POINTS, np.nan)
        low, high = none, none
        if weights is not None and policy in banded:
            low, high = interval_bands(weights, values)
        curves.append(MeanCurve(policy, np.nanmean(values, axis=0), low, high))
    return curves


def curve_positions(grid: RunGrid) -> tuple[NDArray[np.float64], int | None]:
    """The positions of the points of :func:`mean_curves`, and the budget if all runs share it.

    In pages for a shared budget, otherwise in shares of each run's own.
    """
    budgets = {run.budget for run in grid.runs.values()}
    if len(budgets) != 1:
        return _SHARES, None
    (budget,) = budgets
    return _SHARES * budget, budget


def resample_curve(run: Run, measure: str) -> NDArray[np.float64]:
    """A run at every hundredth of its budget, shape (100,), in [0, 1]."""
    at = np.maximum(_SHARES * run.budget, 1.0)
    fetched, on_topic = np.array(((0, 0), *run.curve), dtype=np.float64).T
    found = np.interp(at, fetched, on_topic)
    whole = at if measure == "harvest" else np.full(CURVE_POINTS, max(run.relevant, 1))
    return np.asarray(np.minimum(found / whole, 1.0))


def _curve_values(grid: RunGrid, policy: str, measure: str) -> FloatArray:
    missing = np.full(CURVE_POINTS, np.nan)
    rows = [
        missing if (run := grid.runs.get((start, policy))) is None else resample_curve(run, measure)
        for start in grid.starts
    ]
    return np.array(rows).reshape(len(rows), CURVE_POINTS)


CROSSBAR_WIDTH = 2.6
"""Line width, in points, of the bars that join policies whose ranks do not differ."""


def plot_critical_difference(ranks: PolicyRanks, look: Mapping[str, CurveStyle]) -> Figure:
    """Draw mean ranks on a line, the best at the left, and join those that do not differ.

    ``ranks`` must have a critical difference.
    """
    # Imported here: it loads statsmodels, which takes longer than the rest of the report.
    from scikit_posthocs import critical_difference_diagram

    # The library sorts in the same way, equal ranks included.
    names = list(pd.Series(ranks.mean_ranks).sort_values().index)
    # The diagram compares p-values with a level: 0 where the ranks differ, 1 elsewhere.
    p_values = pd.DataFrame(
        [[float(not ranks.differ(one, other)) for other in names] for one in names],
        index=names, columns=names,
    )  # fmt: skip
    figure = new_figure(8.6, 1.1 + 0.2 * len(names))
    axes = figure.add_subplot()
    drawn = critical_difference_diagram(
        ranks.mean_ranks,
        p_values,
        ax=axes,
        color_palette={name: look[name].colour if look[name].main else FAINT for name in names},
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        label_props={"fontsize": 9, "parse_math": False},
        elbow_props={"linewidth": 1.1},
        marker_props={"s": 0},
        crossbar_props={"color": INK, "linewidth": CROSSBAR_WIDTH},
        text_h_margin=0.02 * len(names),
    )
    for label, name in zip(drawn["labels"], _drawing_order(names), strict=True):
        label.set_text(single_line(label.get_text()))
        if look[name].main:
            label.set_weight("bold")
        else:
            label.set_color(MUTED)
    critical = ranks.critical_difference
    assert critical is not None  # the caller's promise
    # Above the numbers of the axis, where the library's own bar would cover them.
    axes.plot([1, 1 + critical], [1.4, 1.4], color=INK, linewidth=1.5)
    label = f"critical difference {critical:.2f} ({ranks.topics} topics)"
    axes.text(1, 1.7, label, color=INK, fontsize=8.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(colors=MUTED, labelsize=8.5)
    axes.spines["top"].set_color(INK)
    return figure


def _drawing_order(names: list[str]) -> list[str]:
    """Return the order in which the diagram labels ``names``: left half, right half reversed."""
    half = (len(names) + 1) // 2
    return names[:half] + names[half:][::-1]


_TITLES = {"harvest": "Harvest", "recall": "Recall"}
_AXES = {"harvest": "share of pages on topic", "recall": "share of the topic's pages found"}
_HIDDEN_SHARE = 0.02  # share of the budget before which a rate jumps between 0 and 1
_PANELS_PER_ROW = 4
_MAX_BANDS = 4
_PANEL_TITLE = 26  # characters
_KEY_LETTER, _KEY_HANDLE = (
    5.5,
    45,
)  # points per letter, and per legend handle


def plot_all(analysis: ComparisonAnalysis, seed: int = 0) -> dict[str, Figure]:
    """Draw all plots, by names fit for files; ``seed`` resamples the bands."""
    grid = analysis.grid
    if not grid.starts:
        return {}
    styles = curve_styles([each.policy for each in analysis.best_first])
    rng = np.random.default_rng(seed)
    pictures = {}
    for number, group in enumerate(grid.groups, 1):
        part = grid.in_group(group)
        for measure in _TITLES:
            name = f"{measure}-{number}-{_slug(format_start_group(group))}"
            title = f"{_TITLES[measure]}, {format_start_group(group)}"
            pictures[name] = plot_curves(part, measure, title, styles, rng)
    if len(grid.topics) > 1:
        pictures["harvest-by-topic"] = plot_topics(grid, styles)
    if analysis.calibration:
        pictures["reliability"] = plot_scores(analysis, styles)
    if analysis.ranks.critical_difference is not None:
        pictures["critical-difference"] = plot_critical_difference(analysis.ranks, styles)
    return pictures


def plot_curves(
    grid: RunGrid,
    measure: str,
    title: str,
    styles: Mapping[str, CurveStyle],
    rng: np.random.Generator,
) -> Figure:
    """Plot the mean ``harvest`` or ``recall`` of each policy with a 95% band."""
    banded = _policies_with_band([name for name in styles if grid.runs_of_policy(name)])
    curves = mean_curves(grid, measure, rng, banded)
    figure = new_figure(8.6, 4.6 if len(curves) <= 12 else 5.4)
    axes = figure.add_subplot()
    _plot_mean_curves(axes, grid, curves, styles, banded)
    starts = f"{len(grid.starts):,} {'start' if len(grid.starts) == 1 else 'starts'}"
    topics = f"{len(grid.topics):,} {'topic' if len(grid.topics) == 1 else 'topics'}"
    whose = "" if len(banded) == len(curves) else f" of {' and '.join(banded)}"
    band = "" if len(grid.starts) == 1 else f"; bands: 95% bootstrap interval of the mean{whose}"
    early = any(run.ended_early for run in grid.runs.values())
    unspent = "; unspent budget counts as off topic" if early and measure == "harvest" else ""
    style_axes(axes, title, f"Mean over {starts} of {topics}{band}{unspent}")
    axes.set_ylabel(_AXES[measure], color=INK, fontsize=9)
    _set_limits(axes, curves, banded)
    ends = {curve.policy: float(curve.mean[-1]) for curve in curves}
    label_curve_ends(axes, ends, styles, gap=0.052 if len(ends) <= 12 else 0.043)
    return figure


def plot_topics(grid: RunGrid, styles: Mapping[str, CurveStyle]) -> Figure:
    """Plot the harvest of each topic in a small panel, all kinds of start together."""
    topics = grid.topics
    columns = min(_PANELS_PER_ROW, len(topics))
    rows = math.ceil(len(topics) / columns)
    figure = new_figure(2.5 * columns + 0.3, 1.9 * rows + 0.8)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    all_curves: list[MeanCurve] = []
    webs = {web for web, _ in topics}
    for panel, (web, topic) in zip(panels, topics, strict=False):
        part = grid.on_topic(web, topic)
        curves = mean_curves(part, "harvest")
        _plot_mean_curves(panel, grid, curves, styles, None)
        style_axes(panel, _short_name(topic), _short_name(web) if len(webs) > 1 else "", size=8.5)
        all_curves += curves
    for panel in panels[len(topics) :]:
        panel.set_visible(False)
    _set_limits(panels[0], all_curves, ())
    _add_figure_legend(figure, styles)
    return figure


def plot_scores(analysis: ComparisonAnalysis, styles: Mapping[str, CurveStyle]) -> Figure:
    """Plot the reliability of every policy whose scores are probabilities, over all runs."""
    series = {
        each.policy: [
            ReliabilityPoint(
                bin_.score, bin_.on_topic.mean, bin_.on_topic.low, bin_.on_topic.high, bin_.pages
            )
            for bin_ in each.bins
        ]
        for each in analysis.calibration
    }
    return _plot_reliability(series, styles, "Scores before the fetch against labels")


def _plot_mean_curves(
    axes: Axes,
    grid: RunGrid,
    curves: list[MeanCurve],
    styles: Mapping[str, CurveStyle],
    banded: Collection[str] | None,
) -> None:
    """Plot curves, with bands for ``banded``; None plots a small panel without bands and names."""
    at, budget = curve_positions(grid)
    shown = slice(math.ceil(_HIDDEN_SHARE * at.size), None)
    for curve in sorted(curves, key=lambda each: styles[each.policy].width):
        style = styles[curve.policy]
        if banded and curve.policy in banded:
            axes.fill_between(
                at[shown], curve.low[shown], curve.high[shown], color=style.colour, alpha=0.14, lw=0
            )
        width = 0.7 * style.width if banded is None else style.width
        axes.plot(at[shown], curve.mean[shown], style.style, color=style.colour, lw=width)
    axes.set_xlim(0, at[-1])
    axes.xaxis.set_major_locator(
        MaxNLocator(3 if banded is None else 5, integer=budget is not None)
    )
    if budget is None:
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    else:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda pages, _: f"{pages:,.0f}"))
    if banded is not None:
        unit = "share of the budget spent" if budget is None else "pages fetched"
        axes.set_xlabel(unit, color=INK, fontsize=9)


def _policies_with_band(names: list[str]) -> list[str]:
    """All policies if they are few, otherwise our own and breadth-first: bands hide each other."""
    if len(names) <= _MAX_BANDS:
        return names
    first = [name for name in (FOCUSED, BASELINE) if name in names]
    return first or names[:2]


def _set_limits(axes: Axes, curves: list[MeanCurve], banded: Collection[str]) -> None:
    shown = slice(math.ceil(_HIDDEN_SHARE * 100), None)
    tops = [float(each.mean[shown].max()) for each in curves]
    tops += [
        float(each.high[shown].max())
        for each in curves
        if each.policy in banded and not np.isnan(each.high).any()
    ]
    axes.set_ylim(0, min(1.0, 1.06 * max(tops, default=1.0)) or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _add_figure_legend(figure: Figure, styles: Mapping[str, CurveStyle]) -> None:
    """Add a legend below the panels, where there is no room beside them."""
    axes = figure.add_axes((0, 0, 1, 0.001), frameon=False)
    axes.set_axis_off()
    main = [(name, style) for name, style in styles.items() if style.main]
    handles = [
        axes.plot([], [], style.style, color=style.colour, lw=style.width)[0] for _, style in main
    ]
    names = [name for name, _ in main]
    if len(main) < len(styles):
        handles.append(axes.plot([], [], color=MUTED, lw=0.8)[0])
        names.append(f"{len(styles) - len(main)} others")
    abreast = int(72 * figure.get_figwidth() / (_KEY_LETTER * max(map(len, names)) + _KEY_HANDLE))
    legend = figure.legend(
        handles, names, loc="outside lower center", ncols=max(1, min(abreast, 5)), frameon=False,
        fontsize=8.5, labelcolor=INK,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def _short_name(name: str) -> str:
    return single_line(name, _PANEL_TITLE)


def _slug(text: str) -> str:
    """Reduce to at most 60 lower case letters, digits and dashes, fit for a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


_RELIABILITY_SUBTITLE = (
    "On the diagonal scores are calibrated, below it too high. Rings: fewer than "
    f"{MIN_BIN_PAGES} pages"
)
_MAX_CURVES_WITH_BARS = 2


class ReliabilityPoint(NamedTuple):
    """One bin: mean ``score`` of its ``pages`` and their ``share`` on topic, in [0, 1].

    ``low`` and ``high`` are the share's 95% interval, None if unknown.
    """

    score: float
    share: float
    low: float | None
    high: float | None
    pages: int


def _plot_reliability(
    series: Mapping[str, Sequence[ReliabilityPoint]], styles: Mapping[str, CurveStyle], title: str
) -> Figure:
    """Draw the reliability diagram above a histogram of the scores.

    DeGroot and Fienberg, The Comparison and Evaluation of Forecasters, The Statistician 32, 1983;
    Niculescu-Mizil and Caruana, Predicting Good Probabilities with Supervised Learning, ICML 2005.

    Each curve of ``series`` has its points in the order of score; bins with few pages are drawn as
    rings. Faint bars are 95% intervals, drawn for at most two curves so that they stay readable.
    """
    figure = new_figure(6.6, 6.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    above.plot([0, 1], [0, 1], "--", color=MUTED, lw=0.9)
    order = sorted(series, key=lambda name: -styles[name].width)
    for name in reversed(order):
        barred = len(order) <= _MAX_CURVES_WITH_BARS or name == order[0]
        _plot_reliability_curve(
            above, series[name], styles[name], single_line(name, 40), barred=barred
        )
    style_axes(above, title, _RELIABILITY_SUBTITLE)
    above.set_ylim(0, 1)
    above.set_xlim(0, 1)
    above.set_ylabel("share of pages on topic", color=INK, fontsize=9)
    above.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _add_legend(above)
    _plot_page_counts(below, series, styles)
    return figure


def _plot_reliability_curve(
    axes: Axes, points: Sequence[ReliabilityPoint], style: CurveStyle, label: str, *, barred: bool
) -> None:
    known = [each for each in points if each.pages >= MIN_BIN_PAGES]
    few = [each for each in points if each.pages < MIN_BIN_PAGES]
    size = 5 if style.main else 3
    axes.plot(
        [each.score for each in known], [each.share for each in known], style.style, marker="o",
        ms=size, color=style.colour, lw=style.width, label=label, clip_on=False,
    )  # fmt: skip
    axes.plot(
        [each.score for each in few], [each.share for each in few], "o", ms=size,
        color=style.colour, mfc="none", alpha=0.6, clip_on=False,
    )  # fmt: skip
    for each in known if barred else ():
        if each.low is not None and each.high is not None:
            ends = [each.low, each.high]
            axes.plot([each.score] * 2, ends, color=style.colour, lw=3.5, alpha=0.28)


def _add_legend(axes: Axes) -> None:
    legend = axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _plot_page_counts(
    axes: Axes, series: Mapping[str, Sequence[ReliabilityPoint]], styles: Mapping[str, CurveStyle]
) -> None:
    """Draw the histogram of scores; identical histograms are drawn once."""
    drawn: list[list[float]] = []
    edges = np.arange(BIN_COUNT + 1) / BIN_COUNT
    for name, points in series.items():
        total = sum(each.pages for each in points)
        parts = np.zeros(BIN_COUNT)
        for each, place in zip(points, bin_indices([each.score for each in points]), strict=True):
            parts[place] = each.pages / max(total, 1)
        if parts.tolist() in drawn:
            continue
        drawn.append(parts.tolist())
        style = styles[name]
        axes.stairs(parts, edges, color=style.colour, lw=0.8 * style.width, baseline=None)
    style_axes(axes, "")
    axes.set_xlabel("score before the fetch", color=INK, fontsize=9)
    axes.set_ylabel("of the pages", color=INK, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(axis="x", color=FAINT, lw=0.6)
