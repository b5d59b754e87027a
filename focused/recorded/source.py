"""What answers for the hosts of a web: a recorded web, or one in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from focused.recorded.store import RecordedResponse


class WebSource(Protocol):
    """Pages by URL, and the hosts they are on."""

    @property
    def hosts(self) -> Collection[str]:
        """Hosts of the web, lower case, with the port unless it is the scheme's own."""

    def get(self, url: str) -> RecordedResponse | None:
        """Return what was recorded for an absolute URL, or None."""
