"""Draws harvest rate against pages fetched, one curve per crawl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from focused.evaluation.metrics import (
    WINDOW,
    cumulative_harvest,
    harvest_rate,
    rolling_harvest,
    thinned,
)

# Okabe & Ito's palette: told apart with any colour vision
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INK, _FAINT = "#333333", "#D9D9D9"
_MAX_POINTS = 2000
_NOISE = 10  # pages before which a long crawl's rate jumps between 0 and 1
_LEAST_GAP = 0.055  # between two labels at the right, as a share of the axis


def draw_harvest(
    curves: Mapping[str, Sequence[bool] | NDArray[np.bool_]], path: Path, title: str = ""
) -> None:
    """Write a PNG of the curves to ``path``.

    ``curves`` maps a crawl's name to its verdicts, shape (n,), in the order
    of fetching. The strong line is the harvest rate so far, the faint one
    that over the last 100 pages. Raises OSError when ``path`` cannot be
    written.
    """
    figure = Figure(figsize=(8, 4.5), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ends = []
    for place, (name, verdicts) in enumerate(curves.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        _draw_curve(axes, np.asarray(verdicts, dtype=bool), colour)
        ends.append((harvest_rate(verdicts), f"{name}  {harvest_rate(verdicts):.0%}", colour))
    longest = max((len(verdicts) for verdicts in curves.values()), default=0)
    _dress(axes, longest, title)
    if longest:
        _label_ends(axes, ends)
    else:
        axes.text(0.5, 0.5, "no page fetched", transform=axes.transAxes, ha="center", color=_INK)
    figure.savefig(path, format="png")


def _draw_curve(axes: Axes, verdicts: NDArray[np.bool_], colour: str) -> None:
    if not verdicts.size:
        return
    long = verdicts.size > WINDOW
    first = _NOISE if long else 0
    shown = thinned(verdicts.size, _MAX_POINTS, first)
    pages, so_far = shown + 1, cumulative_harvest(verdicts)[shown]
    if long:
        apart = shown >= WINDOW - 1  # before that the two lines are one
        rolling = rolling_harvest(verdicts)[shown][apart]
        axes.plot(pages[apart], rolling, color=colour, lw=0.9, alpha=0.35)
    axes.plot(pages, so_far, color=colour, lw=2.2)
    axes.plot(pages[-1:], so_far[-1:], "o", color=colour, ms=4, clip_on=False)


def _dress(axes: Axes, longest: int, title: str) -> None:
    axes.set_xlim(0, max(longest, 1))
    axes.set_ylim(0, 1)
    axes.set_xlabel("pages fetched", color=_INK)
    axes.set_ylabel("share of pages on topic", color=_INK)
    axes.set_title(
        title, loc="left", color=_INK, fontsize=12, fontweight="bold", pad=26, parse_math=False
    )
    if longest > WINDOW:
        legend = f"Strong: harvest rate so far. Faint: over the last {WINDOW} pages."
        axes.text(0, 1.035, legend, transform=axes.transAxes, color="#777777", fontsize=9)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda pages, _: f"{pages:,.0f}"))
    axes.grid(axis="y", color=_FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)


def _label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Name each curve at the right edge, at its height, moved up where names would touch."""
    lowest = 0.0
    for height, text, colour in sorted(ends):
        lowest = max(height, lowest)
        axes.annotate(
            text,
            xy=(1.0, lowest),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold",
            annotation_clip=False,
            parse_math=False,  # a "$" in a folder's name is no formula
        )
        lowest += _LEAST_GAP
