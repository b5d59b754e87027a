"""``focused report``, ``why``, ``history`` and ``changes``: what a crawl did."""

from __future__ import annotations

import importlib
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.filesize import decimal

from focused.archive.crawl_tables import read_settings
from focused.cli.common import ANY_PATH, FILE, FOLDER, crawl_folder, echo, parse_time, writing
from focused.durations import DAY_S, HOUR_S, WEEK_S, iso_time
from focused.errors import ConfigurationError
from focused.files import write_atomically
from focused.recorded_web import find_recorded_webs
from focused.reports.formatting import print_line, single_line, text_table
from focused.topic import DEFAULT_CRAWLS_FOLDER
from focused.topic.topic_file import load_topic

# The modules of reports need pandas, which the help of the commands does not.
if TYPE_CHECKING:
    from focused.reports.collection_changes import PageTimeline

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_folder_option = click.option(
    "--folder", type=FOLDER, help="The crawl's folder. Default: the only one under crawls/."
)


@click.command()
@click.argument("where", type=ANY_PATH, nargs=-1)
@click.option("--web", type=FOLDER, help="A recorded web whose labels score the harvest.")
@click.option(
    "--policies",
    help="With a topic file: compare its crawls by these orderings, such as focused,bfs.",
)
@click.option(
    "--out",
    type=FOLDER,
    help="One crawl: write report.json and harvest.png there.",
)
@click.option(
    "--plot",
    type=FILE,
    help="Several crawls: file of the plot. Default: NAME-comparison.png beside the first crawl.",
)
def report(
    where: tuple[Path, ...],
    web: Path | None,
    policies: str | None,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Print the report of a crawl, or compare several crawls.

    WHERE is a crawl's folder or a topic file. Without it the command reports the only crawl under
    crawls/, or lists them. The crawl may run or have been killed; nothing is written into its
    folder. Ratios of several crawls are relative to the breadth-first one, or to the last. See
    docs/reference/report.md.
    """
    folders = _crawl_folders(where, policies)
    first, is_one = folders[0], len(folders) == 1
    if is_one and plot is not None:
        raise ConfigurationError("--plot is for several crawls: give --out FOLDER for one")
    if not is_one and out is not None:
        raise ConfigurationError("--out is for one crawl: give --plot FILE for several")
    if not is_one or out is not None:  # a missing library is named before anything is printed
        importlib.import_module("focused.reports.crawl_plots")
    from focused.reports.report_output import print_comparison, print_report

    labels = None if web is None else find_recorded_webs().read_labels(web) or None
    if is_one:
        print_report(first, Console(), labels, out=out)
        return
    picture = plot or first.with_name(f"{first.name}-comparison.png")
    with writing(picture, "; --plot names another file"):
        print_comparison(folders, Console(), picture, labels)


@click.command()
@click.argument("url")
@_folder_option
def why(url: str, folder: Path | None) -> None:
    """Explain why a page was fetched.

    Prints the path from a seed with each link's anchor, score and features, the share of links with
    such a score that were on topic, and each page's classification. For a page that was found but
    not fetched: the links to it. URL may lack its scheme.
    """
    from focused.reports.why import explain_url, print_explanation

    folder = folder or _only_crawl(f"focused why {url} --folder {{}}")
    print_explanation(explain_url(folder, url), Console())


@click.command()
@click.argument("url")
@_folder_option
@click.option("--diff", is_flag=True, help="Print the difference between the last two versions.")
@click.option(
    "--versions",
    type=click.IntRange(min=1),
    nargs=2,
    metavar="OLDER NEWER",
    help="With --diff: compare the versions of these numbers.",
)
def history(url: str, folder: Path | None, diff: bool, versions: tuple[int, int] | None) -> None:
    """Print the history of a page of a continuous crawl.

    Prints when the page was first and last seen, each visit that brought a change, the change rate,
    and when the next visit and change are due. URL may lack its scheme. The crawl may run.
    """
    from focused.reports.collection_changes import diff_versions, read_timeline

    diff = diff or versions is not None
    folder = folder or _only_crawl(
        f"focused history {url} {'--diff ' if diff else ''}--folder {{}}"
    )
    timeline, console = read_timeline(folder, url), Console()
    if not diff:
        _print_timeline(timeline, console, time.time())
        return
    for line in diff_versions(folder, timeline, *versions or ()) or ["The texts are equal."]:
        print_line(console, single_line(line), _DIFF_STYLES.get(line[:1], ""))


@click.command()
@click.argument("where", type=ANY_PATH)
@click.option(
    "--since",
    default="1d",
    show_default=True,
    help="A date or time (2026-01-31, 2026-01-31T14:00; UTC unless it names an offset), or how "
    "long ago: a number with m, h, d or w, such as 90m.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "atom"]),
    default="jsonl",
    show_default=True,
    help="JSON Lines, or an Atom feed.",
)
@click.option("--relevant-only", is_flag=True, help="Only pages on topic.")
@click.option("--out", type=FILE, help="Replace this file atomically, instead of printing.")
def changes(where: Path, since: str, form: str, relevant_only: bool, out: Path | None) -> None:
    """List the new, changed, gone, moved and reappeared pages of a crawl.

    WHERE is a crawl's folder or a topic file; the crawl may run.
    """
    from focused.reports.collection_changes import read_changes, to_atom, to_json_line

    now = time.time()
    begin = parse_when(since, now)
    folder = crawl_folder(where)
    found = read_changes(folder, begin, relevant_only=relevant_only)
    if form == "atom":
        name = read_settings(folder).get("topic", {}).get("name") or folder.name
        content = to_atom(found, f"{name}{', relevant pages' if relevant_only else ''}", now)
    else:
        content = "".join(f"{to_json_line(change)}\n" for change in found).encode()
    if out is None:
        click.echo(content, nl=False)
        return
    with writing(out):
        write_atomically(out, content)


_MAX_LISTED = 20
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")
_UNITS_S = {"m": 60.0, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}


def _crawl_folders(where: tuple[Path, ...], policies: str | None) -> list[Path]:
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
    return folders or [_only_crawl("focused report {}")]


def _only_crawl(command: str) -> Path:
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


def _print_timeline(timeline: PageTimeline, console: Console, now: float) -> None:
    """Print a page's history: its state, its change rate, and each visit with a change."""
    print_line(console, single_line(timeline.url), "bold")
    for line in _state_lines(timeline, now):
        print_line(console, line)
    number = 0
    rows: list[tuple[str, ...]] = []
    for event in timeline.events:
        cells = (_format_time(event.at), event.result, "", "", "", "")
        if event.is_new_version:
            number += 1
            cells = (
                *cells[:2],
                str(number),
                "" if event.change is None else f"{event.change:.0%}",
                "" if event.relevance is None else f"{event.relevance:.2f}",
                decimal(event.bytes),
            )
        rows.append(cells)
    columns = ("time", "result", "version", "change", "relevance", "size")
    console.print(text_table("", columns, rows, left=columns[:2]))


def _state_lines(timeline: PageTimeline, now: float) -> Iterator[str]:
    total = sum(timeline.visits.values())
    counted = ", ".join(
        f"{count:,} {result}"
        for result, count in sorted(timeline.visits.items(), key=lambda each: -each[1])
    )
    if timeline.title:
        yield single_line(timeline.title)
    yield f"first seen {_format_time(timeline.first_seen)}"
    yield f"last seen {_format_time(timeline.last_seen)}"
    yield f"visited again {total:,} times: {counted}" if total else "not visited again yet"
    if timeline.gone_at is not None:
        yield f"gone since {_format_time(timeline.gone_at)}"
    if timeline.next_visit_at is not None:
        is_due_later = math.isfinite(timeline.next_visit_at)
        due = _format_time(timeline.next_visit_at) if is_due_later else "now: it is queued"
        yield f"next visit due {due}"
    next_change = timeline.next_change_at
    probability = timeline.change_probability(now)
    if timeline.change_rate:
        yield f"change rate: {describe_rate(timeline.change_rate)}"
    if next_change is not None and probability is not None:
        yield (
            f"next change expected {_format_time(next_change)}; changed since the last visit with "
            f"probability {probability:.0%}"
        )


def describe_rate(per_day: float) -> str:
    """Return how often a page changes; rates above one an hour are estimates without use."""
    if per_day > DAY_S / HOUR_S:
        return "more than once an hour"
    if per_day >= 1:
        return f"{per_day:.1f} a day"
    return f"a change every {1 / per_day:,.1f} days"


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
    return iso_time(at).replace("T", " ")
