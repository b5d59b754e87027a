"""Draws the reliability diagram: predicted score against the share on topic that came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from focused.evaluation.drawing import (
    FAINT,
    INK,
    MUTED,
    PALETTE,
    Look,
    as_png,
    dress,
    new_figure,
)
from focused.evaluation.reliability import BINS, FEW, Reliability, places, share_interval
from focused.evaluation.wording import plain
from focused.whole_file import write_whole

_SUBTITLE = f"On the diagonal scores are right, below it too high. Rings: fewer than {FEW} pages"
_BARRED = 2


class Point(NamedTuple):
    """One bin: mean ``score`` of its ``pages`` and their ``share`` on topic, in [0, 1].

    ``low`` and ``high`` bound the share with 95%; None where nothing tells.
    """

    score: float
    share: float
    low: float | None
    high: float | None
    pages: int


def draw_crawl_reliability(table: Reliability, path: Path, title: str = "") -> None:
    """Write a crawl's diagram as PNG to ``path``; OSError when it cannot be written."""
    shares = {"by classifier": [each.on_topic for each in table.bins]}
    if table.by_labels is not None:
        by_labels = [each.by_labels or 0.0 for each in table.bins]
        shares = {"by labels": by_labels, **shares}
    series = {
        judge: [
            Point(
                each.score,
                share,
                *share_interval(round(share * each.pages), each.pages),
                each.pages,
            )
            for each, share in zip(table.bins, of_bins, strict=True)
        ]
        for judge, of_bins in shares.items()
    }
    look = {judge: Look(PALETTE[n], "-", 1.8, True) for n, judge in enumerate(series)}
    named = f"Scores and what came, {title}" if title else "Scores and what came"
    write_whole(path, as_png(draw_reliability(series, look, named)))


def draw_reliability(
    series: Mapping[str, Sequence[Point]], look: Mapping[str, Look], title: str
) -> Figure:
    """The diagram, and below it how many pages were fetched with which score.

    A curve for each of ``series``, its points in the order of score; bins of few
    pages are rings beside it. Faint bars are 95% intervals: of two curves, or of the
    widest one where more would hide each other.
    """
    figure = new_figure(6.6, 6.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    above.plot([0, 1], [0, 1], "--", color=MUTED, lw=0.9)
    order = sorted(series, key=lambda name: -look[name].width)
    for name in reversed(order):
        barred = len(order) <= _BARRED or name == order[0]
        _draw_curve(above, series[name], look[name], plain(name, 40), barred=barred)
    dress(above, title, _SUBTITLE)
    above.set_ylim(0, 1)
    above.set_xlim(0, 1)
    above.set_ylabel("share of pages on topic", color=INK, fontsize=9)
    above.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _key(above)
    _draw_counts(below, series, look)
    return figure


def _draw_curve(
    axes: Axes, points: Sequence[Point], look: Look, label: str, *, barred: bool
) -> None:
    known = [each for each in points if each.pages >= FEW]
    few = [each for each in points if each.pages < FEW]
    size = 5 if look.main else 3
    axes.plot(
        [each.score for each in known], [each.share for each in known], look.style, marker="o",
        ms=size, color=look.colour, lw=look.width, label=label, clip_on=False,
    )  # fmt: skip
    axes.plot(
        [each.score for each in few], [each.share for each in few], "o", ms=size,
        color=look.colour, mfc="none", alpha=0.6, clip_on=False,
    )  # fmt: skip
    for each in known if barred else ():
        if each.low is not None and each.high is not None:
            ends = [each.low, each.high]
            axes.plot([each.score] * 2, ends, color=look.colour, lw=3.5, alpha=0.28)


def _key(axes: Axes) -> None:
    legend = axes.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _draw_counts(
    axes: Axes, series: Mapping[str, Sequence[Point]], look: Mapping[str, Look]
) -> None:
    """Shares of the pages by bin; two judges of the same pages are one line."""
    drawn: list[list[float]] = []
    edges = np.arange(BINS + 1) / BINS
    for name, points in series.items():
        total = sum(each.pages for each in points)
        parts = np.zeros(BINS)
        for each, place in zip(points, places([each.score for each in points]), strict=True):
            parts[place] = each.pages / max(total, 1)
        if parts.tolist() in drawn:
            continue
        drawn.append(parts.tolist())
        mine = look[name]
        axes.stairs(parts, edges, color=mine.colour, lw=0.8 * mine.width, baseline=None)
    dress(axes, "")
    axes.set_xlabel("score before the fetch", color=INK, fontsize=9)
    axes.set_ylabel("of the pages", color=INK, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(axis="x", color=FAINT, lw=0.6)
