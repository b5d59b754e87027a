"""The critical difference diagram of Demšar (JMLR 7, 2006, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from focused.evaluation.drawing import FAINT, INK, MUTED, Look, new_figure
from focused.evaluation.findings.ranks import Ranks
from focused.evaluation.wording import plain

CROSSBAR_WIDTH = 2.6
"""Line width, in points, of the bars that join policies whose ranks do not differ."""


def draw_ranks(ranks: Ranks, look: Mapping[str, Look]) -> Figure:
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
        label.set_text(plain(label.get_text()))
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
