"""``focused frontier add``, ``drop``, ``move``, ``export``, ``import``: what changed is told."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from focused.cli.frontier_folder import Opened, opened
from focused.cli.output import echo
from focused.crawl.tending import Fate, Tending
from focused.errors import ConfigurationError
from focused.evaluation.wording import plain
from focused.frontier.queued import QueuedLink
from focused.frontier.selection import links_matching, links_named
from focused.frontier.transfer import BadRow, export_links, read_links
from focused.topic_file import url_of_line

_MOST_TOLD = 20
_MAX_PROBLEM_CHARS = 300


class _Complaints:
    """What could not be done, on standard error: the first of many, and how many."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, what: str) -> None:
        self.count += 1
        if self.count <= _MOST_TOLD:
            echo(f"focused: {what}", err=True)

    def status(self) -> int:
        """The exit status: 1 when there was something."""
        if self.count > _MOST_TOLD:
            echo(f"focused: and {self.count - _MOST_TOLD:,} more", err=True)
        return int(self.count > 0)


def add_urls(
    folder: Path, urls: tuple[str, ...], file: Path | None, score: float | None, *, again: bool
) -> int:
    """Queue URLs; return the exit status: 1 when some were not queued."""
    if not urls and file is None:
        raise ConfigurationError("name URLs, or a --file of them")
    complaints, added = _Complaints(), 0
    with opened(folder) as crawl:
        _tell_if_scope_is_unknown(crawl, folder)
        wanted = chain(urls, () if file is None else _urls_in(file))
        for each in _tending(crawl, time.time()).add(wanted, score=score, again=again):
            if each.fate is Fate.ADDED:
                added += 1
                continue
            said = f"{plain(each.url)}: {each.fate} {each.particulars}".rstrip()
            may_be_again = each.fate in (Fate.SETTLED, Fate.GIVEN_UP)
            complaints.tell(f"{said}; --again queues it" if may_be_again else said)
    echo(f"added {_links(added)}")
    return complaints.status()


def drop_links(folder: Path, urls: tuple[str, ...], host: str | None, matching: str | None) -> int:
    """Take links out of the queue; return the exit status: 1 when a URL did not wait."""
    complaints = _Complaints()
    _check_choice(urls, host, matching)
    with opened(folder) as crawl:
        chosen = _chosen(crawl, urls, host, matching, complaints)
        dropped = _tending(crawl, time.time()).drop(chosen)
        left = len(crawl.frontier)
    echo(f"dropped {_links(dropped)}; {left:,} are left")
    return complaints.status()


def move_links(
    folder: Path,
    urls: tuple[str, ...],
    host: str | None,
    matching: str | None,
    *,
    to: float | None,
    by: float | None,
) -> int:
    """Move queued links; return the exit status: 1 when a URL did not wait."""
    if (to is None) == (by is None):
        raise ConfigurationError("give either --to SCORE or --by DELTA")
    complaints = _Complaints()
    _check_choice(urls, host, matching)
    with opened(folder) as crawl:
        tending = _tending(crawl, time.time())
        shift = by or 0.0
        place = None if to is None else tending.priority(to)
        chosen = _chosen(crawl, urls, host, matching, complaints)
        moved = tending.move(chosen, lambda old: old + shift if place is None else place)
    echo(f"moved {_links(moved)}")
    return complaints.status()


def export_frontier(folder: Path, file: Path) -> None:
    """Write all queued links to a file."""
    with opened(folder) as crawl:
        written = export_links(_all_links(crawl), file)
    echo(f"{file}: {_links(written)}")


def import_frontier(folder: Path, file: Path) -> int:
    """Queue a file's links; return the exit status: 1 when rows were bad or refused."""
    complaints, now = _Complaints(), time.time()

    def told(row: BadRow) -> None:
        complaints.tell(f"{file}, {row.where}: {plain(row.problem, _MAX_PROBLEM_CHARS)}")

    with opened(folder) as crawl:
        _tell_if_scope_is_unknown(crawl, folder)
        rows = read_links(file, crawl.order.priority, now)
        done = _tending(crawl, now).take_in(rows, told)
    echo(
        f"added {_links(done.added)}; {done.known:,} were known, "
        f"{done.refused.total():,} refused, {done.bad:,} no links"
    )
    for reason, count in done.refused.most_common():
        echo(f"focused: {count:,} refused: {reason}", err=True)
    return max(complaints.status(), int(done.refused.total() > 0))


def _tending(crawl: Opened, now: float) -> Tending:
    return Tending(crawl.frontier, crawl.order, crawl.scope, crawl.given_up, crawl.keep, now)


def _tell_if_scope_is_unknown(crawl: Opened, folder: Path) -> None:
    if crawl.scope is None:
        echo(
            f"focused: {folder}: there is no settings.json: nothing is held against the "
            "topic's scope",
            err=True,
        )


def _check_choice(urls: tuple[str, ...], host: str | None, matching: str | None) -> None:
    chosen = host is not None or matching is not None
    if chosen == bool(urls):
        raise ConfigurationError("name URLs, or choose links by --host, --matching or both")


def _chosen(
    crawl: Opened,
    urls: tuple[str, ...],
    host: str | None,
    matching: str | None,
    complaints: _Complaints,
) -> Iterator[QueuedLink]:
    """The queued links that the options choose; URLs that do not wait are complained of."""
    if not urls:
        hosts = list(crawl.frontier.hosts) if host is None else [crawl.host(host)]
        return links_matching(crawl.frontier, hosts, _pattern(matching))
    return _named(crawl, urls, complaints)


def _named(crawl: Opened, urls: tuple[str, ...], complaints: _Complaints) -> Iterator[QueuedLink]:
    for url, link in links_named(crawl.frontier, urls):
        if link is None:
            complaints.tell(f"{plain(url)}: is not queued")
        else:
            yield link


def _all_links(crawl: Opened) -> Iterator[QueuedLink]:
    for host in crawl.frontier.hosts:
        if host.best is not None:
            yield from crawl.frontier.waiting(host)


def _pattern(matching: str | None) -> re.Pattern[str] | None:
    try:
        return None if matching is None else re.compile(matching)
    except re.error as error:
        raise ConfigurationError(
            f"--matching: {matching!r} is no regular expression: {error}"
        ) from error


def _urls_in(file: Path) -> Iterator[str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read as UTF-8 text: {error}") from error
    return filter(None, map(url_of_line, lines))


def _links(count: int) -> str:
    return f"{count:,} link" + ("" if count == 1 else "s")
