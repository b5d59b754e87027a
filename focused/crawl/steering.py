"""Steer a running crawl: commands of its operator, their results, and the commands that undo them.

Commands are plain data, so that another process can send them and each is logged. Editing the
frontier takes long if it is large: :func:`execute` is a generator that yields after each slice of
links, so that the crawl goes on in between. Changes of budget and delay last until the process
ends; the topic file has the lasting values.

Other processes watch and steer by :class:`ControlFolder`, ``control/`` in the crawl's folder:

========================  ========================================================================
``commands/``             one JSON file per command that waits to be executed
``actions.jsonl``         the commands that were executed: when, by whom, and what they did
``status.json``           the crawl's live status, written each second while somebody watches
``watched``               its time of modification tells when somebody watched last
========================  ========================================================================

Files work wherever the crawl's folder can be written, need no port, and outlive a crash of either
side. Whoever may write into the crawl's folder may steer the crawl.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from focused.crawl import CONTROL_FOLDER
from focused.crawl.frontier_editor import AddResult
from focused.crawl.loop import Crawl
from focused.errors import ConfigurationError, StateError
from focused.files import write_atomically
from focused.frontier.inspection import find_links, links_matching
from focused.frontier.queued_link import QueuedLink

MIN_DELAY_S = 1.0
"""A running crawl's delay is not reduced below this, or the topic's own if that is shorter."""

MAX_BOOST_NATS = 20.0

_LINKS_PER_SLICE = 200
# RecursionError: for values that are nested too deeply.
_DECODE_ERRORS = (msgspec.DecodeError, msgspec.ValidationError, RecursionError)
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
    except _DECODE_ERRORS as error:
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


WATCH_S = 15.0
"""A crawl writes its status until so many seconds after somebody watched last."""

_MAX_COMMAND_BYTES = 1_000_000


class SentCommand(msgspec.Struct, frozen=True):
    """A command that waits; ``undoes`` is the id of the action that it undoes."""

    id: str
    sent_at: float
    by: str
    command: Command
    undoes: str | None = None


class Action(msgspec.Struct, frozen=True):
    """A command that was executed, refused or discarded.

    ``message`` says what it did, ``error`` why it did nothing; one of them is empty. ``undo`` is
    the command that undoes it, None if there is none.
    """

    id: str
    at: float
    by: str
    command: Command
    message: str = ""
    error: str = ""
    undo: Command | None = None
    undoes: str | None = None


class ControlFolder:
    """The control folder of the crawl in ``crawl_folder``; created when something is written."""

    def __init__(self, crawl_folder: Path) -> None:
        self._folder = crawl_folder / CONTROL_FOLDER
        self._commands = self._folder / "commands"
        self._status = self._folder / "status.json"
        self._watched = self._folder / "watched"
        self._actions = self._folder / "actions.jsonl"

    # The console's side.

    def send(self, command: Command, *, by: str, now: float, undoes: str | None = None) -> str:
        """Queue a command; return its id. Raises OSError."""
        # The time first, so that commands are executed in the order of sending.
        name = f"{now:017.6f}-{secrets.token_hex(4)}"
        sent = SentCommand(name, now, by, command, undoes)
        self._commands.mkdir(parents=True, exist_ok=True)
        write_atomically(self._commands / f"{name}.json", msgspec.json.encode(sent))
        return name

    def watch(self) -> None:
        """Ask the crawl to write its status for the next :data:`WATCH_S` seconds."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._watched.touch()

    def read_status(self) -> dict[str, Any] | None:
        """Return the last status; None without one."""
        try:
            status: dict[str, Any] = msgspec.json.decode(self._status.read_bytes(), type=dict)
        except (OSError, *_DECODE_ERRORS):
            return None
        return status

    def read_actions(self, at_most: int) -> list[Action]:
        """Return the last actions, oldest first; raises StateError."""
        try:
            lines = self._actions.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError(f"{self._actions}: {error.strerror}") from error
        actions = []
        for line in lines[-at_most:]:
            with suppress(*_DECODE_ERRORS):  # cut off by a crash
                actions.append(msgspec.json.decode(line, type=Action))
        return actions

    # The crawl's side.

    def is_watched(self, now_s: float) -> bool:
        """Whether somebody watched in the last :data:`WATCH_S` seconds, by the system's clock."""
        try:
            return now_s - self._watched.stat().st_mtime < WATCH_S
        except OSError:
            return False

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace the status. Raises OSError."""
        # Not synced to the disk: it is out of date within a second.
        part = self._status.with_name(".status.json.part")
        part.write_bytes(msgspec.json.encode(status))
        part.replace(self._status)

    def take(self) -> Iterator[SentCommand]:
        """Yield the waiting commands in the order of sending, each after its file was removed.

        A command is executed once at most: one that was taken is lost if the process dies. Files
        that are no commands are removed.
        """
        try:
            names = sorted(os.listdir(self._commands))
        except OSError:
            return
        for name in names:
            path = self._commands / name
            if name.startswith(".") or path.suffix != ".json":
                continue
            try:
                with path.open("rb") as file:
                    raw = file.read(_MAX_COMMAND_BYTES)
                path.unlink()
                yield msgspec.json.decode(raw, type=SentCommand)
            except (OSError, *_DECODE_ERRORS):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def log(self, action: Action) -> None:
        """Append an action. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._actions.open("ab") as file:
            file.write(msgspec.json.encode(action) + b"\n")
