"""``focused crawl --check``: verify a crawl's folder and print what is damaged."""

from __future__ import annotations

from pathlib import Path

from focused.cli.common import echo
from focused.cli.progress_bars import page_progress
from focused.crawl.folder_check import check_folder

_MAX_PRINTED = 50


def run_check(folder: Path) -> int:
    """Check the folder; return the exit status: 1 if anything is damaged."""
    report = check_folder(folder, page_progress)
    for line in report.damaged[:_MAX_PRINTED]:
        echo(f"focused: {line}", err=True)
    if len(report.damaged) > _MAX_PRINTED:
        echo(f"focused: and {len(report.damaged) - _MAX_PRINTED:,} more", err=True)
    echo(
        f"{folder}: read {report.rows:,} rows of {report.tables} tables, {report.records:,} "
        f"records of the WARC and {report.files} files beside it"
    )
    if report.damaged:
        echo(
            f"focused: {folder} is damaged. A crawl stops where it reads a damaged row. Restore "
            "the folder from a copy, or start afresh with --fresh; what is not named above stays "
            "readable.",
            err=True,
        )
        return 1
    echo("no damage was found")
    return 0
