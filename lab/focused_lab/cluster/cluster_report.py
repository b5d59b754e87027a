"""Tables and files of a comparison of clusters: means over starts, with standard deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import pandas as pd
from rich.table import Table

from focused.errors import ComparisonError
from focused.files import write_atomically, write_json_atomically
from focused.text.csv_cells import escape_formulas
from focused_lab.analysis.number_format import NONE, format_bare_share
from focused_lab.analysis.tables import Cell, table_of
from focused_lab.cluster.cluster_comparison import (
    AssignmentRow,
    ClusterRow,
    ClusterVariant,
)

DOCUMENT_FILE = "clusters.json"


class ClusterMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The means of one variant over all starts; ``harvest_gain`` is that over the single crawl."""

    policy: str
    variant: ClusterVariant
    starts: int
    fetched: float
    overlap: float
    coverage: float
    harvest: float
    harvest_gain: float
    harvest_gain_sd: float | None
    best: float | None
    single_best: float | None
    messages_per_page: float
    messages_per_page_sd: float | None
    page_balance: float
    time_ratio: float
    """The simulated time, divided by that of the single crawl."""


def summarise(rows: Sequence[ClusterRow]) -> list[ClusterMeasures]:
    """Compute the means of each policy and variant."""
    groups: dict[tuple[str, ClusterVariant], list[ClusterRow]] = {}
    for row in rows:
        groups.setdefault((row.policy, row.variant), []).append(row)
    return [_measures(policy, variant, group) for (policy, variant), group in groups.items()]


def _measures(policy: str, variant: ClusterVariant, rows: Sequence[ClusterRow]) -> ClusterMeasures:
    gains = [row.harvest - row.single_harvest for row in rows]
    messages = [row.messages_per_page for row in rows]
    return ClusterMeasures(
        policy=policy,
        variant=variant,
        starts=len(rows),
        fetched=fmean(row.fetched for row in rows),
        overlap=fmean(row.overlap for row in rows),
        coverage=fmean(row.coverage for row in rows),
        harvest=fmean(row.harvest for row in rows),
        harvest_gain=fmean(gains),
        harvest_gain_sd=_deviation(gains),
        best=_mean(row.best for row in rows),
        single_best=_mean(row.single_best for row in rows),
        messages_per_page=fmean(messages),
        messages_per_page_sd=_deviation(messages),
        page_balance=fmean(row.page_balance for row in rows),
        time_ratio=fmean(row.simulated_s / max(row.single_simulated_s, 1e-9) for row in rows),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _deviation(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _with_deviation(value: float, deviation: float | None, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text if deviation is None else f"{text} ± {deviation:.{digits}f}"


def cluster_table(measures: Sequence[ClusterMeasures]) -> Table:
    """Return the table of all variants; columns with one value only are left out."""
    options: list[tuple[str, Callable[[ClusterMeasures], Cell]]] = [
        ("policy", lambda m: m.policy),
        ("workers", lambda m: str(m.variant.workers)),
        ("partitions", lambda m: str(m.variant.partitions or m.variant.workers)),
        ("mode", lambda m: m.variant.mode.value),
        ("unit", lambda m: m.variant.unit.value),
        ("batch s", lambda m: f"{m.variant.batch_s:g}"),
        ("replicated", lambda m: f"{m.variant.replicate:,}"),
        ("shared", lambda m: m.variant.sharing.value),
    ]
    varied = [
        (name, cell)
        for name, cell in options
        if name == "workers" or len({str(cell(each)) for each in measures}) > 1
    ]
    if all(each.variant.partitions is None for each in measures):
        varied = [(name, cell) for name, cell in varied if name != "partitions"]
    columns: list[tuple[str, Callable[[ClusterMeasures], Cell]]] = [
        *varied,
        ("pages", lambda m: f"{m.fetched:,.0f}"),
        ("overlap %", lambda m: format_bare_share(m.overlap)),
        ("coverage %", lambda m: format_bare_share(m.coverage)),
        ("harvest %", lambda m: format_bare_share(m.harvest)),
        (
            "gain",
            lambda m: _with_deviation(
                100 * m.harvest_gain,
                None if m.harvest_gain_sd is None else 100 * m.harvest_gain_sd,
                1,
            ),
        ),
        ("best %", lambda m: format_bare_share(m.best)),
        (
            "M/N",
            lambda m: _with_deviation(m.messages_per_page, m.messages_per_page_sd, 2),
        ),
        ("balance", lambda m: f"{m.page_balance:.2f}"),
        ("time", lambda m: f"{m.time_ratio:.2f}"),
    ]
    starts = max((each.starts for each in measures), default=0)
    best = _mean(each.single_best for each in measures)
    single = NONE if best is None else f"{best:.1%}"
    return table_of(
        f"Clusters compared with a single crawl: {starts} starts",
        measures,
        columns,
        "gain: harvest rate above that of the single crawl, points ± standard deviation over "
        f"starts. best: share of the topic's best pages that were fetched; single crawl {single}. "
        "M/N: links sent per page. balance: most pages of a worker by the mean. time: by that of "
        "the single crawl.",
    )


def assignment_table(rows: Sequence[AssignmentRow]) -> Table:
    """Return the table of balance and disruption."""
    return table_of(
        "Assignment of partitions to workers",
        rows,
        [
            ("web", lambda r: r.web),
            ("unit", lambda r: r.unit.value),
            ("partitions", lambda r: str(r.partitions)),
            ("workers", lambda r: str(r.workers)),
            ("balance: partitions", lambda r: f"{r.partition_balance:.2f}"),
            ("hosts", lambda r: f"{r.host_balance:.2f}"),
            ("pages", lambda r: f"{r.page_balance:.2f}"),
            ("hosts moved, %: join", lambda r: format_bare_share(r.hosts_moved_by_join)),
            ("leave", lambda r: format_bare_share(r.hosts_moved_by_leave)),
            ("modulo", lambda r: format_bare_share(r.modulo_hosts_moved)),
        ],
        "balance: maximum of a worker by the mean. modulo: a hash of the site modulo the workers, "
        "when one joins.",
    )


def write_report(
    rows: Sequence[ClusterRow],
    assignments: Sequence[AssignmentRow],
    command: Sequence[str],
    folder: Path,
    json_path: Path | None = None,
) -> list[Path]:
    """Write ``clusters.json``, ``clusters.csv``, ``cluster-runs.csv`` and ``assignment.csv``.

    The JSON document goes to ``json_path``, too. Raises ComparisonError when the folder cannot be
    written.
    """
    measures = summarise(rows)
    document = {
        "command": list(command),
        "measures": msgspec.to_builtins(measures),
        "runs": msgspec.to_builtins(list(rows)),
        "assignment": msgspec.to_builtins(list(assignments)),
    }
    contents = {
        "clusters.csv": _csv(measures),
        "cluster-runs.csv": _csv(rows),
        "assignment.csv": _csv(assignments),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in filter(None, (folder / DOCUMENT_FILE, json_path)):
            write_json_atomically(path, document)
        written = [write_atomically(folder / name, content) for name, content in contents.items()]
    except OSError as error:
        where = error.filename or folder
        raise ComparisonError(f"{where} cannot be written: {error.strerror}") from error
    return [folder / DOCUMENT_FILE, *written]


def _csv(rows: Sequence[msgspec.Struct]) -> bytes:
    """Return the rows as CSV; the fields of a variant are columns of their own."""
    flat: list[dict[str, Any]] = []
    for row in rows:
        fields = msgspec.to_builtins(row)
        variant = fields.pop("variant", {})
        flat.append({**fields, **variant})
    return pd.DataFrame(flat).map(_escaped).to_csv(index=False).encode()


def _escaped(cell: object) -> object:
    return escape_formulas(cell) if isinstance(cell, str) else cell
