"""The comparison's JSON document, read and checked: one typed row per run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.errors import ComparisonError
from focused.reports.reliability import BinCount

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class Start(NamedTuple):
    """Where several policies began alike; they are compared on it and nowhere else.

    ``host_cap`` is in pages per host, None where there was no cap.
    """

    web: str
    topic: str
    seeds: str
    repeat: int
    host_cap: int | None

    @property
    def cluster(self) -> tuple[str, str]:
        """Web and topic: starts of one topic resemble each other."""
        return self.web, self.topic

    @property
    def group(self) -> tuple[str, int | None]:
        """Kind of seeds and cap."""
        return self.seeds, self.host_cap


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated crawl, by the labels; ``judge_*`` by the topic's own classifier.

    Shares are in [0, 1]. ``harvest`` is ``on_topic / fetched``, ``area`` the mean
    harvest rate over the ``budget`` (in pages, what was left of it off topic),
    ``relevant`` the pages on topic that count. ``crawl_and_stop`` and
    ``crawl_and_stop_threshold`` as in Cho, Garcia-Molina, Page 1998.
    ``half_recall_pages`` is None where half of the relevant pages were never
    found. ``score_bins`` holds the scores against labels, None of a policy whose
    scores are no probabilities. ``curve`` holds pairs (fetched, on topic), both
    rising. None elsewhere: not measured.
    """

    web: str
    topic: str
    policy: str
    seeds: str
    repeat: Count
    budget: Annotated[int, msgspec.Meta(ge=1)]
    host_cap: Annotated[int, msgspec.Meta(ge=1)] | None
    fetched: Count
    on_topic: Count
    relevant: Count
    harvest: Share
    recall: Share
    area: Share
    hosts: Count
    curve: tuple[tuple[Count, Count], ...]
    crawl_and_stop: Share | None = None
    crawl_and_stop_threshold: Share | None = None
    half_recall_pages: Count | None = None
    classifier_harvest: Share | None = None
    classifier_precision: Share | None = None
    classifier_recall: Share | None = None
    score_bins: tuple[BinCount, ...] | None = None
    end_reason: str = ""
    simulated_s: Amount | None = None
    cpu_s: Amount | None = None
    peak_mb: Amount | None = None

    @property
    def start(self) -> Start:
        """What it shares with the runs it is compared with."""
        return Start(self.web, self.topic, self.seeds, self.repeat, self.host_cap)

    @property
    def ended_early(self) -> bool:
        """Whether nothing was left to fetch before the budget was spent."""
        return self.fetched < self.budget


class RecordedSettings(msgspec.Struct, frozen=True):
    """What all runs have in common; ``budget`` in pages or ``x1``, times the topic's size.

    ``live`` runs are real crawls of a replayed web, ``delay_s`` seconds apart at a host.
    """

    budget: str | int = ""
    latency_s: Amount | None = None
    seed: int = 0
    repeat: Count = 1
    live: bool = False
    delay_s: Amount | None = None


class RecordedWebSummary(msgspec.Struct, frozen=True):
    """A recorded web that was crawled."""

    name: str
    folder: str = ""
    pages: Count = 0
    hosts: Count = 0


class SkippedTopic(msgspec.Struct, frozen=True):
    """A topic that was not examined, and why."""

    web: str
    topic: str
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document; what it says of summary, pairs and ranks is found again.

    ``focused`` is the version that made it, ``command`` the command line.
    """

    focused: str
    runs: tuple[Run, ...]
    terms: RecordedSettings = RecordedSettings()
    webs: tuple[RecordedWebSummary, ...] = ()
    skipped: tuple[SkippedTopic, ...] = ()
    command: str | tuple[str, ...] | None = None


def read_comparison(path: Path) -> Comparison:
    """Read the JSON file at ``path``.

    Raises :class:`ComparisonError` when it is missing, no JSON, or no
    comparison; the message names the file and the place in it.
    """
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ComparisonError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ComparisonError(f"{path} is damaged, it is no JSON: {error}") from error
    return parse_comparison(document, str(path))


def parse_comparison(document: object, name: str = "the comparison") -> Comparison:
    """Check a document. ``name`` is what errors call it.

    Raises :class:`ComparisonError` for a foreign or damaged one.
    """
    if not isinstance(document, Mapping) or not {"focused", "runs"} <= document.keys():
        raise ComparisonError(
            f"{name} was not written by 'focused compare --json': it has no 'focused' and 'runs'"
        )
    try:
        comparison = msgspec.convert(dict(document), Comparison)
    except msgspec.ValidationError as error:
        raise ComparisonError(f"{name} is damaged: {error}") from error
    _check_runs(comparison.runs, name)
    return comparison


def runs_of(rows: Iterable[Mapping[str, Any]], name: str = "the comparison") -> tuple[Run, ...]:
    """Check the ``runs`` of a document. Raises :class:`ComparisonError`."""
    try:
        runs = msgspec.convert([dict(row) for row in rows], tuple[Run, ...])
    except msgspec.ValidationError as error:
        raise ComparisonError(f"{name} is damaged in its runs: {error}") from error
    _check_runs(runs, name)
    return runs


def runs_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per run, the flat fields of :class:`Run` as columns; None is missing."""
    columns = [field for field in Run.__struct_fields__ if field not in ("curve", "score_bins")]
    frame = pd.DataFrame(
        [[getattr(run, column) for column in columns] for run in runs], columns=columns
    )
    # An all-missing or half-missing count must stay a count in every run's file
    nullable = {"host_cap": "Int64", "half_recall_pages": "Int64"}
    floats = [
        *(
            "crawl_and_stop",
            "crawl_and_stop_threshold",
            "classifier_harvest",
            "classifier_precision",
        ),
        *("classifier_recall", "simulated_s", "cpu_s", "peak_mb"),
    ]
    return frame.astype(nullable | dict.fromkeys(floats, "float64"))


def curves_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per point of a curve: the run's start and policy, ``fetched``, ``on_topic``."""
    columns = ["web", "topic", "policy", "seeds", "repeat", "host_cap", "fetched", "on_topic"]
    rows = [
        (*(getattr(run, column) for column in columns[:6]), fetched, on_topic)
        for run in runs
        for fetched, on_topic in run.curve
    ]
    return pd.DataFrame(rows, columns=columns).astype({"host_cap": "Int64"})


def _check_runs(runs: Sequence[Run], name: str) -> None:
    seen: dict[tuple[str, Start], int] = {}
    for place, run in enumerate(runs):
        where = f"{name} is damaged: runs[{place}]"
        earlier = seen.setdefault((run.policy, run.start), place)
        if earlier != place:
            raise ComparisonError(f"{where} is the same policy and start as runs[{earlier}]")
        if run.on_topic > run.fetched:
            raise ComparisonError(f"{where} has more pages on topic than fetched")
        places = [each.place for each in run.score_bins or ()]
        if len(set(places)) < len(places):
            raise ComparisonError(f"{where}.score_bins has a bin twice")
        if any(each.on_topic > each.pages for each in run.score_bins or ()):
            raise ComparisonError(f"{where}.score_bins has more pages on topic than pages")
        for (before, found_before), (after, found_after) in zip(
            run.curve, run.curve[1:], strict=False
        ):
            if after < before or found_after < found_before:
                raise ComparisonError(f"{where}.curve falls; fetched and on topic only rise")


BASELINE = "bfs"
FOCUSED = "focused"
ABLATION_PREFIX = f"{FOCUSED}-without-"
"""How the names of our own policy with a part left out begin."""

ORACLE_NAMES = ("oracle", "path-oracle", "classifier-oracle")
"""Policies that see the labels: the greedy one, and the one that knows distances."""

StartGroup = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class RunGrid:
    """All runs; ``starts`` are sorted, ``policies`` in the order met.

    A policy need not have a run from every start: an interrupted comparison
    has holes.
    """

    starts: tuple[Start, ...]
    policies: tuple[str, ...]
    runs: dict[tuple[Start, str], Run]

    @classmethod
    def of(cls, runs: Iterable[Run]) -> RunGrid:
        """Lay out ``runs``; each policy and start must be there once at most."""
        cells = {(run.start, run.policy): run for run in runs}
        starts = sorted({start for start, _ in cells}, key=_start_order)
        return cls(tuple(starts), tuple(dict.fromkeys(policy for _, policy in cells)), cells)

    def values(self, measure: str | Callable[[Run], float | None]) -> NDArray[np.float64]:
        """A measure of each run, shape (starts, policies); NaN where there is none."""
        read = (lambda run: getattr(run, measure)) if isinstance(measure, str) else measure
        table = np.full((len(self.starts), len(self.policies)), np.nan)
        for row, start in enumerate(self.starts):
            for column, policy in enumerate(self.policies):
                run = self.runs.get((start, policy))
                value = None if run is None else read(run)
                if value is not None:
                    table[row, column] = value
        return table

    def runs_of_policy(self, policy: str) -> list[Run]:
        """A policy's runs, in the order of the starts."""
        return [self.runs[start, policy] for start in self.starts if (start, policy) in self.runs]

    def where(self, keep: Callable[[Start], bool]) -> RunGrid:
        """The part whose starts ``keep`` wants; all policies stay."""
        starts = tuple(start for start in self.starts if keep(start))
        kept = set(starts)
        cells = {key: run for key, run in self.runs.items() if key[0] in kept}
        return RunGrid(starts, self.policies, cells)

    def in_group(self, group: StartGroup) -> RunGrid:
        """The starts with that kind of seeds and that host cap."""
        return self.where(lambda start: start.group == group)

    def on_topic(self, web: str, topic: str) -> RunGrid:
        """The starts of one topic of one web."""
        return self.where(lambda start: start.cluster == (web, topic))

    def complete(self, policies: Sequence[str]) -> RunGrid:
        """The starts from which every one of ``policies`` has a run."""
        return self.where(lambda start: all((start, policy) in self.runs for policy in policies))

    @property
    def topics(self) -> list[tuple[str, str]]:
        """Web and topic, each once, sorted."""
        return list(dict.fromkeys(start.cluster for start in self.starts))

    @property
    def groups(self) -> list[StartGroup]:
        """Kind of seeds and host cap, each once, sorted; no cap comes first."""
        each = {start.group for start in self.starts}
        return sorted(each, key=lambda group: (_seed_set_order(group[0]), group[1] or 0))

    @property
    def contenders(self) -> list[str]:
        """The policies that see no labels."""
        return [policy for policy in self.policies if policy not in ORACLE_NAMES]


def format_start_group(group: StartGroup) -> str:
    """A group in words: ``seeds on-topic:5, at most 300 pages a host``."""
    seeds, cap = group
    return f"seeds {seeds}" + ("" if cap is None else f", at most {cap:,} pages a host")


def _start_order(start: Start) -> tuple[str, str, tuple[int, str], int, int]:
    cap = start.host_cap or 0
    return (start.web, start.topic, _seed_set_order(start.seeds), start.repeat, cap)


def _seed_set_order(seeds: str) -> tuple[int, str]:
    """The topic's own first, then on topic, off topic, files."""
    kinds = ("topic", "on-topic", "off-topic")
    kind = seeds.partition(":")[0]
    return (kinds.index(kind) if kind in kinds else len(kinds), seeds)
