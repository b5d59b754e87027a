"""Revisit policies: when the value of visiting a page again reaches a price.

A crawl can't afford every visit, so visits have a price, which is the same for all pages at a time.
:class:`focused.revisit.schedule.RevisitSchedule` visits a page when the value of a visit reaches
the price, and moves the price so that the number of visits meets the budget: the price is the
Lagrange multiplier of an optimal allocation, found without a scan over the pages. A policy defines
the value. The simulator and the crawler drive the same objects.

Times are seconds since the epoch. Pages, directories and sites are numbers; a directory belongs to
one site. A policy keeps what it knows of a page in a :class:`RecordStore`, in a fixed number of
bytes a page, so that a crawl stores it on disk.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Visit:
    """The outcome of a revisit."""

    page: int
    at: float
    previous_at: float
    """Time of the visit before this one."""
    changed: bool
    """Whether the content differs from that of the visit before."""
    changed_at: float | None = None
    """Time of the last change within (previous_at, at], where a trusted source gives it.

    Another time counts as None.
    """
    hazard_factor: float | None = 1.0
    """By what change signals multiplied the expected changes; None after an announcement.

    Such a visit was made because the page changed, so it tells little of how often pages change.
    """

    def __post_init__(self) -> None:
        """Drop a ``changed_at`` that cannot be: the account of a wrong clock, or of no change."""
        changed_at = self.changed_at
        if changed_at is not None and not (
            self.changed and self.previous_at < changed_at <= self.at
        ):
            object.__setattr__(self, "changed_at", None)


class RecordStore(Protocol):
    """Records by kind and number: of a policy ("page", "directory", ...), and weights of pages."""

    def get(self, kind: str, number: int) -> bytes | None:
        """Return the record, or None."""

    def put(self, kind: str, number: int, record: bytes) -> None:
        """Write or replace the record."""

    def delete(self, kind: str, number: int) -> None:
        """Remove the record if it exists."""


_weight = struct.Struct("<d")


def put_weight(records: RecordStore, page: int, weight: float) -> None:
    """Store what a change of a page is worth."""
    records.put("weight", page, _weight.pack(weight))


def weight_of(records: RecordStore, page: int) -> float:
    """Return what a change of a page is worth; 1 for a page whose weight its policy has."""
    record = records.get("weight", page)
    return 1.0 if record is None else float(_weight.unpack(record)[0])


class RevisitPolicy(Protocol):
    """Values visits. Methods raise KeyError for a page that was not added."""

    follows_siblings: bool
    """Whether a change moves the due times of other pages of the directory and the site.

    The schedule then computes the due times of some again, by :func:`due_times`.
    """
    forced_after: float
    """The schedule visits a page after so many mean intervals, whatever the value of a visit.

    Infinity for a policy that may give up a page.
    """

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch. ``weight`` multiplies the value of its visits."""

    def record(self, visit: Visit) -> None:
        """Learn from a visit, and update the page's state."""

    def due_at(self, page: int, price: float) -> float:
        """Return when the value of a visit reaches ``price``; infinity for never."""

    def value(self, page: int, at: float) -> float:
        """Return the value of a visit at a time, in the unit of the price; never negative."""

    def change_probability(self, page: int, at: float) -> float:
        """Return the probability that the page changed since its last visit."""

    def take_moved(self) -> Iterable[int]:
        """Return the pages whose due times moved for other reasons than a visit, once.

        A policy that allocates visits per period returns them when it has allocated anew.
        """

    def remove(self, page: int) -> None:
        """Forget a page."""


@runtime_checkable
class BatchPolicy(Protocol):
    """A revisit policy that computes due times in batches."""

    def due_at_many(
        self, pages: Sequence[int], prices: Sequence[float], latest: float = math.inf
    ) -> Sequence[float]:
        """Return the due times of pages of one site, each at its price.

        They need to be accurate only for pages that are due about now, and may be infinite for
        those that are due after ``latest``.
        """


def due_times(
    policy: RevisitPolicy, pages: Sequence[int], prices: Sequence[float], latest: float
) -> Sequence[float]:
    """Return the due times of pages of one site, in a batch where the policy can."""
    if not pages:
        return ()
    if isinstance(policy, BatchPolicy):
        return policy.due_at_many(pages, prices, latest)
    return [policy.due_at(page, price) for page, price in zip(pages, prices, strict=True)]


@dataclass(frozen=True, slots=True)
class RevisitInputs:
    """What a revisit policy is made from."""

    mean_interval_s: float
    """The budget: the mean time between two visits of a page."""
    records: RecordStore
    seed: int = 0
