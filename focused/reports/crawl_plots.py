"""Plot harvest curves and reliability diagrams, as PNG: colours, axes, labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
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
from focused.reports.reliability import (
    BIN_COUNT,
    MIN_BIN_PAGES,
    ReliabilityTable,
    bin_indices,
    wilson_interval,
)

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""The palette of Okabe and Ito, distinguishable with any colour vision."""

INK, MUTED, FAINT, PAPER, REST = "#333333", "#777777", "#d9d9d9", "#ffffff", "#999999"


@dataclass(frozen=True, slots=True)
class CurveStyle:
    """How a curve is drawn; ``main`` curves stand out."""

    colour: str
    style: str
    width: float
    main: bool


def new_figure(width: float, height: float, *, arranged: bool = True) -> Figure:
    """Create a figure without a GUI backend, size in inches; ``arranged`` makes room for labels."""
    layout: Literal["constrained"] | None = "constrained" if arranged else None
    figure = Figure(figsize=(width, height), dpi=144, layout=layout, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def add_text(axes: Axes, x: float, y: float, text: str, **how: object) -> None:
    """Add untrusted text, in axes coordinates by default; ``$`` starts no formula."""
    how = {"transform": axes.transAxes, "color": INK, "fontsize": 9} | how
    axes.text(x, y, single_line(text), parse_math=False, **how)  # type: ignore[arg-type]  # **kwargs


def style_axes(axes: Axes, title: str, subtitle: str = "", size: float = 11) -> None:
    """Apply frame, grid and title to ``axes``; ``size`` is the title's, in points."""
    pad = 2.1 * size if subtitle else 8
    axes.set_title(
        single_line(title),
        loc="left",
        color=INK,
        fontsize=size,
        weight="bold",
        pad=pad,
        parse_math=False,
    )
    if subtitle:
        axes.annotate(
            single_line(subtitle), (0, 1), (0, 0.6 * size), xycoords="axes fraction",
            textcoords="offset points", color=MUTED, fontsize=0.8 * size, parse_math=False,
        )  # fmt: skip
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.set_facecolor("none")
    axes.tick_params(length=0, colors=INK, labelsize=8.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def spread_labels(heights: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Place labels in [0, 1] nearest to ``heights`` with ``gap`` between neighbours.

    Least squares by isotonic regression of the heights minus their minimal offsets.
    """
    if len(heights) < 2:
        return np.clip(np.asarray(heights, dtype=np.float64), 0.0, 1.0)
    from scipy.optimize import isotonic_regression  # slow to import

    order = np.argsort(heights, kind="stable")
    gap = min(gap, 1 / (len(heights) - 1))
    steps = np.arange(len(heights)) * gap
    level = isotonic_regression(np.asarray(heights, dtype=np.float64)[order] - steps).x
    placed = np.empty(len(heights))
    placed[order] = np.clip(level, 0, max(1 - steps[-1], 0)) + steps
    return placed


def label_curve_ends(
    axes: Axes, ends: Mapping[str, float], styles: Mapping[str, CurveStyle], gap: float = 0.05
) -> None:
    """Name each curve at the right edge, with a line to its end.

    ``ends`` are in data coordinates, within the limits of the y axis.
    """
    low, high = axes.get_ylim()
    heights = [(height - low) / (high - low) for height in ends.values()]
    for name, height, place in zip(ends, heights, spread_labels(heights, gap), strict=True):
        style = styles[name]
        axes.plot(
            [1.0, 1.035], [height, place], transform=axes.transAxes, color=style.colour,
            lw=0.7, clip_on=False, solid_capstyle="butt",
        )  # fmt: skip
        add_text(
            axes, 1.042, float(place), f"{name}  {ends[name]:.0%}",
            color=style.colour if style.main else MUTED,
            va="center", fontsize=9 if style.main else 8, weight="bold" if style.main else "normal",
        )  # fmt: skip


def to_png(figure: Figure) -> bytes:
    """Render the figure as PNG."""
    target = BytesIO()
    with without_glyph_warnings():
        figure.savefig(target, format="png")
    return target.getvalue()


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Draw names in scripts that the font lacks without a warning for each glyph."""
    with warnings.catch_warnings():
        # Glyphs that the font lacks are drawn as boxes; the tables show the name.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


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

    def point(score: float, share: float, pages: int) -> ReliabilityPoint:
        return ReliabilityPoint(score, share, *wilson_interval(round(share * pages), pages), pages)

    series = {"by classifier": [point(b.score, b.on_topic, b.pages) for b in table.bins]}
    if table.by_labels is not None:
        by_labels = [
            point(b.label_score, b.by_labels, b.labelled)
            for b in table.bins
            if b.label_score is not None and b.by_labels is not None
        ]
        series = {"by labels": by_labels, **series}
    styles = {name: CurveStyle(PALETTE[n], "-", 1.8, True) for n, name in enumerate(series)}
    named = f"Calibration of scores, {title}" if title else "Calibration of scores"
    write_atomically(path, to_png(plot_reliability(series, styles, named)))


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
