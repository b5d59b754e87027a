"""Find the tables of an LMDB file that can be read whole.

LMDB verifies nothing that it reads: a damaged page gives wrong rows, hides rows or ends the process
with a signal. So another process reads all tables first. It finds tables whose rows are out of
order, or not as many as LMDB counted. Checksums tell whether the rows themselves are sound
(:mod:`focused.storage.rows`). Damage of pages that hold no row is not found, nor of the list of
free pages.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb

from focused.child_processes import python_command, python_environment
from focused.errors import StateError
from focused.storage import environment

Progress = Callable[[int, int], None]
LIST_OF_TABLES = "(list of tables)"
_ROWS_PER_REPORT = 100_000


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The tables that can be read, by name whether they hold sets, and the damage of others."""

    readable: dict[str, bool]
    damaged: dict[str, str]


def check_tables(folder: Path, progress: Progress) -> TableCheck:
    """Read all tables of the state in ``folder`` in another process.

    ``progress`` takes the rows read so far and in total.
    """
    found = TableCheck({}, {})
    while True:
        known = [*found.readable, *found.damaged]
        command = python_command(__name__, str(folder), *known)
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=python_environment(),
        ) as child:
            reading = _read_reports(child, found, progress)
            assert child.stderr is not None
            message = child.stderr.read().decode(errors="replace").strip()
        if child.returncode == 0:
            return found
        found.damaged[reading] = _death(child.returncode, message)
        if reading == LIST_OF_TABLES:
            return found


def _read_reports(child: subprocess.Popen[bytes], found: TableCheck, progress: Progress) -> str:
    """Add what the process reports; return the table that it was reading when it ended."""
    reading = LIST_OF_TABLES
    assert child.stdout is not None
    for line in child.stdout:
        table, is_set, rows, total, problem = json.loads(line)
        progress(rows, total)
        reading = table
        if problem is not None:
            reading = LIST_OF_TABLES
            if problem:
                found.damaged[table] = problem
            else:
                found.readable[table] = is_set
    return reading


def _death(status: int, message: str) -> str:
    if status < 0:
        return f"reading it ends the process ({signal.Signals(-status).name})"
    return message.splitlines()[-1] if message else f"status {status}"


Report = tuple[str, bool, int, int, str | None]
"""Table, whether it holds sets, rows so far and in total, and what is wrong with it."""


def read_all(folder: Path, known: frozenset[str]) -> Iterator[Report]:
    """Read the tables but the ``known`` ones.

    What is wrong with a table is None while it is read, and "" when it is sound. Raises StateError
    and lmdb.Error.
    """
    env = environment.open_environment(folder, durable=True, read_only=True, lock=False)
    with env, env.begin() as txn:
        tables = environment.open_databases(env, txn)
        if len(tables) != env.stat()["entries"]:
            yield LIST_OF_TABLES, False, 0, 0, "tables are missing"
        total = sum(txn.stat(db)["entries"] for db in tables.values())
        done = 0
        for name, db in tables.items():
            if name in known:
                continue
            is_set = bool(db.flags(txn)["dupsort"])
            yield name, is_set, done, total, None
            problem, rows, expected = "", 0, txn.stat(db)["entries"]
            before: Any = None
            try:
                for row in txn.cursor(db=db):
                    here: Any = row if is_set else row[0]
                    rows += 1
                    if rows > expected or (before is not None and here <= before):
                        problem = "its rows are out of order"
                        break
                    before = here
                    if rows % _ROWS_PER_REPORT == 0:
                        yield name, is_set, done + rows, total, None
            except lmdb.Error as error:
                problem = str(error)
            if not problem and rows != expected:
                problem = f"it has {rows} rows, where {expected} are counted"
            done += rows
            yield name, is_set, done, total, problem


def main() -> int:
    """Print what :func:`read_all` yields, a line of JSON each; return the exit status."""
    folder, *known = sys.argv[1:]
    try:
        for report in read_all(Path(folder), frozenset(known)):
            print(json.dumps(report), flush=True)
    except (StateError, lmdb.Error) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
