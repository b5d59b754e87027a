"""Plot a crawl's harvest curve and its reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from focused.files import write_atomically
from focused.reports.formatting import single_line
from focused.reports.metrics import (
    ROLLING_WINDOW,
    cumulative_harvest,
    harvest_rate,
    rolling_harvest,
    sample_indices,
)
from focused.reports.plot_style import (
    FAINT,
    INK,
    MUTED,
    PALETTE,
    CurveStyle,
    add_text,
    label_curve_ends,
    new_figure,
    style_axes,
    to_png,
)
from focused.reports.reliability import (
    BIN_COUNT,
    MIN_BIN_PAGES,
    ReliabilityTable,
    bin_indices,
    wilson_interval,
)

_MAX_POINTS = 2000
_FIRST_PAGE_SHOWN = 10  # a long crawl's rate jumps between 0 and 1 before that
_TITLE_POINTS = 12


def plot_harvest(
    curves: Mapping[str, Sequence[bool] | NDArray[np.bool_]], path: Path, title: str = ""
) -> None:
    """Write the harvest curves to ``path`` (PNG).

    ``curves`` maps a crawl's name to booleans, shape (n,), on topic or not in the order of
    fetching. The strong line is the cumulative harvest rate, the faint one the rate over the last
    100 pages. Raises OSError when ``path`` cannot be written.
    """
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    styles = {
        name: CurveStyle(PALETTE[place % len(PALETTE)], "-", 2.2, True)
        for place, name in enumerate(curves)
    }
    for name, on_topic in curves.items():
        _plot_harvest_curve(axes, np.asarray(on_topic, dtype=bool), styles[name])
    longest = max((len(on_topic) for on_topic in curves.values()), default=0)
    legend = f"Strong: harvest rate so far. Faint: over the last {ROLLING_WINDOW} pages."
    style_axes(axes, title, legend if longest > ROLLING_WINDOW else "", _TITLE_POINTS)
    _set_limits(axes, longest)
    if longest:
        ends = {name: harvest_rate(on_topic) for name, on_topic in curves.items()}
        label_curve_ends(axes, ends, styles)
    else:
        add_text(axes, 0.5, 0.5, "no page fetched", ha="center")
    write_atomically(path, to_png(figure))


def _plot_harvest_curve(axes: Axes, on_topic: NDArray[np.bool_], style: CurveStyle) -> None:
    if not on_topic.size:
        return
    long = on_topic.size > ROLLING_WINDOW
    shown = sample_indices(on_topic.size, _MAX_POINTS, _FIRST_PAGE_SHOWN if long else 0)
    pages, so_far = shown + 1, cumulative_harvest(on_topic)[shown]
    if long:
        apart = shown >= ROLLING_WINDOW - 1  # the two lines are equal before that
        rolling = rolling_harvest(on_topic)[shown][apart]
        axes.plot(pages[apart], rolling, color=style.colour, lw=0.9, alpha=0.35)
    axes.plot(pages, so_far, style.style, color=style.colour, lw=style.width)
    axes.plot(pages[-1:], so_far[-1:], "o", color=style.colour, ms=4, clip_on=False)


def _set_limits(axes: Axes, longest: int) -> None:
    axes.set_xlim(0, max(longest, 1))
    axes.set_ylim(0, 1)
    axes.set_xlabel("pages fetched", color=INK)
    axes.set_ylabel("share of pages on topic", color=INK)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda pages, _: f"{pages:,.0f}"))


_SUBTITLE = (
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


def plot_crawl_reliability(table: ReliabilityTable, path: Path, title: str = "") -> None:
    """Write a crawl's reliability diagram to ``path`` (PNG). Raises OSError."""
    series = {
        "by classifier": [
            _reliability_point(each.score, each.on_topic, each.pages) for each in table.bins
        ]
    }
    if table.by_labels is not None:
        labelled = [each.labels for each in table.bins if each.labels is not None]
        by_labels = [_reliability_point(each.score, each.share, each.pages) for each in labelled]
        series = {"by labels": by_labels, **series}
    styles = {
        classifier: CurveStyle(PALETTE[n], "-", 1.8, True) for n, classifier in enumerate(series)
    }
    named = f"Calibration of scores, {title}" if title else "Calibration of scores"
    write_atomically(path, to_png(plot_reliability(series, styles, named)))


def _reliability_point(score: float, share: float, pages: int) -> ReliabilityPoint:
    low, high = wilson_interval(round(share * pages), pages)
    return ReliabilityPoint(score, share, low, high, pages)


def plot_reliability(
    series: Mapping[str, Sequence[ReliabilityPoint]], styles: Mapping[str, CurveStyle], title: str
) -> Figure:
    """Draw the reliability diagram above a histogram of the scores.

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
    style_axes(above, title, _SUBTITLE)
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
