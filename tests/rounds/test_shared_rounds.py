"""Partitions on several machines: what a lost machine had stored is restored, and only that."""

import dataclasses
import io
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from focused.errors import StateError, StorageError
from focused.rounds import replication, storage
from focused.rounds.manifest import commit_manifest, last_manifest
from focused.rounds.messages import Finish, decode_for_partition
from focused.rounds.process_supervision import Limits
from focused.rounds.storage import SharedStorage
from focused.topic import Budget, Revisit
from tests.rounds.simulated_rounds import SimulatedRounds, ring
from tests.support.simulated import FETCH_S

HOSTS, PAGES = 8, 6
SEED = "http://h0.test/0"
WEB = ring(HOSTS, PAGES)
DELAY_S, REQUEST_S = 0.2, 1.0
LIMITS = Limits(round_s=2.0, answer_s=3.0, silence_s=30.0, request_s=REQUEST_S)


def responses(rounds: SimulatedRounds) -> Counter[str]:
    """How often each page is in the WARC files of the storage."""
    found = Counter[str]()
    for name in rounds.storage.entries("warc"):
        for record in ArchiveIterator(io.BytesIO(rounds.storage.read(f"warc/{name}"))):
            if record.rec_type in ("response", "revisit"):
                found[record.rec_headers.get_header("WARC-Target-URI")] += 1
    return found


@pytest.fixture
def crawls(tmp_path: Path) -> Iterator[Callable[..., SimulatedRounds]]:
    made: list[SimulatedRounds] = []

    def make(**options: Any) -> SimulatedRounds:
        shared = f"memory://{uuid.uuid4()}"
        given = {"shared": shared, "limits": LIMITS, "delay_s": DELAY_S, **options}
        made.append(SimulatedRounds(tmp_path, WEB, SEED, **given))
        return made[-1]

    yield make
    for each in made:
        each.abandon()


def test_partitions_fetch_every_page_once(crawls):
    rounds = crawls()
    assert rounds.run() == "no link is left"
    assert rounds.fetched() == sorted(WEB)
    assert set(rounds.pages_asked().values()) == {1}
    assert {url: count for url, count in responses(rounds).items() if url in WEB} == dict.fromkeys(
        WEB, 1
    )


def test_a_lost_machine_repeats_its_last_round_at_most(crawls):
    rounds = crawls()
    rounds.at_times(lambda number: rounds.kill(number % 3), 2.0, 4.0, 5.0, 7.0)
    assert rounds.run() == "no link is left"
    assert rounds.fetched() == sorted(WEB)
    assert len(rounds.started) == rounds.partitions + 4
    assert min(rounds.pauses_s()) >= DELAY_S - 1e-6
    per_round = LIMITS.round_s / (DELAY_S + FETCH_S) * HOSTS
    assert 0 < rounds.pages_asked().total() - len(WEB) <= 4 * per_round
    assert {responses(rounds)[url] for url in WEB} == {1}


def test_a_continuous_crawl_goes_on_with_its_visits_after_machines_are_lost(crawls):
    revisit = Revisit(continuous=True, pages_per_day=20_000, hours=4)
    limits = dataclasses.replace(LIMITS, round_s=300.0, answer_s=60.0, silence_s=1_000.0)
    rounds = crawls(revisit=revisit, limits=limits, step_s=10.0)
    rounds.at_times(lambda number: rounds.kill(number % 3), 1_500.0, 4_000.0, 7_000.0)
    rounds.run()
    assert len(rounds.started) == rounds.partitions + 3
    assert rounds.fetched() == sorted(WEB)
    assert sum(rounds.reports[-1].counters.kinds("revisits").values()) > len(WEB)


def test_a_machine_out_of_reach_disturbs_nobody(crawls):
    rounds = crawls()
    rounds.is_certain = False
    rounds.at_times(lambda number: rounds.cut_off(number % 3), 2.0, 4.0, 6.0)
    assert rounds.run() == "no link is left"
    assert len(rounds.lost) == 3
    assert rounds.fetched() == sorted(WEB)
    assert {responses(rounds)[url] for url in WEB} == {1}
    assert min(rounds.pauses_s()) >= DELAY_S - 1e-6


def test_what_a_machine_out_of_reach_still_stores_is_not_read(crawls):
    rounds = crawls()
    rounds.is_certain = False
    cut = []

    def cut_at_the_end_of_a_round() -> None:
        process = rounds.processes.get(0)
        if process is None or len(cut) == 3 or not process.channel.received:
            return
        if isinstance(decode_for_partition(process.channel.received[-1]), Finish):
            cut.append(rounds.started.count(0))
            rounds.cut_off(0)

    send = rounds.send

    def sending(partition: int, message: bytes) -> None:
        send(partition, message)
        cut_at_the_end_of_a_round()

    rounds.send = sending  # type: ignore[method-assign]
    assert rounds.run() == "no link is left"
    assert cut == [1, 2, 3]
    assert rounds.fetched() == sorted(WEB)
    assert {responses(rounds)[url] for url in WEB} == {1}


@pytest.mark.parametrize("after_s", [1.0, 2.7, 3.5, 4.1])
def test_a_new_driver_waits_until_the_processes_of_the_last_one_send_nothing(crawls, after_s):
    rounds = crawls(budget=Budget(pages=40))
    rounds.run_until_driver_dies(after_s)
    for number in list(rounds.processes):
        rounds.cut_off(number)
    rounds._ended.clear()
    assert rounds.run() == "page budget spent"
    assert len(rounds.fetched()) == 40
    assert min(rounds.pauses_s()) >= DELAY_S - 1e-6


def test_a_process_that_is_yet_to_be_started_is_not_called_silent(crawls):
    rounds = crawls(budget=Budget(pages=40))
    rounds.run_until_driver_dies(2.7)
    rounds.abandon()
    rounds.run()
    assert any("waiting" in problem for problem in rounds.problems)
    assert not any("does not answer" in problem for problem in rounds.problems)


def test_a_stopped_crawl_goes_on_from_the_storage_at_once(crawls):
    rounds = crawls()
    driver = rounds.driver()
    begun = rounds.now

    def stop() -> None:
        driver.should_stop = driver.should_stop or rounds.now > begun + 4.0

    rounds.on_step = stop
    assert driver.run() == "stopped"
    some = rounds.fetched()
    assert 0 < len(some) < len(WEB)
    rounds.on_step = lambda: None
    assert rounds.run() == "no link is left"
    assert rounds.fetched() == sorted(WEB)
    assert set(rounds.pages_asked().values()) == {1}
    assert not any("waiting" in problem for problem in rounds.problems)


@pytest.mark.parametrize("method", ["write", "read", "entries", "delete", "upload"])
def test_a_storage_that_fails_one_time_in_five_loses_nothing(crawls, method, monkeypatch):
    rounds = crawls()
    rounds.at_times(lambda number: rounds.kill(number % 3), 2.0, 5.0)
    chance, failed = random.Random(3), Counter[bool]()
    original = getattr(SharedStorage, method)

    def call(self: SharedStorage, *args: object) -> object:
        fails = chance.random() < 0.2
        failed[fails] += 1
        if fails:
            raise StorageError(f"{method} fails")
        return original(self, *args)

    monkeypatch.setattr(SharedStorage, method, call)
    monkeypatch.setattr(storage, "_PAUSE_S", 0.0)
    assert rounds.run() == "no link is left"
    monkeypatch.undo()
    assert rounds.fetched() == sorted(WEB)
    assert {responses(rounds)[url] for url in WEB} == {1}
    assert failed[True]


def test_storage_slower_than_a_silent_process_may_be_kills_nobody(crawls):
    rounds = crawls()
    waiting: list[tuple[float, Future[Any], Callable[[], Any]]] = []
    slow = iter([LIMITS.silence_s + 10.0] * 4)

    def submit(call: Callable[[], Any]) -> Future[Any]:
        waiting.append((rounds.now + next(slow, 0.0), Future(), call))
        return waiting[-1][1]

    def run() -> None:
        for each in [each for each in waiting if each[0] <= rounds.now]:
            waiting.remove(each)
            each[1].set_result(each[2]())

    rounds.submit, rounds.on_step = submit, run
    assert rounds.run() == "no link is left"
    assert len(rounds.started) == rounds.partitions
    assert rounds.fetched() == sorted(WEB)


def test_a_partition_without_room_misses_rounds_and_the_user_is_told(crawls):
    rounds = crawls()
    begun, start = rounds.now, rounds.start
    pending: list[bytes] = []

    def starting(partition: int, message: bytes) -> None:
        if partition == 1 and rounds.now < begun + 40.0:
            rounds.without_room.add(1)
            pending.append(message)
        else:
            start(partition, message)

    def make_room() -> None:
        if pending and rounds.now >= begun + 40.0:
            rounds.without_room.clear()
            start(1, pending.pop())

    rounds.start = starting  # type: ignore[method-assign]
    rounds.on_step = make_room
    assert rounds.run() == "no link is left"
    assert any("partition 1 waits for a machine" in problem for problem in rounds.problems)
    assert any(1 in report.missing for report in rounds.reports)
    assert rounds.fetched() == sorted(WEB)


def test_a_driver_stops_when_another_one_runs_the_crawl(crawls):
    rounds = crawls()
    begun = rounds.now
    is_written: list[int] = []

    def write() -> None:
        found = last_manifest(rounds.storage)
        if rounds.now > begun + 3.0 and found is not None and not is_written:
            is_written.append(1)
            commit_manifest(rounds.storage, replace(found, round=found.round + 1, driver="another"))

    rounds.on_step = write
    with pytest.raises(StateError, match="another command runs this crawl"):
        rounds.run()


def test_a_machine_with_another_version_is_named(crawls):
    rounds = crawls(version="99.9")
    with pytest.raises(StateError, match=r"has version .* and this machine 99\.9"):
        rounds.run()


def test_old_states_are_deleted(crawls, monkeypatch):
    monkeypatch.setattr(replication, "_MAX_SEGMENTS", 1)
    rounds = crawls(limits=dataclasses.replace(LIMITS, round_s=0.5))
    rounds.at_times(lambda number: rounds.kill(number % 3), 2.0, 4.0)
    assert rounds.run() == "no link is left"
    manifest = last_manifest(rounds.storage)
    assert manifest is not None and manifest.round > 10
    for number in range(rounds.partitions):
        state = manifest.record(number).state
        assert state is not None
        folder = f"state/partition-{number:04}"
        names = [
            f"{attempt}/{name}"
            for attempt in rounds.storage.entries(folder)
            for name in rounds.storage.entries(f"{folder}/{attempt}")
        ]
        assert state.snapshot in names
        assert len(names) <= 10
