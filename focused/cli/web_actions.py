"""``focused web ...``: import, inspect and serve recorded webs."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.cli.common import echo
from focused.cli.progress_bars import page_progress
from focused.errors import ConfigurationError
from focused.recorded_web.changing_web import ChangingWeb, ReplayClock
from focused.recorded_web.recorded_web import read_web_label_lines
from focused.recorded_web.replay_faults import FaultPlan, parse_fault
from focused.recorded_web.replay_server import serve_forever
from focused.recorded_web.web_import import ImportedWeb, import_html, import_warc
from focused.recorded_web.web_info import WebInfo, web_info
from focused.reports.formatting import single_line

_MAX_ROWS = 20


def import_sources(
    sources: tuple[Path, ...], folder: Path, base_url: str | None, labels: Path | None
) -> None:
    """Import one folder of HTML with its URL, or WARC files."""
    lines = () if labels is None else read_web_label_lines(labels)
    if len(sources) == 1 and sources[0].is_dir():
        if base_url is None:
            raise ConfigurationError(
                f"--base-url is missing: what is the URL of {sources[0]}? "
                "For example --base-url https://docs.example.org/"
            )
        _print_import(import_html(sources[0], base_url, folder, folder.name, lines))
        return
    for source in sources:
        if source.is_dir():
            raise ConfigurationError(f"{source} is a folder: give one folder alone, or WARC files")
    _print_import(import_warc(sources, folder, folder.name, lines))


def show_web(folder: Path) -> None:
    """Print the content of a recorded web."""
    info = _info(folder)
    table = Table(title=Text(single_line(info.name)), title_justify="left", show_header=False)
    rows = {
        "pages": info.pages,
        "redirects": info.redirects,
        "other responses": info.other,
        "hosts": len(info.hosts),
        "links between pages": info.links,
        "labelled pages": info.labelled_pages,
        "damaged records": info.damaged,
        "bytes": info.size_bytes,
    }
    for name, count in rows.items():
        table.add_row(name, f"{count:,}")
    console = Console()
    console.print(table)
    for title, counts in (("Hosts", info.hosts), ("Categories", info.categories)):
        console.print(_counts(title, counts))


def store_link_count(folder: Path) -> None:
    """Store the number of links of a new web, so that ``web info`` is fast."""
    _info(folder)


def _info(folder: Path) -> WebInfo:
    with page_progress(folder.name) as progress:
        return web_info(folder, progress)


def _counts(title: str, counts: tuple[tuple[str, int], ...]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    for name, count in counts[:_MAX_ROWS]:
        table.add_row(Text(single_line(name)), f"{count:,}")
    if len(counts) > _MAX_ROWS:
        rest = sum(count for _, count in counts[_MAX_ROWS:])
        table.add_row(f"{len(counts) - _MAX_ROWS} more", f"{rest:,}")
    return table


def _print_import(imported: ImportedWeb) -> None:
    store_link_count(imported.folder)
    echo(
        f"{imported.folder}: {imported.responses:,} responses; skipped: "
        f"{imported.skipped:,} without a page, {imported.damaged:,} damaged, "
        f"{imported.duplicates:,} repeated; {imported.unknown_labels:,} labels of unknown URLs"
    )


def serve_web(
    folder: Path,
    host: str,
    port: int,
    faults: tuple[str, ...],
    seed: int,
    access_log: Path | None,
    living: ChangingWeb | None = None,
) -> None:
    """Serve a recorded web until Ctrl-C; with ``living`` its pages change."""
    clocks: list[ReplayClock] = []

    def ready(port: int) -> None:
        options = [f"FOCUSED_REPLAY={host}:{port}", *(f"FOCUSED_CLOCK={each}" for each in clocks)]
        settings = "".join(f" -s {option}" for option in options)
        echo(f"serving {folder} on {host}:{port}; crawl it with: focused crawl FILE{settings}")

    serve_forever(
        folder,
        host=host,
        port=port,
        faults=FaultPlan(tuple(map(parse_fault, faults)), seed),
        access_log=access_log,
        living=living,
        on_clock=clocks.append,
        on_ready=ready,
    )
