"""What is waited for until a certain time: one timer of the loop's for all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from operator import itemgetter


class Deadlines:
    """For one running loop; its clock counts."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Hashable, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, what: Hashable, at: float, late: Callable[[], None]) -> None:
        """Call ``late`` at that time of the loop's clock, unless ``what`` came by then."""
        self._waiting[what] = at, late
        if self._timer is None or at < self._timer.when():
            self._look_at(at)

    def came(self, what: Hashable) -> None:
        """Nothing is waited for any more."""
        self._waiting.pop(what, None)

    def _look_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        are_late = [(at, late, what) for what, (at, late) in self._waiting.items() if at <= now]
        for _, late, what in sorted(are_late, key=itemgetter(0)):
            if self._waiting.pop(what, None) is not None:
                late()
        if self._waiting:
            self._look_at(min(at for at, _ in self._waiting.values()))
