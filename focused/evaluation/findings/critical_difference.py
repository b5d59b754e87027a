"""The critical difference diagram of Demšar (JMLR 7, 2006, figure 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focused.evaluation.drawing import FAINT, INK, MUTED, Look, new_figure, put_text
from focused.evaluation.findings.ranks import Ranks

_BAR = 0.45  # height of a clique's bar; a line of text is 1
_HEAD = 3.4  # lines above the scale
_SIDE = 0.26  # of the width on either side, for names
_WIDEST_SIDE = 0.4
_LETTER = 0.0135  # of the width, that a letter of a long name takes up


@dataclass(frozen=True, slots=True)
class _Scale:
    """Ranks 1 to ``last``, laid from left to right; ``side`` of the width is left for names."""

    last: int
    side: float

    def at(self, rank: float) -> float:
        """Where a rank lies, in shares of the figure's width."""
        return self.side + (1 - 2 * self.side) * (rank - 1) / max(self.last - 1, 1)


def draw_ranks(ranks: Ranks, look: Mapping[str, Look]) -> Figure:
    """Mean ranks on a line, the best at the left; a bar joins what cannot be told apart.

    ``ranks`` must have a critical difference.
    """
    names = list(ranks.mean_ranks)
    scale = _Scale(len(names), min(max(_SIDE, _LETTER * max(map(len, names))), _WIDEST_SIDE))
    on_left = math.ceil(len(names) / 2)
    names_top = 1.1 + _BAR * len(ranks.cliques)
    depth = names_top + on_left
    figure = new_figure(8.6, 0.23 * (_HEAD + depth), arranged=False)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(-depth, _HEAD)
    _draw_scale(axes, scale, ranks)
    for place, name in enumerate(names):
        left = place < on_left
        row = place if left else len(names) - 1 - place
        _tie(axes, scale, name, ranks.mean_ranks[name], -(names_top + row), left, look[name])
    for place, clique in enumerate(ranks.cliques):
        ends = [scale.at(ranks.mean_ranks[name]) for name in (clique[0], clique[-1])]
        height = -(0.55 + _BAR * place)
        axes.plot([ends[0] - 0.005, ends[1] + 0.005], [height, height], color=INK, lw=2.6)
    return figure


def _draw_scale(axes: Axes, scale: _Scale, ranks: Ranks) -> None:
    first, last = scale.at(1), scale.at(scale.last)
    axes.plot([first, last], [0, 0], color=INK, lw=1)
    for rank in range(1, scale.last + 1):
        axes.plot([scale.at(rank)] * 2, [0, 0.25], color=INK, lw=1)
        _text(axes, scale.at(rank), 0.75, str(rank), ha="center", color=MUTED, fontsize=8.5)
    critical = ranks.critical_difference
    assert critical is not None  # the caller's promise
    end = scale.at(1 + min(critical, scale.last - 1))
    axes.plot([first, end], [1.75, 1.75], color=INK, lw=1)
    for edge in (first, end):
        axes.plot([edge, edge], [1.5, 2.0], color=INK, lw=1)
    wide = ", wider than the scale" if critical > scale.last - 1 else ""
    told = f"critical difference {critical:.2f}{wide} ({ranks.topics} topics)"
    _text(axes, first, 2.5, told, ha="left", fontsize=8.5)


def _tie(
    axes: Axes, scale: _Scale, name: str, rank: float, height: float, left: bool, look: Look
) -> None:
    edge = scale.side - 0.03 if left else 1 - scale.side + 0.03
    colour = look.colour if look.main else MUTED
    axes.plot(
        [scale.at(rank), scale.at(rank), edge], [0, height, height],
        color=look.colour if look.main else FAINT, lw=1.3 if look.main else 0.9,
        zorder=2 if look.main else 1, solid_joinstyle="miter",
    )  # fmt: skip
    told = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
    weight = "bold" if look.main else "normal"
    away = -0.008 if left else 0.008
    side = "right" if left else "left"
    _text(axes, edge + away, height, told, ha=side, color=colour, weight=weight)


def _text(axes: Axes, x: float, y: float, text: str, **how: object) -> None:
    put_text(axes, x, y, text, transform=axes.transData, va="center", **how)
