"""What a crawl tells of traps, as its ``stats.json`` has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TrapLine:
    """``pages`` were lost to a kind of trap on ``site``, and ``links`` to it refused.

    ``site`` is a host, or ``*.`` and a domain.
    """

    site: str
    kind: str
    pages: int
    links: int


def trap_lines(stats: Mapping[str, Any]) -> list[TrapLine]:
    """All lines, most pages first; none where none are told, or not as they should be."""
    told = stats.get("traps")
    if not isinstance(told, list):
        return []
    return [
        TrapLine(each["site"], each["kind"].removeprefix("trap: "), each["pages"], each["links"])
        for each in told
        if isinstance(each, dict)
        and all(isinstance(each.get(key), str) for key in ("site", "kind"))
        and all(isinstance(each.get(key), int) for key in ("pages", "links"))
    ]
