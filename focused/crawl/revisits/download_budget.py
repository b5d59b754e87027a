"""The budget of a continuous crawl: downloads per day, spread evenly over the day.

Token buckets: revisits are paced by one from the beginning. Once the first harvest is over, all
downloads are rationed by one for pages and one for bytes. Unused tokens accumulate for an hour at
most, so a crawl that was stopped for a week does not send a week's requests at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from focused.storage.tables import Tables
from focused.topic import Revisit

DAY_S = 86_400.0
_MAX_UNUSED_S = 3_600.0
_DEFAULT_INTERVAL_DAYS = 7.0
_META = "download_budget"


@dataclass(slots=True)
class TokenBucket:
    """Tokens that accrue over time; negative after a large download.

    ``since`` is None until the first use, when the bucket is full.
    """

    tokens: float = 0.0
    since: float | None = None

    def available_at(self, per_s: float, now: float) -> float:
        """Return when a token is available: ``now`` or later. Tokens accrue at ``per_s``."""
        self._accrue(per_s, now)
        return now if self.tokens > 0 else now + (1.0 - self.tokens) / per_s

    def spend(self, tokens: float, per_s: float, now: float) -> None:
        """Take tokens out."""
        self._accrue(per_s, now)
        self.tokens -= tokens

    def _accrue(self, per_s: float, now: float) -> None:
        most = max(1.0, per_s * _MAX_UNUSED_S)
        if self.since is None:
            self.tokens = most
        else:
            self.tokens = min(most, self.tokens + max(0.0, now - self.since) * per_s)
        self.since = now


class _State(msgspec.Struct):
    is_rationed: bool = False
    pages: tuple[float, float | None] = (0.0, None)
    revisits: tuple[float, float | None] = (0.0, None)
    bytes: tuple[float, float | None] = (0.0, None)


class DownloadBudget:
    """Paces revisits, and after the first harvest all downloads; persistent, the caller commits."""

    def __init__(self, settings: Revisit, tables: Tables) -> None:
        self._settings = settings
        self._tables = tables
        state = msgspec.convert(tables.get_meta(_META) or {}, _State)
        self.is_rationed = state.is_rationed
        """Whether the first harvest is over."""
        self._pages, self._revisits = TokenBucket(*state.pages), TokenBucket(*state.revisits)
        self._bytes = TokenBucket(*state.bytes)

    def pages_per_s(self, collection: int) -> float:
        """Return the downloads per second for a collection of so many pages."""
        per_day = self._settings.pages_per_day or max(1.0, collection / _DEFAULT_INTERVAL_DAYS)
        return per_day / DAY_S

    def available_at(self, collection: int, now: float) -> float:
        """Return when the next download may begin: ``now`` or later."""
        if not self.is_rationed:
            return now
        at = self._pages.available_at(self.pages_per_s(collection), now)
        if self._settings.bytes_per_day is not None:
            at = max(at, self._bytes.available_at(self._settings.bytes_per_day / DAY_S, now))
        return at

    def next_revisit_at(self, collection: int, now: float) -> float:
        """Return when the next page may be queued for a revisit: ``now`` or later."""
        return self._revisits.available_at(self._revisits_per_s(collection), now)

    def start_rationing(self) -> None:
        """End the first harvest."""
        self.is_rationed = True
        self.save()

    def count_page(self, collection: int, now: float) -> None:
        """Count a download that begins."""
        if self.is_rationed:
            self._pages.spend(1.0, self.pages_per_s(collection), now)

    def count_revisit(self, collection: int, now: float) -> None:
        """Count a page that is queued for a revisit."""
        self._revisits.spend(1.0, self._revisits_per_s(collection), now)

    def count_bytes(self, count: int, now: float) -> None:
        """Count the bytes of a response."""
        if self.is_rationed and self._settings.bytes_per_day is not None:
            self._bytes.spend(count, self._settings.bytes_per_day / DAY_S, now)

    def save(self) -> None:
        """Write the state into the open transaction."""
        state = _State(self.is_rationed, *map(_saved, (self._pages, self._revisits, self._bytes)))
        self._tables.put_meta(_META, state)

    def _revisits_per_s(self, collection: int) -> float:
        return self.pages_per_s(collection) * (self._settings.share or 1.0)


def _saved(bucket: TokenBucket) -> tuple[float, float | None]:
    return bucket.tokens, bucket.since
