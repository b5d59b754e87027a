"""The changes that a continuous crawl observed, as change histories."""

from __future__ import annotations

from pathlib import Path

from focused.archive.archive import page_rows
from focused.archive.page_history import (
    VisitResult,
    page_histories,
    visit_rows,
    visits_with_news,
)
from focused.reports.collection_changes import open_state
from focused_lab.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    page_changes,
    site_name,
    write_change_history,
)

_CHANGE_KINDS = {
    VisitResult.CHANGED: ChangeKind.CHANGED,
    VisitResult.GONE: ChangeKind.DELETED,
    VisitResult.SOFT_404: ChangeKind.DELETED,
    VisitResult.MOVED: ChangeKind.DELETED,
    VisitResult.REAPPEARED: ChangeKind.CREATED,
}
_FILE_SUFFIXES = (".tsv", ".tsv.gz")


def export_changes(folder: Path, out: Path) -> list[Path]:
    """Write the observed changes of the crawl in ``folder``; return the files.

    ``out`` is a file whose name ends with ``.tsv`` or ``.tsv.gz``, for all pages together, or a
    folder, which gets a file for each host. Each page is created at its first fetch. A change lies
    between two visits; the midpoint stands for its time. So policies that visit more often than the
    crawl did cannot be told apart by its history. Raises :class:`StateError` when the crawl cannot
    be read, OSError when a file cannot be written.
    """
    histories = observed_changes(folder)
    if out.name.endswith(_FILE_SUFFIXES):
        pages = tuple(page for history in histories for page in history.pages)
        write_change_history(out, SiteChanges(site_name(out), pages))
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{history.site.replace(':', '_')}.tsv.gz" for history in histories]
    for path, history in zip(files, histories, strict=True):
        write_change_history(path, history)
    return files


def observed_changes(folder: Path) -> list[SiteChanges]:
    """Return the observed changes of all pages that the crawl visits again, by host."""
    with open_state(folder) as store:
        visited = {page for page, _ in page_histories(store.tables)}
        rows = {
            row["seq"]: (row["host"], row["url"], row["fetched_at"])
            for row in page_rows(store.tables)
            if row["seq"] in visited
        }
        changes = {
            seq: [Change(ChangeKind.CREATED, fetched_at)]
            for seq, (_, _, fetched_at) in rows.items()
        }
        for visit in visits_with_news(visit_rows(store.tables)):
            kind = _CHANGE_KINDS.get(VisitResult(visit.result))
            if kind is not None and visit.page in changes:
                middle = (visit.previous_at + visit.at) / 2
                changes[visit.page].append(Change(kind, middle))
    hosts: dict[str, list[PageChanges]] = {}
    for seq, (host, url, _) in rows.items():
        hosts.setdefault(host, []).append(page_changes(url, changes[seq]))
    return [SiteChanges(host, tuple(pages)) for host, pages in sorted(hosts.items())]
