"""``focused frontier``: show and edit a crawl's frontier."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import click

from focused.archive.crawl_tables import read_scope
from focused.cli.common import (
    FILE,
    FOLDER,
    Converted,
    Finite,
    Problems,
    add_options,
    echo,
    finite,
    read_url_file,
)
from focused.crawl.frontier_editor import AddResult, FrontierEditor, load_frontier
from focused.crawl.hosts.failures import DeadHosts
from focused.crawl.policy import LinkOrder
from focused.crawl.steering import format_link_count
from focused.errors import ConfigurationError
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.host import Host
from focused.frontier.import_export import export_links, read_links
from focused.frontier.inspection import (
    FrontierTotals,
    count_totals,
    find_links,
    hosts_backing_off,
    hosts_in_flight,
    link_to_json,
    links_matching,
    summarise_host,
    top_hosts,
    top_links,
    top_links_overall,
)
from focused.frontier.queued_link import InvalidRow, QueuedLink
from focused.reports.formatting import format_duration, single_line
from focused.storage.state_store import StateStore
from focused.topic import Scope


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error


_COUNT = click.IntRange(min=1)
_PROBABILITY = Finite(0.0, 1.0)
_REGEX = Converted("REGEX", _compile)


class _ShowByDefault(click.Group):
    """``focused frontier FOLDER`` is short for ``focused frontier show FOLDER``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = not args or args[0] in self.commands or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if own else ["show", *args])


@click.group(cls=_ShowByDefault)
def frontier() -> None:
    """Inspect and edit the frontier in a crawl's FOLDER.

    focused frontier FOLDER is short for focused frontier show FOLDER. To edit, stop the crawl;
    its next start uses the edited frontier.
    """


@frontier.command()
@click.argument("folder", type=FOLDER)
@click.option(
    "--hosts", type=_COUNT, default=20, show_default=True, help="Maximum number of hosts."
)
@click.option("--host", help="Show one host and its best links.")
@click.option(
    "--links",
    type=_COUNT,
    default=10,
    show_default=True,
    help="Maximum number of links with --host.",
)
@click.option("--best", type=_COUNT, metavar="N", help="Also show the N best links of all hosts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    folder: Path, hosts: int, host: str | None, links: int, best: int | None, as_json: bool
) -> None:
    """Show queued links, hosts and due times.

    focused frontier FOLDER is short for it. The crawl may run. See docs/how-to/frontier.md.
    """
    now = time.time()
    shown: Sequence[QueuedLink] | None = None
    with view_frontier(folder) as (crawl, late):
        frontier = crawl.frontier
        whole = count_totals(frontier, now)
        requests = hosts_in_flight(frontier, hosts, now)
        if host is not None:
            chosen = crawl.host(host)
            summaries = {"hosts": [summarise_host(frontier, chosen, now)]}
            shown = top_links(frontier, chosen, links)
        else:
            resting = hosts_backing_off(frontier, hosts, now)
            summaries = {"hosts": top_hosts(frontier, hosts, now), "hosts backing off": resting}
            shown = None if best is None else top_links_overall(frontier, best)
        tables = {
            # Each host with the failure that made it dead, or None.
            title: [{**asdict(row), "dead": crawl.dead_hosts.why(row.name)} for row in rows]
            for title, rows in summaries.items()
        }
    if as_json:
        document = {
            "now": now,
            "late": late,
            "totals": asdict(whole),
            **{title.replace(" ", "_"): rows for title, rows in tables.items()},
            "in_flight": [{"name": name, "for_s": for_s} for name, for_s in requests],
        }
        if shown is not None:
            document["links"] = list(map(link_to_json, shown))
        echo(json.dumps(document, indent=1))
        return
    if late:
        echo("a crawl is running: this snapshot is some seconds old")
    for line in _summary_lines(whole):
        echo(line)
    for title, rows in tables.items():
        if rows:
            _print_hosts(title, rows)
    if requests and host is None:
        echo("\nhosts with a request" if late else "\nhosts with a request when the crawl ended")
        for name, for_s in requests:
            echo(f"  {single_line(name)}, sent {format_duration(for_s)} ago")
    if shown:
        _print_links(shown)


@frontier.command()
@click.argument("folder", type=FOLDER)
@click.argument("urls", nargs=-1)
@click.option("--file", type=FILE, help="A file of URLs, one per line; # starts a comment.")
@click.option(
    "--score",
    type=_PROBABILITY,
    help="Queue the URLs at the position of this score. Default: before all others.",
)
@click.option(
    "--again", is_flag=True, help="Also queue URLs that were fetched, failed or dropped before."
)
def add(
    folder: Path, urls: tuple[str, ...], file: Path | None, score: float | None, again: bool
) -> None:
    """Queue URLs in a stopped crawl.

    The topic's scope applies; the command prints each refused URL and the reason.
    """
    if not urls and file is None:
        raise ConfigurationError("name URLs, or a --file of them")
    problems, added = Problems(), 0
    with open_frontier(folder) as crawl:
        _warn_if_scope_unknown(crawl, folder)
        wanted = chain(urls, () if file is None else read_url_file(file, f"{file}"))
        for each in crawl.editor(time.time()).add(wanted, score=score, again=again):
            if each.result is AddResult.ADDED:
                added += 1
                continue
            line = f"{single_line(each.url)}: {each.result} {each.details}".rstrip()
            may_be_again = each.result in (AddResult.ALREADY_SETTLED, AddResult.DEAD_HOST)
            problems.report(f"{line}; --again queues it" if may_be_again else line)
    echo(f"added {format_link_count(added)}")
    sys.exit(problems.status())


_selection_options = add_options(
    click.argument("folder", type=FOLDER),
    click.argument("urls", nargs=-1),
    click.option("--host", help="Select links of this host."),
    click.option("--matching", type=_REGEX, help="Select links whose URL matches."),
)
"""The arguments of :func:`_selected_links`, and the folder."""


@frontier.command()
@_selection_options
def drop(folder: Path, **selection: Any) -> None:
    """Remove links from the queue of a stopped crawl without fetching them; they stay seen.

    Give URLs, or select by --host, --matching or both.
    """
    problems = Problems()
    with open_frontier(folder) as crawl:
        chosen = _selected_links(crawl, problems, **selection)
        dropped = crawl.editor(time.time()).drop(chosen)
        left = len(crawl.frontier)
    echo(f"dropped {format_link_count(dropped)}; {left:,} are left")
    sys.exit(problems.status())


@frontier.command()
@_selection_options
@click.option("--to", type=_PROBABILITY, help="Move to the position of this score.")
@click.option("--by", type=finite, metavar="FLOAT", help="Add to the priority.")
def move(folder: Path, to: float | None, by: float | None, **selection: Any) -> None:
    """Change the priority of queued links of a stopped crawl.

    Give URLs, or select by --host, --matching or both, and --to or --by. See
    docs/how-to/frontier.md#moving.
    """
    if (to is None) == (by is None):
        raise ConfigurationError("give either --to SCORE or --by DELTA")
    problems = Problems()
    with open_frontier(folder) as crawl:
        editor = crawl.editor(time.time())
        shift = by or 0.0
        priority = None if to is None else editor.priority(to)
        chosen = _selected_links(crawl, problems, **selection)
        moved = editor.move(chosen, lambda old: old + shift if priority is None else priority)
    echo(f"moved {format_link_count(moved)}")
    sys.exit(problems.status())


@frontier.command("export")
@click.argument("folder", type=FOLDER)
@click.argument("file", type=FILE)
def export_(folder: Path, file: Path) -> None:
    """Write all queued links of a stopped crawl to FILE, a .parquet file."""
    with open_frontier(folder) as crawl:
        written = export_links(_all_links(crawl), file)
    echo(f"{file}: {format_link_count(written)}")


@frontier.command("import")
@click.argument("folder", type=FOLDER)
@click.argument("file", type=FILE)
def import_(folder: Path, file: Path) -> None:
    """Queue links of FILE, a .parquet file, that a stopped crawl has not seen.

    See docs/how-to/frontier.md#carrying-links for the columns.
    """
    problems, now = Problems(), time.time()

    def report_bad_row(row: InvalidRow) -> None:
        problems.report(f"{file}, {row.where}: {single_line(row.problem, _MAX_PROBLEM_CHARS)}")

    with open_frontier(folder) as crawl:
        _warn_if_scope_unknown(crawl, folder)
        rows = read_links(file, crawl.order.priority, now)
        done = crawl.editor(now).import_links(rows, report_bad_row)
    echo(
        f"added {format_link_count(done.added)}; {done.known:,} were known, "
        f"{done.refused.total():,} refused, {done.bad:,} no links"
    )
    for reason, count in done.refused.most_common():
        echo(f"focused: {count:,} refused: {reason}", err=True)
    sys.exit(max(problems.status(), int(done.refused.total() > 0)))


@dataclass(frozen=True, slots=True)
class OpenFrontier:
    """A crawl's frontier; ``scope`` is None if the crawl has no settings.json."""

    frontier: DiskFrontier
    store: StateStore
    order: LinkOrder
    scope: Scope | None
    dead_hosts: DeadHosts

    def host(self, name: str) -> Host:
        """Return the host of that name; raises ConfigurationError for an unknown one."""
        host = self.frontier.hosts.known(name.lower())
        if host is None:
            raise ConfigurationError(
                f"the crawl does not know a host {name!r}; a host's name includes its port "
                "unless it is the scheme's default"
            )
        return host

    def editor(self, now: float) -> FrontierEditor:
        """Return the editor of the frontier, which commits its changes."""

        def commit() -> None:
            self.frontier.save()
            self.store.commit()

        return FrontierEditor(self.frontier, self.order, self.scope, self.dead_hosts, commit, now)


@contextmanager
def open_frontier(folder: Path) -> Iterator[OpenFrontier]:
    """Open the frontier of the stopped crawl in ``folder`` for changes.

    An exception in the block discards changes that were not committed. Raises StateError if there
    is none, or it is damaged or in use.
    """
    store = StateStore.reopen(folder / "state")
    try:
        yield _load_frontier(store, folder)
    except BaseException:
        store.abandon()
        raise
    store.close()


@contextmanager
def view_frontier(folder: Path) -> Iterator[tuple[OpenFrontier, bool]]:
    """Open a snapshot of the frontier of the crawl in ``folder``.

    Yields True with it if a crawl is running there and the snapshot is some seconds old. Raises
    StateError if there is none, or it is damaged.
    """
    with StateStore.open_for_reading(folder / "state") as (store, late):
        yield _load_frontier(store, folder), late


def _load_frontier(store: StateStore, folder: Path) -> OpenFrontier:
    scope = read_scope(folder)
    frontier, order = load_frontier(store.tables, scope)
    return OpenFrontier(frontier, store, order, scope, DeadHosts(store.tables))


_MAX_ANCHOR_CHARS = 100
_COLUMNS = (
    f"{'queued':>9} {'worth':>8} {'best':>8} {'score':>6} {'fetched':>8} {'asked':>8} "
    f"{'failures':>8} {'aside':>6}  {'due':<14} {'crawl-delay':<12} host"
)


def _summary_lines(whole: FrontierTotals) -> Iterator[str]:
    if not whole.links:
        yield f"no links are queued; {whole.hosts:,} hosts are known"
        return
    yield f"{whole.links:,} links are queued on {whole.with_links:,} of {whole.hosts:,} hosts"
    line = f"{whole.due:,} of those are due, {whole.backing_off:,} back off"
    if whole.full:
        line += f", {whole.full:,} have used their budget"
    if whole.next_due_in_s is not None:
        line += f"; the next is due in {format_duration(whole.next_due_in_s)}"
    yield line


def _print_hosts(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    echo(f"\n{title}\n{_COLUMNS}")
    for row in rows:
        delay = format_duration(row["crawl_delay_s"]) if row["crawl_delay_s"] else "-"
        address = f" at {row['address']}" if row["address"] else ""
        echo(
            f"{row['queued']:>9,} {_number(row['worth'], 8)} {_number(row['best'], 8)} "
            f"{_number(row['score'], 6)} {row['fetched']:>8,} {row['asked']:>8,} "
            f"{row['failures']:>8,} {row['suspensions']:>6,}  {_due(row):<14} {delay:<12} "
            f"{single_line(row['name'])}{address}"
        )


def _due(row: Mapping[str, Any]) -> str:
    if row["dead"]:
        return f"never: {row['dead']}"
    if row["full"]:
        return "budget spent"
    return f"in {format_duration(row['due_in_s'])}" if row["due_in_s"] else "now"


def _print_links(links: Sequence[QueuedLink]) -> None:
    echo(f"\nlinks, best first\n{'score':>6} {'priority':>8} {'depth':>6} {'tries':>6} URL")
    for link in links:
        echo(
            f"{_number(link.score, 6)} {_number(link.priority, 8)} {link.depth:>6} "
            f"{link.tries:>6} {single_line(link.url)}"
        )
        if link.parent is not None:
            anchor = single_line(link.anchor, _MAX_ANCHOR_CHARS)
            echo(f'{"":>30}"{anchor}" on {single_line(link.parent)}')


def _number(value: float | None, width: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.2f}"


_MAX_PROBLEM_CHARS = 300


def _warn_if_scope_unknown(crawl: OpenFrontier, folder: Path) -> None:
    if crawl.scope is None:
        echo(
            f"focused: {folder}: there is no settings.json; URLs are not checked against the "
            "topic's scope",
            err=True,
        )


def _selected_links(
    crawl: OpenFrontier,
    problems: Problems,
    *,
    urls: tuple[str, ...],
    host: str | None,
    matching: re.Pattern[str] | None,
) -> Iterator[QueuedLink]:
    """Return the selected queued links; report URLs that are not queued."""
    if bool(urls) == (host is not None or matching is not None):
        raise ConfigurationError("name URLs, or choose links by --host, --matching or both")
    if not urls:
        hosts = list(crawl.frontier.hosts) if host is None else [crawl.host(host)]
        return links_matching(crawl.frontier, hosts, matching)
    return _links_by_url(crawl, urls, problems)


def _links_by_url(
    crawl: OpenFrontier, urls: tuple[str, ...], problems: Problems
) -> Iterator[QueuedLink]:
    for url, link in find_links(crawl.frontier, urls):
        if link is None:
            problems.report(f"{single_line(url)}: is not queued")
        else:
            yield link


def _all_links(crawl: OpenFrontier) -> Iterator[QueuedLink]:
    for host in crawl.frontier.hosts:
        if host.best is not None:
            yield from crawl.frontier.waiting(host)
