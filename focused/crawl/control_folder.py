"""The folder by which other processes watch and steer a running crawl: ``control/`` in its folder.

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
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from focused.crawl.steering import Command
from focused.errors import StateError
from focused.files import write_atomically

WATCH_S = 15.0
"""A crawl writes its status until so many seconds after somebody watched last."""

_MAX_COMMAND_BYTES = 1_000_000
# RecursionError: for values that are nested too deeply.
_DECODE_ERRORS = (msgspec.DecodeError, msgspec.ValidationError, RecursionError)


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
        self._folder = crawl_folder / "control"
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
