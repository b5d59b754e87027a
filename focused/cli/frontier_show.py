"""``focused frontier show``: what waits, for people and for machines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from focused.cli.frontier_folder import Opened, viewed
from focused.cli.output import echo
from focused.evaluation.wording import duration, plain
from focused.frontier.inspection import (
    LinkSeen,
    Totals,
    backing_off,
    best_links,
    best_links_of_all,
    host_seen,
    totals,
    under_way,
    worthiest_hosts,
)

_MAX_ANCHOR_CHARS = 100
_COLUMNS = (
    f"{'queued':>9} {'worth':>8} {'best':>8} {'score':>6} {'fetched':>8} {'asked':>8} "
    f"{'failures':>8} {'aside':>6}  {'due':<14} {'crawl-delay':<12} host"
)


def show_frontier(
    folder: Path, hosts: int, host: str | None, links: int, best: int | None, *, as_json: bool
) -> None:
    """Print what waits in the crawl of ``folder``."""
    now = time.time()
    with viewed(folder) as (crawl, late):
        whole = totals(crawl.frontier, now)
        tables = _tables(crawl, hosts, host, now)
        asked = under_way(crawl.frontier, hosts, now)
        shown = _links(crawl, host, links, best)
    if as_json:
        document = {
            "now": now,
            "late": late,
            "totals": asdict(whole),
            **{title.replace(" ", "_"): rows for title, rows in tables.items()},
            "under_way": list(map(asdict, asked)),
        }
        if shown is not None:
            document["links"] = list(map(asdict, shown))
        echo(json.dumps(document, indent=1))
        return
    if late:
        echo("a crawl runs here, so this is as it was seconds ago")
    for line in _headline(whole):
        echo(line)
    for title, rows in tables.items():
        if rows:
            _print_hosts(title, rows)
    if asked and host is None:
        echo("\nhosts being asked" if late else "\nhosts that were being asked when it ended")
        for each in asked:
            echo(f"  {plain(each.name)}, asked {duration(each.for_s)} ago")
    if shown:
        _print_links(shown)


def _tables(
    crawl: Opened, most: int, host: str | None, now: float
) -> dict[str, list[dict[str, Any]]]:
    """The hosts to show, by title; each with the trouble that it was given up for, or None."""
    frontier = crawl.frontier
    if host is not None:
        tables = {"hosts": [host_seen(frontier, crawl.host(host), now)]}
    else:
        tables = {
            "hosts": worthiest_hosts(frontier, most, now),
            "hosts backing off": backing_off(frontier, most, now),
        }
    return {
        title: [{**asdict(row), "given_up": crawl.given_up.why(row.name)} for row in rows]
        for title, rows in tables.items()
    }


def _links(
    crawl: Opened, host: str | None, most: int, best: int | None
) -> Sequence[LinkSeen] | None:
    if host is not None:
        return best_links(crawl.frontier, crawl.host(host), most)
    return None if best is None else best_links_of_all(crawl.frontier, best)


def _headline(whole: Totals) -> Iterator[str]:
    if not whole.links:
        yield f"no links are queued; {whole.hosts:,} hosts were met"
        return
    yield f"{whole.links:,} links are queued on {whole.with_links:,} of {whole.hosts:,} hosts"
    said = f"{whole.due:,} of those may be asked now, {whole.backing_off:,} back off"
    if whole.full:
        said += f", {whole.full:,} have spent their budget"
    if whole.next_due_in_s is not None:
        said += f"; the next is due in {duration(whole.next_due_in_s)}"
    yield said


def _print_hosts(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    echo(f"\n{title}\n{_COLUMNS}")
    for row in rows:
        delay = duration(row["crawl_delay_s"]) if row["crawl_delay_s"] else "-"
        address = f" at {row['address']}" if row["address"] else ""
        echo(
            f"{row['queued']:>9,} {_number(row['worth'], 8)} {_number(row['best'], 8)} "
            f"{_number(row['score'], 6)} {row['fetched']:>8,} {row['asked']:>8,} "
            f"{row['failures']:>8,} {row['times_aside']:>6,}  {_due(row):<14} {delay:<12} "
            f"{plain(row['name'])}{address}"
        )


def _due(row: Mapping[str, Any]) -> str:
    if row["given_up"]:
        return f"never: {row['given_up']}"
    if row["full"]:
        return "budget spent"
    return f"in {duration(row['due_in_s'])}" if row["due_in_s"] else "now"


def _print_links(links: Sequence[LinkSeen]) -> None:
    echo(f"\nlinks, best first\n{'score':>6} {'priority':>8} {'depth':>6} {'tries':>6} URL")
    for link in links:
        echo(
            f"{_number(link.score, 6)} {_number(link.priority, 8)} {link.depth:>6} "
            f"{link.tries:>6} {plain(link.url)}"
        )
        if link.parent is not None:
            anchor = plain(link.anchor, _MAX_ANCHOR_CHARS)
            echo(f'{"":>30}"{anchor}" on {plain(link.parent)}')


def _number(value: float | None, width: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.2f}"
