"""The revisit policies by name: the hazard model, uniform, and those of other distributions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from focused.errors import ConfigurationError
from focused.installed_features import installed_parts, load_entry_point, more_from_lab
from focused.revisit.hazard import Hazard
from focused.revisit.policy import RevisitInputs, RevisitPolicy, Visit

RevisitPolicyFactory = Callable[[RevisitInputs], RevisitPolicy]


class Uniform:
    """Visit all pages at intervals of one length, divided by their weights."""

    follows_siblings = False
    forced_after = math.inf
    _record = struct.Struct("<df")  # last visit, weight

    def __init__(self, inputs: RevisitInputs) -> None:
        self._records = inputs.records
        self._visits = 0
        self._changes = 0

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch."""
        self._records.put("page", page, self._record.pack(at, weight))

    def record(self, visit: Visit) -> None:
        """Note the time of the visit."""
        self._visits += 1
        self._changes += visit.changed
        _, weight = self._state(visit.page)
        self._records.put("page", visit.page, self._record.pack(visit.at, weight))

    def due_at(self, page: int, price: float) -> float:
        """Return when the weighted time since the last visit reaches ``price`` seconds."""
        last, weight = self._state(page)
        return last + price / weight if weight else math.inf

    def value(self, page: int, at: float) -> float:
        """Return the weighted time since the last visit."""
        last, weight = self._state(page)
        return weight * max(at - last, 0.0)

    def change_probability(self, page: int, at: float) -> float:
        """Return the share of all visits that found a change."""
        return (self._changes + 0.5) / (self._visits + 1)

    def take_moved(self) -> Iterable[int]:
        """Return nothing."""
        return ()

    def remove(self, page: int) -> None:
        """Forget a page."""
        self._records.delete("page", page)

    def _state(self, page: int) -> tuple[float, float]:
        record = self._records.get("page", page)
        if record is None:
            raise KeyError(page)
        last, weight = self._record.unpack(record)
        return last, weight


ENTRY_POINT_GROUP = "focused.revisit_policies"

REVISIT_POLICIES: Mapping[str, RevisitPolicyFactory] = MappingProxyType(
    {"hazard": Hazard, "uniform": Uniform}
)
"""The policies of the crawler. Others are entry points of installed distributions."""


def revisit_policy_names() -> tuple[str, ...]:
    """Return the names of all policies: ours first, then those of installed distributions."""
    return tuple(dict.fromkeys((*REVISIT_POLICIES, *installed_parts(ENTRY_POINT_GROUP))))


def find_revisit_policy(name: str) -> RevisitPolicyFactory:
    """Return the factory of a policy: one of ours, or that of an entry point.

    Raises ConfigurationError for an unknown name.
    """
    if name in REVISIT_POLICIES:
        return REVISIT_POLICIES[name]
    if (point := installed_parts(ENTRY_POINT_GROUP).get(name)) is not None:
        factory: RevisitPolicyFactory = load_entry_point(point)
        return factory
    raise ConfigurationError(
        f"no revisit policy is named {name!r}; there are "
        f"{', '.join(revisit_policy_names())}{more_from_lab()}"
    )
