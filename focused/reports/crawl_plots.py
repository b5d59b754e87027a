"""Plot harvest curves as PNG: colours, axes, labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

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


def new_figure(width: float, height: float) -> Figure:
    """Create a figure without a GUI backend, size in inches, with room for labels."""
    figure = Figure(figsize=(width, height), dpi=144, layout="constrained", facecolor=PAPER)
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
