"""``focused report`` and ``focused why``: what crawls brought, looked at again."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from focused.archive_parquet import export
from focused.errors import ConfigurationError, StateError
from focused.evaluation.comparison import compare_reports
from focused.evaluation.report_print import print_report
from focused.evaluation.why import explain
from focused.evaluation.why_print import print_explanation
from focused.frontier.store import StateStore
from focused.recorded.labels import LABELS_FILE, read_labels


def show_reports(folders: tuple[Path, ...], web: Path | None, plot: Path | None) -> None:
    """Print one crawl's report, or compare several; draw their curves."""
    for folder in folders:
        _bring_up_to_date(folder)
    labels = None if web is None else read_labels(web / LABELS_FILE) or None
    console = Console()
    if len(folders) == 1:
        print_report(folders[0], console, labels)
        return
    compare_reports(folders, console, plot or Path("comparison.png"), labels)


def show_why(url: str, folder: Path | None) -> None:
    """Print why ``url`` was fetched in the crawl of ``folder``, or of the newest one."""
    folder = folder or _newest_crawl()
    _bring_up_to_date(folder)
    print_explanation(explain(folder, url), Console())


def _bring_up_to_date(folder: Path) -> None:
    """Write the Parquet files of a crawl that was killed; a running one keeps its own."""
    state = folder / "state"
    if not state.is_dir():
        return
    try:
        store = StateStore.reopen(state)
    except StateError:
        if (folder / "pages.parquet").is_file():
            return
        raise
    try:
        export(store.tables, folder)
    finally:
        store.close()


def _newest_crawl() -> Path:
    found = [path.parent for path in Path("crawls").glob("*/pages.parquet")]
    if not found:
        raise ConfigurationError("crawls/ holds no finished crawl: name one with --folder")
    return max(found, key=lambda folder: (folder / "pages.parquet").stat().st_mtime)
