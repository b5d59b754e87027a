"""What the reading of a directory could not use, counted for the user."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Counts by file and reason; readers of what others wrote add to it."""

    counts: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def add(self, path: Path, reason: str) -> None:
        """Count one more of ``reason``, worded so that a number stands before it."""
        self.counts[path, reason] += 1

    def remarks(self) -> tuple[str, ...]:
        """A line for each file and reason: ``content.rdf.u8: 12 entries that …``."""
        return tuple(
            f"{path.name}: {count:,} {reason}"
            for (path, reason), count in sorted(self.counts.items())
        )
