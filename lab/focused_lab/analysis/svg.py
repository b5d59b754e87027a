"""Figures as SVG, in files and within pages."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from focused.reports.crawl_plots import FAINT, INK, MUTED, PAPER, REST, without_glyph_warnings

_CSS_VARIABLES = {INK: "ink", MUTED: "muted", FAINT: "faint", PAPER: "paper", REST: "rest"}


def to_svg(figure: Figure, name: str) -> str:
    """Render the figure as SVG with real text; equal figures and names give equal bytes."""
    target = StringIO()
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
    }
    with mpl.rc_context(settings), without_glyph_warnings():
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    # Hundredths of a point suffice for any screen; further digits are half of the file.
    return re.sub(r"(\d\.\d\d)\d+", r"\1", target.getvalue())


def inline_svg(svg: str) -> str:
    """Return the ``<svg>`` element of one of our figures, recoloured for embedding in a page.

    The page defines ``--ink``, ``--muted``, ``--faint``, ``--paper`` and ``--rest``.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Ids such as patch_1 are in every figure, and must be unique in the page.
    svg = re.sub(r' id="[A-Za-z0-9]+(?:\.[a-z]+)?_\d+"', "", svg)
    for colour, variable in _CSS_VARIABLES.items():
        svg = re.sub(rf"(fill|stroke): {colour}\b", rf"\1: var(--{variable})", svg, flags=re.I)
    return re.sub(r'^<svg ([^>]*?)width="[^"]*pt" height="[^"]*pt"', r"<svg \1", svg)
