"""Format numbers, tables and untrusted text for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.errors import escape_control_characters


def format_duration(seconds: float) -> str:
    """Format seconds by their two largest units: ``"3 min 20 s"``."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def single_line(text: str, width: int = 0) -> str:
    """Put untrusted text on one line, white space collapsed, controls escaped.

    ``width`` above 0 cuts it to that many characters.
    """
    line = escape_control_characters(" ".join(text.split()))
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def print_line(console: Console, line: str, style: str = "") -> None:
    """Print untrusted text on one line, without markup, highlighting or wrapping."""
    console.print(Text(escape_control_characters(line), style=style), soft_wrap=True)


def text_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    left: Collection[str] = (),
) -> Table:
    """Return a table of untrusted cells; ``left`` names the columns of texts, which may wrap."""
    table = Table(title=Text(title) if title else None, title_justify="left")
    for name in columns:
        is_left = name in left
        table.add_column(name, justify="left" if is_left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(single_line(c)) if isinstance(c, str) else c for c in row))
    return table
