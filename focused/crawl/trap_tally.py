"""What traps cost and what they were spared, by site and kind: the report's lines on them."""

from __future__ import annotations

from typing import Any

import msgspec
import xxhash

from focused.frontier.rows import pack, unpack
from focused.frontier.tables import Tables

MAX_LINES = 1_000
_MAX_EXAMPLES = 3
OTHERS = "(other hosts)"


class TrapLine(msgspec.Struct):
    """``pages`` were lost to traps of that kind, and ``links`` were refused, on ``site``.

    ``examples`` are the first URLs that were refused, each once, three at most.
    """

    site: str
    kind: str
    pages: int = 0
    links: int = 0
    examples: list[str] = []  # a struct copies it


class TrapTally:
    """Durable, over :class:`Tables`; the caller commits.

    The first thousand sites have lines of their own, the others share one for each kind.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._lines: dict[tuple[str, str], TrapLine] = {}
        for _, raw in tables.scan("trap_lines"):
            line = TrapLine(*unpack(raw))
            self._lines[line.site, line.kind] = line

    def lines(self) -> list[TrapLine]:
        """All lines, those that cost most first."""
        return sorted(self._lines.values(), key=lambda line: (-line.pages, -line.links, line.site))

    def as_json(self) -> list[dict[str, Any]]:
        """The lines as JSON-able data."""
        return [msgspec.to_builtins(line) for line in self.lines()]

    def lost(self, site: str, kind: str, pages: int) -> None:
        """Pages were fetched for nothing."""
        if not pages:
            return
        line = self._line(site, kind)
        line.pages += pages
        self._keep(line)

    def refused(self, site: str, kind: str, url: str) -> None:
        """A link was refused at the door, or dropped at its turn."""
        line = self._line(site, kind)
        line.links += 1
        if len(line.examples) < _MAX_EXAMPLES and url not in line.examples:
            line.examples.append(url)
        self._keep(line)

    def _line(self, site: str, kind: str) -> TrapLine:
        line = self._lines.get((site, kind))
        if line is None:
            named = site if len(self._lines) < MAX_LINES else OTHERS
            line = self._lines.setdefault((named, kind), TrapLine(named, kind))
        return line

    def _keep(self, line: TrapLine) -> None:
        key = xxhash.xxh3_128_digest(f"{line.site} {line.kind}".encode("utf-8", "replace"))
        self._tables.put("trap_lines", key, pack(msgspec.structs.astuple(line)))
