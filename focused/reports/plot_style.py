"""Shared plot style: colours, axes, non-overlapping labels, PNG output."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from focused.reports.formatting import single_line

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
