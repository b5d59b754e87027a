"""How every table of findings looks in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from focused.evaluation.findings.grid import ABLATION
from focused.evaluation.wording import plain

TABLES_WIDTH = 100
"""Characters that the widest table takes up."""

_LEAST_WIDTH = 80  # room for a title and a caption
_POLICY_WIDTH = 20


def new_table(title: str, first: str, *others: str) -> Table:
    """A table without rows; figures stand to the right, and intervals are never broken."""
    table = Table(
        title=Text(plain(title)), title_justify="left", caption_justify="left", box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0), caption_style="dim", min_width=_LEAST_WIDTH,
    )  # fmt: skip
    words = {"topic", "seeds"}
    table.add_column(first, no_wrap=first not in words)
    for column in others:
        table.add_column(
            column, justify="left" if column in words else "right", no_wrap=column == "95%"
        )
    return table


def foreign_text(text: str, width: int) -> Text:
    """Text of others, cut to ``width`` characters; it cannot steer the terminal."""
    return Text(plain(text, width))


def policy_text(name: str) -> Text:
    """A policy's name, cut where it is too long.

    Of one's own as ``package.module.function``, and of an ablation, the end is kept: it tells more.
    """
    line = plain(name)
    if line.startswith(ABLATION) and len(line) > _POLICY_WIDTH:
        return foreign_text("…without-" + line.removeprefix(ABLATION), _POLICY_WIDTH + 4)
    if "." in line and len(line) > _POLICY_WIDTH:
        return Text("…" + line[1 - _POLICY_WIDTH :])
    return foreign_text(line, _POLICY_WIDTH)
