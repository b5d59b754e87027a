"""What a crawl leaves at its end: its Parquet files and, where it is asked for, its report.

``python -m focused.reports.crawl_results FOLDER WEB report`` writes them, in a process of its own:
a crawl never holds pandas and pyarrow, which take some 100 MB. ``WEB`` is a recorded web whose
labels the report compares with, or empty; an empty last argument prints no report.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from focused.child_processes import end_with_parent
from focused.errors import FocusedError, missing_extra, print_notice


def main(arguments: list[str]) -> int:
    """Write the results of a crawl; return the exit status.

    If the tables cannot be written, prints the system's number of the error or null, and a message,
    as a list in JSON. A report that fails prints a line on standard error.
    """
    end_with_parent(signal.SIGKILL)
    path, web, reports = arguments
    folder = Path(path)
    try:
        _write_tables(folder)
    except FocusedError as error:
        print(json.dumps([None, str(error)]))
        return 1
    except OSError as error:
        print(json.dumps([error.errno, error.strerror or str(error)]))
        return 1
    if reports:
        _print_report(folder, web)
    return 0


def _write_tables(folder: Path) -> None:
    from focused.archive.parquet import write_parquet_files
    from focused.storage.state_store import StateStore

    with StateStore.open_for_reading(folder / "state") as (store, _):
        write_parquet_files(store.tables, folder)


def _print_report(folder: Path, web: str) -> None:
    try:
        from rich.console import Console

        from focused.recorded_web import find_recorded_webs
        from focused.reports.report_output import print_report

        labels = find_recorded_webs().read_labels(Path(web)) if web else None
        print_report(folder, Console(), labels or None, out=folder, draws=False)
    except FocusedError as error:
        print_notice(str(error))
    except ModuleNotFoundError as error:
        missing = missing_extra(error, "the report")
        if missing is None:
            raise
        print_notice(str(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
