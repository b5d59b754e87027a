"""Counters and stage times of a crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from focused.installed_features import installed_features

RECENT_PAGES = 100


@dataclass(slots=True)
class Counters:
    """Totals since the crawl began, over all sessions.

    ``classified`` counts fetched pages that may be harvest, without training samples; ``on_topic``
    those that the classifier called on topic, each content once. ``duplicates`` include
    ``near_duplicates``. ``noindex`` counts pages left out at their own request, ``nofollow`` links
    not followed, ``links_over_limit`` links past the limit of a page. ``of_features`` holds what
    features count, by name: a number, or numbers by kind.
    """

    settled: int = 0
    fetched: int = 0
    classified: int = 0
    on_topic: int = 0
    training: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    redirected: int = 0
    robots_fetched: int = 0
    robots_excluded: int = 0
    retries: int = 0
    nofollow: int = 0
    noindex: int = 0
    links_over_limit: int = 0
    bytes: int = 0
    active_s: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)
    out_of_scope: dict[str, int] = field(default_factory=dict)
    recent: list[bool] = field(default_factory=list)
    of_features: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> Counters:
        """Restore the result of :meth:`to_state`, or the fields; None starts at zero."""
        values = dict(state or {})
        values |= values.pop("of_features", {})
        own = {name: values.pop(name) for name in _NAMES if name in values}
        return cls(**own, of_features=values)

    def to_state(self) -> dict[str, Any]:
        """Return the totals as JSON data."""
        own = {name: copy(getattr(self, name)) for name in _NAMES}
        return own | {name: copy(count) for name, count in self.of_features.items()}

    @classmethod
    def total(cls, parts: Sequence[Counters]) -> Counters:
        """Return the totals of crawls that ran side by side; that of one is itself."""
        if len(parts) == 1:
            return parts[0]
        total = cls(active_s=max((part.active_s for part in parts), default=0.0))
        for part in parts:
            for name in _COUNTS:
                setattr(total, name, getattr(total, name) + getattr(part, name))
            for name in _COUNTS_BY_KIND:
                counts = Counter(getattr(total, name)) + Counter(getattr(part, name))
                setattr(total, name, dict(counts))
            for name, count in part.of_features.items():
                if isinstance(count, dict):
                    for kind, times in count.items():
                        total.count_kind(name, kind, times)
                else:
                    total.count(name, count)
            total.recent += part.recent[-RECENT_PAGES // len(parts) :]
        return total

    @property
    def harvest_rate(self) -> float:
        """On-topic pages per classified page, in [0, 1]; 0 before the first."""
        return self.on_topic / self.classified if self.classified else 0.0

    @property
    def recent_harvest_rate(self) -> float:
        """The harvest rate of the last :data:`RECENT_PAGES` classified pages."""
        recent = self.recent[-RECENT_PAGES:]
        return sum(recent) / len(recent) if recent else 0.0

    @property
    def is_unproductive(self) -> bool:
        """Whether none of the last :data:`RECENT_PAGES` classified pages was on topic."""
        return len(self.recent) >= RECENT_PAGES and not any(self.recent[-RECENT_PAGES:])

    def count_classified(self, harvested: bool, keep: int = RECENT_PAGES) -> None:
        """Count a page that may be harvest; ``recent`` holds the last ``keep`` of them."""
        self.classified += 1
        self.on_topic += harvested
        self.recent.append(harvested)
        del self.recent[: -max(keep, RECENT_PAGES)]

    def count_failure(self, kind: str) -> None:
        """Count a URL without a page."""
        self.failures[kind] = self.failures.get(kind, 0) + 1

    def count(self, name: str, times: int = 1) -> None:
        """Count an event of a feature."""
        self.of_features[name] = self.of_features.get(name, 0) + times

    def count_kind(self, name: str, kind: str, times: int = 1) -> None:
        """Count an event of a feature by its kind."""
        if times:
            counts = self.of_features.setdefault(name, {})
            counts[kind] = counts.get(kind, 0) + times

    @property
    def downloads(self) -> int:
        """Number of new pages, and of downloads by features that bring none."""
        return self.fetched + sum(sum(kinds.values()) for _, kinds in self.feature_downloads())

    def feature_downloads(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """The names and counts by kind of downloads by features that bring no new page."""
        for feature in installed_features().values():
            if kinds := self.kinds(feature.downloads):
                yield feature.downloads, kinds

    def kinds(self, name: str) -> Mapping[str, int]:
        """Return what :meth:`count_kind` counted."""
        counts: Mapping[str, int] = self.of_features.get(name, {})
        return counts

    def count_out_of_scope(self, reason: str, links: int = 1) -> None:
        """Count links refused for ``reason``."""
        self.out_of_scope[reason] = self.out_of_scope.get(reason, 0) + links


_COUNTS = tuple(each.name for each in fields(Counters) if each.type == "int")
_COUNTS_BY_KIND = ("failures", "out_of_scope")
_NAMES = tuple(each.name for each in fields(Counters) if each.name != "of_features")

Clock = Callable[[], float]


class Stage(StrEnum):
    """The stages of processing a page, in order; reports print the values."""

    SELECTING = "selecting"
    PARSING = "parsing"
    CLASSIFYING = "classifying"
    DEDUPLICATING = "deduplicating"
    SCORING = "scoring"
    ARCHIVING = "archiving"
    ENQUEUEING = "enqueueing"
    TRAINING = "training"
    COMMITTING = "committing"


class StageTimes:
    """Seconds by stage in one session; stages don't nest. The clock ``float`` always reads 0."""

    def __init__(self, clock: Clock = float) -> None:
        self.clock = clock
        self._seconds = dict.fromkeys(Stage, 0.0)
        self._stage = Stage.SELECTING
        self._began = 0.0

    def __call__(self, stage: Stage) -> StageTimes:
        """Time a block: ``with stages(Stage.SCORING):``."""
        self._stage = stage
        return self

    def __enter__(self) -> None:
        self._began = self.clock()

    def __exit__(self, *error: object) -> None:
        self.add(self._stage, self.clock() - self._began)

    def add(self, stage: Stage, seconds: float) -> None:
        """Add time measured elsewhere, such as in a parser process."""
        self._seconds[stage] += seconds

    @property
    def seconds(self) -> Mapping[str, float]:
        """The seconds by stage so far."""
        return {str(stage): seconds for stage, seconds in self._seconds.items()}
