"""What the frontier knows of the links it met of late: most links of a page were met before."""

from __future__ import annotations

import msgspec

from focused.frontier.places import NUMBER_BYTES
from focused.frontier.queued import QueuedLink

_MOST = 4_096


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A link that was seen: its place while it is queued, its number alone after; and the link.

    ``at`` ends in the number; None when the link was never seen. ``link`` is None unless it
    is queued.
    """

    at: bytes | None = None
    link: QueuedLink | None = None

    @property
    def number(self) -> bytes | None:
        """The link's number in the order of discovery, as its row's key."""
        return None if self.at is None else self.at[-NUMBER_BYTES:]


UNSEEN = Seen()


class RecentLinks:
    """Links by host and key: ``most`` to twice as many, those asked for last."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._young: dict[bytes, Seen] = {}
        self._old: dict[bytes, Seen] = {}

    def get(self, key: bytes) -> Seen | None:
        """What is known of the link with that key, None when it was not met of late."""
        seen = self._young.get(key)
        if seen is None:
            seen = self._old.pop(key, None)
            if seen is not None:
                self.put(key, seen)
        return seen

    def put(self, key: bytes, seen: Seen) -> None:
        """That is what is known now."""
        if len(self._young) >= self._most:
            self._young, self._old = {}, self._young
        self._young[key] = seen

    def forget(self, key: bytes) -> None:
        """Nothing is known of it any more."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        """Nothing is known of any."""
        self._young.clear()
        self._old.clear()
