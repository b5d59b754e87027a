"""Read and validate a comparison's JSON document; arrange its runs as starts × policies."""

from __future__ import annotations

from collections import Counter
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

ORACLE_NAMES = ("oracle", "path-oracle", "classifier-oracle")
"""The names of the oracles."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class Start(NamedTuple):
    """A start shared by several policies, which are compared from the same start only.

    ``host_cap`` is in pages per host, None for no cap.
    """

    web: str
    topic: str
    seeds: str
    repeat: int
    host_cap: int | None

    @property
    def cluster(self) -> tuple[str, str]:
        """Web and topic: starts of one topic are not independent."""
        return self.web, self.topic

    @property
    def group(self) -> tuple[str, int | None]:
        """Kind of seeds and cap."""
        return self.seeds, self.host_cap


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated or live crawl, evaluated by labels; ``classifier_*`` by the topic's classifier.

    Shares are in [0, 1]. ``harvest`` is ``on_topic / fetched``; ``area`` is the mean harvest rate
    over the ``budget`` in pages, of which an unspent rest counts as off topic; ``relevant`` are the
    on-topic pages that exist, ``reachable`` those that the seeds lead to by links that may be
    followed; ``recall`` is ``on_topic / relevant``. After Cho, Garcia-Molina, Page 1998,
    ``crawl_and_stop`` is ``on_topic`` divided by the lesser of ``budget`` and ``relevant``,
    ``crawl_and_stop_threshold`` the fetched share of the on-topic pages with at least the median
    number of in-links. ``half_recall_pages`` are the pages fetched until half of the relevant ones
    were found, None if they never were. ``score_bins`` count scores before the fetch against
    labels: bin, pages, pages on topic, sum of scores, sum of squared errors; None if scores are no
    probabilities. ``curve`` holds at most a hundred pairs (fetched, on topic). ``cpu_s`` leaves out
    parsing and classifying in simulations; ``peak_mb`` is resident memory. None elsewhere means
    not measured, such as ``reachable`` in files of earlier versions.
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
    reachable: Count | None = None
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
        """The start that the run shares with those it is compared with."""
        return Start(self.web, self.topic, self.seeds, self.repeat, self.host_cap)

    @property
    def ended_early(self) -> bool:
        """Whether the frontier was empty before the budget was spent."""
        return self.fetched < self.budget


class ExperimentSettings(msgspec.Struct, frozen=True):
    """Settings that all runs share.

    ``budget`` is a number of pages, or ``x1.5`` times the topic's on-topic pages. ``latency_s`` is
    the mean over URLs. ``delay_s`` is the delay of live crawls of a replayed web, None for
    simulated ones.
    """

    budget: str = "1000"
    repeat: Count = 1
    latency_s: Amount = 0.2
    seed: int = 0
    delay_s: Amount | None = None

    @property
    def live(self) -> bool:
        """Whether the runs are live crawls."""
        return self.delay_s is not None


class RecordedWebSummary(msgspec.Struct, frozen=True):
    """A recorded web that was crawled."""

    name: str
    folder: str = ""
    pages: Count = 0
    hosts: Count = 0


class SkippedTopic(msgspec.Struct, frozen=True):
    """A topic that was not run, and why."""

    web: str
    topic: str
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The document, without its statistics, which are computed again.

    ``focused`` is the version that wrote it, ``command`` the command line.
    """

    focused: str
    runs: tuple[Run, ...]
    settings: ExperimentSettings = ExperimentSettings()
    webs: tuple[RecordedWebSummary, ...] = ()
    skipped: tuple[SkippedTopic, ...] = ()
    command: str | tuple[str, ...] | None = None


def read_comparison(path: Path) -> Comparison:
    """Read the JSON file at ``path``.

    Raises :class:`ComparisonError`, naming the file and the place in it.
    """
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ComparisonError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ComparisonError(f"{path} is not valid JSON: {error}") from error
    return parse_comparison(document, str(path))


def parse_comparison(document: object, name: str = "the comparison") -> Comparison:
    """Validate a document; ``name`` is used in errors. Raises :class:`ComparisonError`."""
    if not isinstance(document, Mapping) or not {"focused", "runs"} <= document.keys():
        raise ComparisonError(
            f"{name} was not written by 'focused compare --json': it lacks 'focused' and 'runs'"
        )
    try:
        comparison = msgspec.convert(dict(document), Comparison)
    except msgspec.ValidationError as error:
        raise ComparisonError(f"{name} is damaged: {error}") from error
    _check_runs(comparison.runs, name)
    return comparison


def runs_of(rows: Iterable[Mapping[str, Any]], name: str = "the comparison") -> tuple[Run, ...]:
    """Validate the ``runs`` of a document. Raises :class:`ComparisonError`."""
    try:
        runs = msgspec.convert([dict(row) for row in rows], tuple[Run, ...])
    except msgspec.ValidationError as error:
        raise ComparisonError(f"{name} is damaged in its runs: {error}") from error
    _check_runs(runs, name)
    return runs


def runs_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per run, the flat fields of :class:`Run` as columns."""
    columns = [field for field in Run.__struct_fields__ if field not in ("curve", "score_bins")]
    frame = pd.DataFrame(
        [[getattr(run, column) for column in columns] for run in runs], columns=columns
    )
    # Keep counts integers even where some or all are missing.
    nullable = dict.fromkeys(("host_cap", "reachable", "half_recall_pages"), "Int64")
    floats = [
        *("crawl_and_stop", "crawl_and_stop_threshold", "simulated_s", "cpu_s", "peak_mb"),
        *("classifier_harvest", "classifier_precision", "classifier_recall"),
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
            raise ComparisonError(f"{where}.score_bins has a repeated bin")
        if any(each.on_topic > each.pages for each in run.score_bins or ()):
            raise ComparisonError(f"{where}.score_bins has more pages on topic than pages")
        for (before, found_before), (after, found_after) in zip(
            run.curve, run.curve[1:], strict=False
        ):
            if after < before or found_after < found_before:
                raise ComparisonError(f"{where}.curve decreases; fetched and on topic must not")


StartGroup = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class RunGrid:
    """All runs by start and policy; ``starts`` are sorted, ``policies`` in the order met.

    Runs may be missing: a comparison can be interrupted.
    """

    starts: tuple[Start, ...]
    policies: tuple[str, ...]
    runs: dict[tuple[Start, str], Run]

    @classmethod
    def from_runs(cls, runs: Iterable[Run]) -> RunGrid:
        """Arrange ``runs``, at most one for each policy and start."""
        cells = {(run.start, run.policy): run for run in runs}
        starts = sorted({start for start, _ in cells}, key=_start_order)
        return cls(tuple(starts), tuple(dict.fromkeys(policy for _, policy in cells)), cells)

    def values(self, measure: str | Callable[[Run], float | None]) -> NDArray[np.float64]:
        """A measure of each run, shape (starts, policies); NaN without a run."""
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
        """The part with the starts that ``keep`` accepts, and all policies."""
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

    def with_runs_of(self, policies: Sequence[str]) -> RunGrid:
        """The starts from which all of ``policies`` have a run."""
        return self.where(lambda start: all((start, policy) in self.runs for policy in policies))

    def is_unreachable(self, start: Start) -> bool:
        """Whether no page on topic can be reached from there.

        False where no run measured it, and where one found something all the same: a crawl may
        follow links that the link graph does not have.
        """
        found = (self.runs.get((start, policy)) for policy in self.policies)
        runs = [run for run in found if run is not None]
        measured = {run.reachable for run in runs} - {None}
        return measured == {0} and not any(run.on_topic for run in runs)

    @property
    def topics(self) -> list[tuple[str, str]]:
        """The distinct pairs of web and topic, sorted."""
        return list(dict.fromkeys(start.cluster for start in self.starts))

    @property
    def groups(self) -> list[StartGroup]:
        """The distinct pairs of seeds and host cap, sorted, no cap first."""
        each = {start.group for start in self.starts}
        return sorted(each, key=lambda group: (_seed_set_order(group[0]), group[1] or 0))

    @property
    def non_oracles(self) -> list[str]:
        """The policies that are no oracles."""
        return [policy for policy in self.policies if policy not in ORACLE_NAMES]


class UnreachableStarts(msgspec.Struct, frozen=True, kw_only=True):
    """The starts of one topic, kind of seeds and cap from which no page on topic can be reached.

    ``repeats`` are those starts, of ``starts`` in all.
    """

    web: str
    topic: str
    seeds: str
    host_cap: int | None
    repeats: tuple[int, ...]
    starts: int


def find_unreachable_starts(grid: RunGrid) -> list[UnreachableStarts]:
    """One row per topic, kind of seeds and cap with such a start, in the order of the grid."""
    repeats: dict[tuple[str, str, str, int | None], list[int]] = {}
    starts = Counter((each.web, each.topic, *each.group) for each in grid.starts)
    for each in grid.starts:
        if grid.is_unreachable(each):
            repeats.setdefault((each.web, each.topic, *each.group), []).append(each.repeat)
    return [
        UnreachableStarts(
            web=kind[0],
            topic=kind[1],
            seeds=kind[2],
            host_cap=kind[3],
            repeats=tuple(found),
            starts=starts[kind],
        )
        for kind, found in repeats.items()
    ]


def format_start_group(group: StartGroup) -> str:
    """Format a group: ``seeds on-topic:5, at most 300 pages a host``."""
    seeds, cap = group
    return f"seeds {seeds}" + ("" if cap is None else f", at most {cap:,} pages a host")


def _start_order(start: Start) -> tuple[str, str, tuple[int, str], int, int]:
    cap = start.host_cap or 0
    return (start.web, start.topic, _seed_set_order(start.seeds), start.repeat, cap)


def _seed_set_order(seeds: str) -> tuple[int, str]:
    """Sort the topic's own seeds first, then on topic, off topic, files."""
    kinds = ("topic", "on-topic", "off-topic")
    kind = seeds.partition(":")[0]
    return (kinds.index(kind) if kind in kinds else len(kinds), seeds)
