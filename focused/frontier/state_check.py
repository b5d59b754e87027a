"""Check a state folder for damage without writing to it.

LMDB verifies nothing that it reads: a damaged page gives wrong rows, hides rows or ends the process
with a signal. So another process reads all tables first. It finds tables whose rows are out of
order, or not as many as LMDB counted. Then the checksum of each row is verified, and whether the
tables agree with each other. Damage of pages that hold no row is not found, nor of the list of free
pages.
"""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

from focused.child_processes import python_command, python_environment
from focused.errors import StateError, os_errors_as
from focused.frontier.link_table import SEEN_BYTES, decode_link
from focused.frontier.queued_link import NUMBER_BYTES
from focused.storage import environment
from focused.storage.journal import decode_batches
from focused.storage.rows import checksum_seed, verify_checksum
from focused.storage.state_store import FORMAT_VERSION
from focused.storage.tables import put_entries

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


Take = Callable[[str, bytes, bytes], None]

# Tables that are needed to read link rows come first.
_FRONTIER_TABLES = (
    "meta",
    "host_ids",
    "hosts",
    "sources",
    "queue",
    "seen",
    "leased",
    "robots",
    "links",
)
_HOST_TABLES = frozenset({"hosts", "queue", "seen", "leased", "robots"})


@dataclass(slots=True)
class StateReport:
    """The rows checked by table, the journal's batches, and the damage found."""

    rows: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    damaged: list[str] = field(default_factory=list)


def check_state(
    folder: Path, take: Take, progress: Progress = lambda done, whole: None
) -> StateReport:
    """Check the state in ``folder``; call ``take`` with table, key and value of each sound row.

    Rows of the journal come last. ``progress`` takes rows read and in total. Raises StateError
    when there is no state, when it has another format, or while a crawl runs on it.
    """
    environment.require_state(folder)
    with os_errors_as(StateError, f"{folder} cannot be read"), environment.shared_lock(folder):
        return _StateCheck(folder, take).run(progress)


class _StateCheck:
    def __init__(self, folder: Path, take: Take) -> None:
        self._folder = folder
        self._take = take
        self._report = StateReport()
        self._damaged_tables: set[str] = set()
        self._meta: dict[str, Any] = {}
        self._frontier = _FrontierIndex()

    def run(self, progress: Progress) -> StateReport:
        report = self._report
        found = check_tables(self._folder, progress)
        file = environment.data_file(self._folder)
        report.damaged += [f"{file}: {table}: {why}" for table, why in found.damaged.items()]
        self._damaged_tables |= set(found.damaged)
        if LIST_OF_TABLES not in found.damaged:
            self._read(list(found.readable))
        if not report.rows and not report.damaged:
            environment.compare_identity(None, self._folder, {})
        # Tables with missing rows, which are reported already, cannot agree.
        if not self._damaged_tables & {LIST_OF_TABLES, *_FRONTIER_TABLES}:
            for reason in self._frontier.disagreements(int(self._meta.get("found", 0))):
                self._bad(reason)
        self._check_journal()
        return report

    def _bad(self, reason: str) -> None:
        self._report.damaged.append(f"{self._folder}: {reason}")

    def _read(self, tables: Sequence[str]) -> None:
        env = environment.open_environment(self._folder, durable=True, read_only=True, lock=False)
        with env, env.begin() as txn:
            dbs = environment.open_databases(env, txn)
            for table in dict.fromkeys([*filter(tables.__contains__, _FRONTIER_TABLES), *tables]):
                self._rows(table, txn.cursor(db=dbs[table]))

    def _rows(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        seed = checksum_seed(table)
        take_frontier = self._frontier.readers.get(table)
        for key, stored in rows:
            self._report.rows[table] += 1
            if table == "meta" and key == environment.IDENTITY:
                self._check_identity(stored)
            value = verify_checksum(seed, key, stored)
            if value is None:
                self._damaged_tables.add(table)
                self._bad(f"table {table!r}: the row of key {key.hex()} has a wrong checksum")
                continue
            if table == "meta":
                self._meta[key.decode()] = msgspec.json.decode(value)
            if table in _HOST_TABLES:
                self._frontier.prefixes.add(key)
            if take_frontier is not None:
                take_frontier(key, value)
            self._take(table, key, value)

    def _check_identity(self, stored: bytes) -> None:
        try:
            found = environment.read_identity(stored)
        except msgspec.MsgspecError:
            return  # a wrong checksum, reported below
        environment.compare_identity(found, self._folder, {"format": FORMAT_VERSION})

    def _check_journal(self) -> None:
        path = self._folder / "journal"
        checkpoint = int(self._meta.get("checkpoint", 0))
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            if checkpoint:
                self._bad("its journal is missing")
            return
        try:
            batches = decode_batches(raw, checkpoint)
        except (ValueError, msgspec.MsgspecError) as error:
            self._bad(str(error))
            return
        self._report.batches = len(batches)
        for batch in batches:
            for table, key, value in put_entries(batch):
                self._take(table, key, value)


class _FrontierIndex:
    """Compares hosts, links, queues and the seen set by numbers and hashes."""

    def __init__(self) -> None:
        self.readers: Mapping[str, Callable[[bytes, bytes], None]] = {
            "host_ids": self._host,
            "sources": self._source,
            "queue": self._queued,
            "seen": self._seen_link,
            "links": self._link,
            "leased": self._lease,
        }
        self.prefixes: set[bytes] = set()
        """The host numbers found in any table."""
        self._names: dict[int, str] = {}
        self._sources: set[int] = set()
        self._numbers, self._hosts = array("Q"), array("I")
        self._seen, self._wanted = array("Q"), array("Q")
        self._leased: list[int] = []
        self._links = 0
        self._without_queue_key = 0
        self._unreadable = 0
        self._without_source = 0
        self._by_number: tuple[array[int], array[int]] | None = None
        self._largest = -1

    def get(self, number: int) -> tuple[str | None, float]:
        """Check that a link's source exists, for :func:`decode_link`."""
        self._without_source += number not in self._sources
        return None, 0.0

    def _host(self, key: bytes, value: bytes) -> None:
        self._names[int.from_bytes(value, "big")] = key.decode()

    def _source(self, key: bytes, value: bytes) -> None:
        self._sources.add(int.from_bytes(key, "big"))

    def _queued(self, key: bytes, value: bytes) -> None:
        self._numbers.append(int.from_bytes(value[-NUMBER_BYTES:], "big"))
        self._hosts.append(int.from_bytes(key, "big"))

    def _seen_link(self, key: bytes, value: bytes) -> None:
        self._seen.append(xxh3_64_intdigest(key + value))
        self._largest = max(self._largest, int.from_bytes(value[-NUMBER_BYTES:], "big"))

    def _lease(self, key: bytes, value: bytes) -> None:
        self._leased.append(int.from_bytes(value[-NUMBER_BYTES:], "big"))

    def _link(self, key: bytes, value: bytes) -> None:
        """Check that a link's row has a queue key, a seen entry and a source."""
        self._links += 1
        if self._by_number is None:
            order = np.argsort(np.asarray(self._numbers))
            self._by_number = (
                array("Q", np.asarray(self._numbers)[order].tobytes()),
                array("I", np.asarray(self._hosts)[order].tobytes()),
            )
        numbers, hosts = self._by_number
        number = int.from_bytes(key, "big")
        at = bisect_left(numbers, number)
        host = hosts[at] if at < len(numbers) and numbers[at] == number else -1
        if host not in self._names:
            self._without_queue_key += 1
            return
        try:
            link = decode_link(value, self._names[host], self)
        except (ValueError, TypeError, LookupError, struct.error, msgspec.DecodeError):
            self._unreadable += 1
            return
        prefix = host.to_bytes(4, "big")
        self._wanted.append(xxh3_64_intdigest(prefix + link.key[:SEEN_BYTES] + key))

    def disagreements(self, found: int) -> Sequence[str]:
        """Return the inconsistencies; the crawl counted ``found`` links."""
        nameless = sum(int.from_bytes(prefix, "big") not in self._names for prefix in self.prefixes)
        unseen = np.isin(np.asarray(self._wanted), np.asarray(self._seen), invert=True)
        queued = np.unique(np.asarray(self._numbers))
        rowless = len(queued) - self._links + self._without_queue_key
        problems = {
            "hosts have rows, but no name": nameless,
            "numbers of hosts are missing": len(
                set(range(max(self._names, default=-1) + 1)) - set(self._names)
            ),
            "links stand in two queues": len(self._numbers) - len(queued),
            "queued links have no row": rowless,
            "rows of links have no place in a queue": self._without_queue_key,
            "rows of links cannot be read": self._unreadable,
            "queued links are not among the seen ones": int(unseen.sum()),
            "queued links have a source without a row": self._without_source,
            "links under way are not queued": int(
                np.isin(np.array(self._leased, dtype=np.uint64), queued, invert=True).sum()
            ),
            "links were seen beyond those that were counted": max(
                len(self._seen) - found, self._largest + 1 - found, 0
            ),
        }
        return [f"{count:,} {what}" for what, count in problems.items() if count]


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
