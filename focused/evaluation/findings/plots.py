"""The pictures of an examination: curves by kind of start and by topic, ranks, scores."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from focused.evaluation.drawing import (
    INK,
    MUTED,
    Look,
    dress,
    label_ends,
    new_figure,
)
from focused.evaluation.findings.conclusions import Findings
from focused.evaluation.findings.critical_difference import draw_ranks
from focused.evaluation.findings.curves import MeanCurve, mean_curves, places
from focused.evaluation.findings.grid import BASELINE, OURS, Grid, group_name
from focused.evaluation.findings.looks import looks
from focused.evaluation.reliability_plot import Point, draw_reliability
from focused.evaluation.wording import plain

_TITLES = {"harvest": "Harvest", "recall": "Recall"}
_AXES = {"harvest": "share of pages on topic", "recall": "share of the topic's pages found"}
_NOISE_SHARE = 0.02  # of the budget, before which a rate jumps between 0 and 1
_PANELS_PER_ROW = 4
_BANDS = 4
_PANEL_TITLE = 26  # characters
_KEY_LETTER, _KEY_HANDLE = (
    5.5,
    45,
)  # points that a letter, and all beside the name, take up in a key


def draw_all(findings: Findings, seed: int = 0) -> dict[str, Figure]:
    """Every picture by its name, which is fit for a file; ``seed`` draws the bands."""
    grid = findings.grid
    if not grid.starts:
        return {}
    look = looks([each.policy for each in findings.best_first])
    rng = np.random.default_rng(seed)
    pictures = {}
    for number, group in enumerate(grid.groups, 1):
        part = grid.in_group(group)
        for measure in _TITLES:
            name = f"{measure}-{number}-{_slug(group_name(group))}"
            title = f"{_TITLES[measure]}, {group_name(group)}"
            pictures[name] = draw_curves(part, measure, title, look, rng)
    if len(grid.topics) > 1:
        pictures["harvest-by-topic"] = draw_topics(grid, look)
    if findings.calibration:
        pictures["reliability"] = draw_scores(findings, look)
    if findings.ranks.critical_difference is not None:
        pictures["critical-difference"] = draw_ranks(findings.ranks, look)
    return pictures


def draw_curves(
    grid: Grid, measure: str, title: str, look: Mapping[str, Look], rng: np.random.Generator
) -> Figure:
    """Mean ``harvest`` or ``recall`` of each policy, with the mean's 95% interval as a band."""
    banded = _banded([name for name in look if grid.runs_by(name)])
    curves = mean_curves(grid, measure, rng, banded)
    figure = new_figure(8.6, 4.6 if len(curves) <= 12 else 5.4)
    axes = figure.add_subplot()
    _draw(axes, grid, curves, look, banded)
    starts = f"{len(grid.starts):,} {'start' if len(grid.starts) == 1 else 'starts'}"
    topics = f"{len(grid.topics):,} {'topic' if len(grid.topics) == 1 else 'topics'}"
    whose = "" if len(banded) == len(curves) else f" of {' and '.join(banded)}"
    band = "" if len(grid.starts) == 1 else f"; bands: 95% bootstrap interval of the mean{whose}"
    early = any(run.ended_early for run in grid.runs.values())
    unspent = "; budget left over counts as off topic" if early and measure == "harvest" else ""
    dress(axes, title, f"Mean over {starts} of {topics}{band}{unspent}")
    axes.set_ylabel(_AXES[measure], color=INK, fontsize=9)
    _limit(axes, curves, banded)
    ends = {curve.policy: float(curve.mean[-1]) for curve in curves}
    label_ends(axes, ends, look, gap=0.052 if len(ends) <= 12 else 0.043)
    return figure


def draw_topics(grid: Grid, look: Mapping[str, Look]) -> Figure:
    """A small panel of harvest per topic, all kinds of start together, on one scale."""
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
        _draw(panel, grid, curves, look, None)
        dress(panel, _short(topic), _short(web) if len(webs) > 1 else "", size=8.5)
        all_curves += curves
    for panel in panels[len(topics) :]:
        panel.set_visible(False)
    _limit(panels[0], all_curves, ())
    _key(figure, look)
    return figure


def draw_scores(findings: Findings, look: Mapping[str, Look]) -> Figure:
    """The reliability diagram of every policy whose scores are probabilities, over all runs."""
    series = {
        each.policy: [
            Point(bin_.score, bin_.on_topic.mean, bin_.on_topic.low, bin_.on_topic.high, bin_.pages)
            for bin_ in each.bins
        ]
        for each in findings.calibration
    }
    return draw_reliability(series, look, "Scores before the fetch, and what came by labels")


def _draw(
    axes: Axes,
    grid: Grid,
    curves: list[MeanCurve],
    look: Mapping[str, Look],
    banded: Collection[str] | None,
) -> None:
    """``banded`` get a band; None draws a small panel without bands and names."""
    at, budget = places(grid)
    shown = slice(math.ceil(_NOISE_SHARE * at.size), None)
    for curve in sorted(curves, key=lambda each: look[each.policy].width):
        mine = look[curve.policy]
        if banded and curve.policy in banded:
            axes.fill_between(
                at[shown], curve.low[shown], curve.high[shown], color=mine.colour, alpha=0.14, lw=0
            )
        width = 0.7 * mine.width if banded is None else mine.width
        axes.plot(at[shown], curve.mean[shown], mine.style, color=mine.colour, lw=width)
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


def _banded(names: list[str]) -> list[str]:
    """Who gets a band: all of a few; of many ours and breadth-first, for bands hide each other."""
    if len(names) <= _BANDS:
        return names
    first = [name for name in (OURS, BASELINE) if name in names]
    return first or names[:2]


def _limit(axes: Axes, curves: list[MeanCurve], banded: Collection[str]) -> None:
    shown = slice(math.ceil(_NOISE_SHARE * 100), None)
    tops = [float(each.mean[shown].max()) for each in curves]
    tops += [
        float(each.high[shown].max())
        for each in curves
        if each.policy in banded and not np.isnan(each.high).any()
    ]
    axes.set_ylim(0, min(1.0, 1.06 * max(tops, default=1.0)) or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _key(figure: Figure, look: Mapping[str, Look]) -> None:
    """Names in their colours in a line under the panels, where there is no room beside them."""
    axes = figure.add_axes((0, 0, 1, 0.001), frameon=False)
    axes.set_axis_off()
    main = [(name, mine) for name, mine in look.items() if mine.main]
    handles = [
        axes.plot([], [], mine.style, color=mine.colour, lw=mine.width)[0] for _, mine in main
    ]
    names = [name for name, _ in main]
    if len(main) < len(look):
        handles.append(axes.plot([], [], color=MUTED, lw=0.8)[0])
        names.append(f"{len(look) - len(main)} others")
    abreast = int(72 * figure.get_figwidth() / (_KEY_LETTER * max(map(len, names)) + _KEY_HANDLE))
    legend = figure.legend(
        handles, names, loc="outside lower center", ncols=max(1, min(abreast, 5)), frameon=False,
        fontsize=8.5, labelcolor=INK,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def _short(name: str) -> str:
    return plain(name, _PANEL_TITLE)


def _slug(text: str) -> str:
    """Lower case letters, digits and dashes, 60 at most: fit for a file on any system."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
