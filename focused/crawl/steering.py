"""Steer a running crawl: commands of its operator, their results, and the commands that undo them.

Commands are plain data, so that another process can send them and each is logged. Editing the
frontier takes long if it is large: :func:`execute` is a generator that yields after each slice of
links, so that the crawl goes on in between. Changes of budget and delay last until the process
ends; the topic file has the lasting values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import msgspec

from focused.crawl.frontier_editor import AddResult
from focused.crawl.loop import Crawl
from focused.errors import ConfigurationError
from focused.frontier.inspection import find_links, links_matching
from focused.frontier.queued_link import QueuedLink

MIN_DELAY_S = 1.0
"""A running crawl's delay is not reduced below this, or the topic's own if that is shorter."""

MAX_BOOST_NATS = 20.0

_LINKS_PER_SLICE = 200
_MAX_URLS = 10_000


class _Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="action"):
    """Base of the commands; ``action`` names the kind."""


class AddSeeds(_Command, frozen=True, tag="add-seeds"):
    """Queue URLs before all other links."""

    urls: tuple[str, ...]


class DropLinks(_Command, frozen=True, tag="drop-links"):
    """Remove queued links without a fetch: of ``host``, matching the regular expression, or both.

    ``urls`` names single links instead.
    """

    host: str | None = None
    matching: str | None = None
    urls: tuple[str, ...] = ()


class MoveLinks(_Command, frozen=True, tag="move-links"):
    """Add ``by`` to the priorities of queued links, selected as for :class:`DropLinks`."""

    by: float
    host: str | None = None
    matching: str | None = None


class ChangeBudget(_Command, frozen=True, tag="change-budget"):
    """Replace the budget; None means no limit."""

    pages: int | None = None
    hours: float | None = None
    bytes: int | None = None


class ChangeDelay(_Command, frozen=True, tag="change-delay"):
    """Replace the delay between two requests to a host, in seconds."""

    delay_s: float


class Pause(_Command, frozen=True, tag="pause"):
    """Send no more requests; those in flight are settled."""


class Resume(_Command, frozen=True, tag="resume"):
    """End a pause."""


class Stop(_Command, frozen=True, tag="stop"):
    """End the crawl; the same command line continues it."""


Command = AddSeeds | DropLinks | MoveLinks | ChangeBudget | ChangeDelay | Pause | Resume | Stop


@dataclass(frozen=True, slots=True)
class SteeringResult:
    """What a command did, in words, and the command that undoes it, if there is one."""

    message: str
    undo: Command | None = None


def decode_command(raw: bytes | str) -> Command:
    """Decode a command from JSON; raises ConfigurationError."""
    try:
        command: Command = msgspec.json.decode(raw, type=Command)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise ConfigurationError(f"this is no command: {error}") from error
    return command


_T = TypeVar("_T")
Steps = Generator[None, None, SteeringResult]


def execute(crawl: Crawl, command: Command, now: Callable[[], float]) -> Steps:
    """Execute a command on a crawl; yield between slices of the work.

    Returns the result. ``now`` returns seconds since the epoch. Raises ConfigurationError for a
    command that cannot be executed, before anything changes; :class:`Pause`, :class:`Resume` and
    :class:`Stop` are the driver's.
    """
    match command:
        case AddSeeds():
            return (yield from _add_seeds(crawl, command, now))
        case DropLinks():
            return (yield from _drop(crawl, command, now))
        case MoveLinks():
            return (yield from _move(crawl, command, now))
        case ChangeBudget():
            return _change_budget(crawl, command)
        case ChangeDelay():
            return _change_delay(crawl, command)
        case _:
            raise ConfigurationError(f"{command} is executed by the driver of the crawl")


def _add_seeds(crawl: Crawl, command: AddSeeds, now: Callable[[], float]) -> Steps:
    if not 0 < len(command.urls) <= _MAX_URLS:
        raise ConfigurationError(f"name 1 to {_MAX_URLS:,} URLs")
    added, refused = [], Counter[str]()
    for urls in _slices(command.urls):
        for each in crawl.editor(now()).add(urls):
            if each.result is AddResult.ADDED:
                added.append(each.url)
            else:
                refused[f"{each.result} {each.details}".rstrip()] += 1
        yield
    message = f"added {format_link_count(len(added))}"
    for reason, count in refused.most_common():
        message += f"; {count:,} refused: {reason}"
    return SteeringResult(message, DropLinks(urls=tuple(added)) if added else None)


def _drop(crawl: Crawl, command: DropLinks, now: Callable[[], float]) -> Steps:
    pattern = _check_selection(crawl, command.host, command.matching, command.urls)
    dropped = 0
    for links in _slices(_selected(crawl, command.host, pattern, command.urls)):
        dropped += crawl.editor(now()).drop(links)
        yield
    return SteeringResult(f"dropped {format_link_count(dropped)}")


def _move(crawl: Crawl, command: MoveLinks, now: Callable[[], float]) -> Steps:
    pattern = _check_selection(crawl, command.host, command.matching, ())
    if not 0 < abs(command.by) <= MAX_BOOST_NATS:
        raise ConfigurationError(f"by: {command.by} is not within ±{MAX_BOOST_NATS:g}, or is 0")
    moved = 0
    for links in _slices(_selected(crawl, command.host, pattern)):
        moved += crawl.editor(now()).move(links, lambda priority: priority + command.by)
        yield
    undo = MoveLinks(-command.by, command.host, command.matching)
    return SteeringResult(f"moved {format_link_count(moved)} by {command.by:+g}", undo)


def _change_budget(crawl: Crawl, command: ChangeBudget) -> SteeringResult:
    for name in ("pages", "hours", "bytes"):
        value = getattr(command, name)
        if value is not None and not 0 < value < float("inf"):
            raise ConfigurationError(f"{name}: {value} is not above 0")
    before = crawl.stop_conditions.budget
    crawl.stop_conditions.budget = replace(
        before, pages=command.pages, hours=command.hours, bytes=command.bytes
    )
    limits = (
        f"{value:,} {name}"
        for name in ("pages", "hours", "bytes")
        if (value := getattr(command, name)) is not None
    )
    return SteeringResult(
        f"the budget is {' or '.join(limits) or 'unlimited'}",
        ChangeBudget(before.pages, before.hours, before.bytes),
    )


def _change_delay(crawl: Crawl, command: ChangeDelay) -> SteeringResult:
    least_s = min(MIN_DELAY_S, crawl.topic.politeness.delay_s)
    if not least_s <= command.delay_s < float("inf"):
        raise ConfigurationError(
            f"delay_s: {command.delay_s:g} is below {least_s:g}; a topic file may set less"
        )
    before_s = crawl.hosts.policy.delay_s
    crawl.hosts.policy.change_delay(command.delay_s)
    return SteeringResult(
        f"the delay is {command.delay_s:g} s from each host's next response on",
        ChangeDelay(before_s),
    )


def _check_selection(
    crawl: Crawl, host: str | None, matching: str | None, urls: Sequence[str]
) -> re.Pattern[str] | None:
    """Return the compiled pattern; raises ConfigurationError for a selection of nothing or all."""
    if (host is not None or matching is not None) == bool(urls):
        raise ConfigurationError("select links by a host, by a pattern, or both")
    if host is not None and crawl.frontier.hosts.known(host) is None:
        raise ConfigurationError(f"the crawl does not know a host {host!r}")
    try:
        return None if matching is None else re.compile(matching)
    except re.error as error:
        raise ConfigurationError(f"{matching!r} is not a regular expression: {error}") from error


def _selected(
    crawl: Crawl,
    host: str | None,
    pattern: re.Pattern[str] | None,
    urls: Sequence[str] = (),
) -> Iterator[QueuedLink]:
    frontier = crawl.frontier
    if urls:
        return (link for _, link in find_links(frontier, urls) if link is not None)
    hosts = list(frontier.hosts) if host is None else [frontier.hosts.known(host)]
    return links_matching(frontier, [each for each in hosts if each is not None], pattern)


def _slices(items: Iterator[_T] | Sequence[_T]) -> Iterator[list[_T]]:
    remaining = iter(items)
    while part := list(islice(remaining, _LINKS_PER_SLICE)):
        yield part


def format_link_count(count: int) -> str:
    """Return a number of links in words."""
    return f"{count:,} link{'' if count == 1 else 's'}"
