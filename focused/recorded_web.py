"""What the crawler asks of recorded webs, which come with the extra ``experiments``.

A recorded web is a folder of pages with labels, the ground truth. A distribution offers
:class:`RecordedWebReader` by an entry point of the group ``focused.recorded_webs``. Only reports,
comparisons and the sampling of directories may read labels, never what guides a crawl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from focused.errors import MissingExtraError
from focused.installed_features import INSTALL_LAB, LAB, installed_parts, load_entry_point

if TYPE_CHECKING:
    from focused.durations import Clock
    from focused.web.page import Page

ENTRY_POINT_GROUP = "focused.recorded_webs"
_READER = "folders"

SCHEME_HEADER = "X-Focused-Scheme"
"""Header of a request to a replay server: the intended scheme, ``http`` by default."""

FAULT_HEADER = "X-Focused-Fault"
"""Header of a replay server's response that no recorded host gave."""

UNKNOWN_HOST = "unknown-host"
"""Value of :data:`FAULT_HEADER` for a host that was not recorded."""


class RecordedWebReader(Protocol):
    """Recorded webs in folders. The methods raise RecordedWebError for a folder without one."""

    def replay(self, folder: Path) -> AbstractContextManager[str]:
        """Serve the web over HTTP; the context's value is ``HOST:PORT``, for FOCUSED_REPLAY."""

    def open_pages(self, folder: Path) -> AbstractContextManager[Callable[[str], Page | None]]:
        """Open the web; the context's value returns the page of a URL, None without one."""

    def read_labels(self, folder: Path) -> Mapping[str, frozenset[str]]:
        """Return the categories of pages by URL; empty without labels."""

    def parse_clock(self, text: str) -> Clock:
        """Return the clock of a replay, which FOCUSED_CLOCK describes.

        Raises ConfigurationError.
        """


def find_recorded_webs() -> RecordedWebReader:
    """Return the reader of recorded webs. Raises MissingExtraError without one."""
    point = installed_parts(ENTRY_POINT_GROUP).get(_READER)
    if point is None:
        raise MissingExtraError(
            f"a recorded web needs {LAB}, which is not installed: {INSTALL_LAB}"
        )
    webs: RecordedWebReader = load_entry_point(point)
    return webs
