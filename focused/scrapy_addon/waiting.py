"""Tells an operator that a crawl only waits for hosts that fail, or want long pauses."""

from __future__ import annotations

import logging
import time

from focused.crawl import Step, Wait

logger = logging.getLogger(__name__)


class Waiting:
    """Logs a wait for hosts that are left alone for long when it begins and when it changes.

    ``line`` is what the progress line adds, ``""`` while there is more to do.
    """

    def __init__(self) -> None:
        self.line = ""

    def note(self, step: Step) -> None:
        """Take in the crawl's newest step."""
        line = _line(step) if isinstance(step, Wait) else ""
        if line and line != self.line:
            logger.info(line)
        self.line = line


def _line(wait: Wait) -> str:
    if not wait.resting or wait.until is None:
        return ""
    hosts = f"{wait.resting:,} host{'' if wait.resting == 1 else 's'}"
    at = time.strftime("%H:%M:%S", time.localtime(wait.until))
    return f"waiting for {hosts} in back-off or long crawl-delays, the next at {at}"
