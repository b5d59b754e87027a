"""Draws harvest rate against pages fetched, one curve per crawl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from focused.evaluation.drawing import (
    INK,
    PALETTE,
    Look,
    as_png,
    dress,
    label_ends,
    new_figure,
    put_text,
)
from focused.evaluation.metrics import (
    WINDOW,
    cumulative_harvest,
    harvest_rate,
    rolling_harvest,
    thinned,
)
from focused.whole_file import write_whole

_MAX_POINTS = 2000
_NOISE = 10  # pages before which a long crawl's rate jumps between 0 and 1
_TITLE_SIZE = 12


def draw_harvest(
    curves: Mapping[str, Sequence[bool] | NDArray[np.bool_]], path: Path, title: str = ""
) -> None:
    """Write a PNG of the curves to ``path``.

    ``curves`` maps a crawl's name to its verdicts, shape (n,), in the order
    of fetching. The strong line is the harvest rate so far, the faint one
    that over the last 100 pages. Raises OSError when ``path`` cannot be
    written.
    """
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    look = {
        name: Look(PALETTE[place % len(PALETTE)], "-", 2.2, True)
        for place, name in enumerate(curves)
    }
    for name, verdicts in curves.items():
        _draw_curve(axes, np.asarray(verdicts, dtype=bool), look[name])
    longest = max((len(verdicts) for verdicts in curves.values()), default=0)
    legend = f"Strong: harvest rate so far. Faint: over the last {WINDOW} pages."
    dress(axes, title, legend if longest > WINDOW else "", _TITLE_SIZE)
    _scale(axes, longest)
    if longest:
        ends = {name: harvest_rate(verdicts) for name, verdicts in curves.items()}
        label_ends(axes, ends, look)
    else:
        put_text(axes, 0.5, 0.5, "no page fetched", ha="center")
    write_whole(path, as_png(figure))


def _draw_curve(axes: Axes, verdicts: NDArray[np.bool_], look: Look) -> None:
    if not verdicts.size:
        return
    long = verdicts.size > WINDOW
    shown = thinned(verdicts.size, _MAX_POINTS, _NOISE if long else 0)
    pages, so_far = shown + 1, cumulative_harvest(verdicts)[shown]
    if long:
        apart = shown >= WINDOW - 1  # before that the two lines are one
        rolling = rolling_harvest(verdicts)[shown][apart]
        axes.plot(pages[apart], rolling, color=look.colour, lw=0.9, alpha=0.35)
    axes.plot(pages, so_far, look.style, color=look.colour, lw=look.width)
    axes.plot(pages[-1:], so_far[-1:], "o", color=look.colour, ms=4, clip_on=False)


def _scale(axes: Axes, longest: int) -> None:
    axes.set_xlim(0, max(longest, 1))
    axes.set_ylim(0, 1)
    axes.set_xlabel("pages fetched", color=INK)
    axes.set_ylabel("share of pages on topic", color=INK)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda pages, _: f"{pages:,.0f}"))
