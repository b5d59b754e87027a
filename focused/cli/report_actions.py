"""What ``focused report``, ``why``, ``history`` and ``changes`` do."""

from __future__ import annotations

import importlib
import math
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from focused.archive.crawl_tables import read_settings
from focused.cli.common import echo, parse_time, writing
from focused.durations import DAY_S, HOUR_S, WEEK_S
from focused.errors import ConfigurationError
from focused.files import write_atomically
from focused.recorded_web.recorded_web import LABELS_FILE, read_web_labels
from focused.reports.collection_changes import read_changes, to_atom, to_json_line
from focused.reports.crawl_report import CategoryLabels
from focused.reports.formatting import format_bytes, single_line
from focused.reports.page_versions import (
    PageTimeline,
    diff_versions,
    export_changes,
    read_timeline,
)
from focused.reports.report_output import print_comparison, print_report
from focused.reports.why import explain_url, print_explanation
from focused.topic import DEFAULT_CRAWLS_FOLDER
from focused.topic.topic_file import load_topic

_MAX_LISTED = 20
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")
_UNITS_S = {"m": 60.0, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def crawl_folders_of(where: tuple[Path, ...], policies: str | None) -> list[Path]:
    """Return the crawls' folders: given folders, and those of topic files by policy.

    Without arguments, the only crawl under ``crawls/``.
    """
    names = [name.strip() for name in (policies or "focused").split(",") if name.strip()]
    topics = [path for path in where if path.is_file()]
    if policies is not None and not topics:
        raise ConfigurationError("--policies goes with a topic file: name one before it")
    folders: list[Path] = []
    for path in where:
        if path in topics:
            topic = load_topic(path)
            folders += [topic.crawl_folder(name) for name in names]
        else:
            folders.append(path)
    return folders or [only_crawl("focused report {}")]


def show_report(
    folder: Path, web: Path | None, out: Path | None, plot: Path | None, graph: Path | None
) -> None:
    """Print one crawl's report; write its JSON and pictures to ``out``, if given."""
    if plot is not None:
        raise ConfigurationError("--plot is for several crawls: give --out FOLDER for one")
    if out is not None:  # a missing library is named before anything is printed
        importlib.import_module("focused.reports.crawl_plots")
    print_report(folder, Console(), _labels(web), out=out, graph=graph)


def show_comparison(
    folders: list[Path], web: Path | None, out: Path | None, plot: Path | None, graph: Path | None
) -> None:
    """Compare crawls; draw their curves to ``plot``, else beside the first crawl's folder."""
    if out is not None:
        raise ConfigurationError("--out is for one crawl: give --plot FILE for several")
    if graph is not None:
        raise ConfigurationError("--graph is for one crawl: leave it out")
    picture = plot or folders[0].with_name(f"{folders[0].name}-comparison.png")
    with writing(picture, "; --plot names another file"):
        print_comparison(folders, Console(), picture, _labels(web))


def show_why(url: str, folder: Path | None) -> None:
    """Print why ``url`` was fetched in the crawl of ``folder``, or in the only crawl."""
    folder = folder or only_crawl(f"focused why {url} --folder {{}}")
    print_explanation(explain_url(folder, url), Console())


def only_crawl(command: str) -> Path:
    """Return the only crawl under ``crawls/``; raises ConfigurationError for none or several.

    ``command`` is the command to suggest, with braces for the folder.
    """
    found = sorted(path for path in DEFAULT_CRAWLS_FOLDER.glob("*") if _is_crawl(path))
    if not found:
        raise ConfigurationError(
            f"there is no crawl under {DEFAULT_CRAWLS_FOLDER}/ here; name its folder: "
            f"{command.format('FOLDER')}"
        )
    if len(found) > 1:
        listed = "".join(f"\n  {path}" for path in found[:_MAX_LISTED])
        more = f"\n  and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
        raise ConfigurationError(
            f"there are several crawls here; name one, as in {command.format(found[0])}"
            f"{listed}{more}"
        )
    echo(f"focused: reporting the crawl in {found[0]}", err=True)
    return found[0]


def _is_crawl(folder: Path) -> bool:
    return (folder / "pages.parquet").is_file() or (folder / "state" / "data.mdb").is_file()


def _labels(web: Path | None) -> CategoryLabels | None:
    return None if web is None else read_web_labels(web / LABELS_FILE) or None


def show_history(url: str, folder: Path | None) -> None:
    """Print the history of a page."""
    folder = folder or only_crawl(f"focused history {url} --folder {{}}")
    print_timeline(read_timeline(folder, url), Console(), time.time())


def show_diff(url: str, folder: Path | None, versions: tuple[int, int] | None) -> None:
    """Print the difference between two versions of a page, by default the last two."""
    folder = folder or only_crawl(f"focused history {url} --diff --folder {{}}")
    timeline = read_timeline(folder, url)
    older, newer = versions or (None, None)
    lines = diff_versions(folder, timeline, older, newer)
    console = Console()
    for line in lines or ["The texts are equal."]:
        console.print(Text(single_line(line)), style=_DIFF_STYLES.get(line[:1]), soft_wrap=True)


def export_history(folder: Path | None, out: Path) -> None:
    """Write the observed changes of a crawl as change histories."""
    folder = folder or only_crawl(f"focused history --export {out} --folder {{}}")
    with writing(out):
        files = export_changes(folder, out)
    echo(f"focused: wrote {len(files):,} change histories to {out}", err=True)


def print_timeline(timeline: PageTimeline, console: Console, now: float) -> None:
    """Print a page's history: its state, its change rate, and each visit with a change."""
    console.print(Text(single_line(timeline.url)), style="bold", soft_wrap=True)
    if timeline.title:
        console.print(Text(single_line(timeline.title)), soft_wrap=True)
    for line in _state_lines(timeline, now):
        console.print(Text(line), soft_wrap=True)
    table = Table()
    for name in ("time", "result"):
        table.add_column(name)
    for name in ("version", "change", "relevance", "size"):
        table.add_column(name, justify="right")
    for event in timeline.events:
        version = event.version
        if version is None:
            table.add_row(_format_time(event.at), event.result, "", "", "", "")
            continue
        table.add_row(
            _format_time(event.at),
            event.result,
            str(version.number),
            "" if version.change is None else f"{version.change:.0%}",
            "" if version.relevance is None else f"{version.relevance:.2f}",
            format_bytes(version.bytes),
        )
    console.print(table)


def _state_lines(timeline: PageTimeline, now: float) -> list[str]:
    total = sum(timeline.visits.values())
    counted = ", ".join(
        f"{count:,} {result}"
        for result, count in sorted(timeline.visits.items(), key=lambda each: -each[1])
    )
    lines = [
        f"first seen {_format_time(timeline.first_seen)}",
        f"last seen {_format_time(timeline.last_seen)}",
        f"visited again {total:,} times: {counted}" if total else "not visited again yet",
    ]
    if timeline.gone_at is not None:
        lines.append(f"gone since {_format_time(timeline.gone_at)}")
    if timeline.next_visit_at is not None:
        is_due_later = math.isfinite(timeline.next_visit_at)
        due = _format_time(timeline.next_visit_at) if is_due_later else "now: it is queued"
        lines.append(f"next visit due {due}")
    next_change = timeline.next_change_at
    probability = timeline.change_probability(now)
    if timeline.change_rate:
        lines.append(f"change rate: {describe_rate(timeline.change_rate)}")
    if next_change is not None and probability is not None:
        lines.append(
            f"next change expected {_format_time(next_change)}; changed since the last visit with "
            f"probability {probability:.0%}"
        )
    return lines


def describe_rate(per_day: float) -> str:
    """Return how often a page changes; rates above one an hour are estimates without use."""
    if per_day > DAY_S / HOUR_S:
        return "more than once an hour"
    if per_day >= 1:
        return f"{per_day:.1f} a day"
    return f"a change every {1 / per_day:,.1f} days"


def list_changes(
    where: Path, since: str, form: str, *, relevant_only: bool, out: Path | None
) -> None:
    """Print the changes of a crawl since a time, or write them to ``out``."""
    now = time.time()
    begin = parse_when(since, now)
    (folder,) = crawl_folders_of((where,), None)
    changes = read_changes(folder, begin, relevant_only=relevant_only)
    if form == "atom":
        content = to_atom(changes, _feed_name(folder, relevant_only=relevant_only), now)
    else:
        content = "".join(f"{to_json_line(change)}\n" for change in changes).encode()
    if out is None:
        click.echo(content, nl=False)
        return
    with writing(out):
        write_atomically(out, content)


def _feed_name(folder: Path, *, relevant_only: bool) -> str:
    topic = read_settings(folder).get("topic")
    named = topic.get("name") if isinstance(topic, dict) else None
    return f"{named or folder.name}{', relevant pages' if relevant_only else ''}"


def parse_when(text: str, now: float) -> float:
    """Return the time that a date or a duration before ``now`` means.

    Raises ConfigurationError for another text.
    """
    duration = _DURATION.fullmatch(text.strip())
    if duration is not None:
        return now - float(duration[1]) * _UNITS_S[duration[2]]
    try:
        return parse_time(text)
    except ValueError:
        raise ConfigurationError(
            f"--since {text}: is neither a date in ISO 8601, such as 2026-01-31, nor a duration, "
            "such as 7d"
        ) from None


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
