"""Partitions crawl as one by rounds; what goes wrong repeats little and loses nothing."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from focused.errors import StateError
from focused.rounds.manifest import last_manifest, list_round_files
from focused.rounds.process_supervision import Limits
from focused.rounds.storage import SharedStorage
from focused.topic import Budget, Revisit
from tests.rounds.simulated_rounds import SimulatedRounds, ring
from tests.support.simulated import FETCH_S

HOSTS, PAGES = 8, 6
SEED = "http://h0.test/0"
WEB = ring(HOSTS, PAGES)
DELAY_S = 0.2


def crawl(folder: Path, **options: object) -> SimulatedRounds:
    return SimulatedRounds(folder, WEB, SEED, delay_s=DELAY_S, **options)  # type: ignore[arg-type]


def test_partitions_fetch_every_page_once(tmp_path):
    rounds = crawl(tmp_path)
    assert rounds.run() == "no link is left"
    assert rounds.fetched() == sorted(WEB)
    assert set(rounds.pages_asked().values()) == {1}
    assert min(rounds.pauses_s()) >= DELAY_S - 1e-6


def test_every_host_is_asked_by_its_own_partition(tmp_path):
    rounds = crawl(tmp_path)
    rounds.run()
    assert all(partition == rounds.partition_of(url) for _, partition, url in rounds.asked)
    assert len({partition for _, partition, _ in rounds.asked}) > 1


def test_a_budget_of_pages_is_kept_exactly(tmp_path):
    rounds = crawl(tmp_path, budget=Budget(pages=29))
    assert rounds.run() == "page budget spent"
    assert len(rounds.fetched()) == 29


def test_a_larger_budget_goes_on(tmp_path):
    rounds = crawl(tmp_path, budget=Budget(pages=20))
    rounds.run()
    rounds.budget = Budget(pages=35)
    assert rounds.run() == "page budget spent"
    assert len(rounds.fetched()) == 35
    assert set(rounds.pages_asked().values()) == {1}


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(bytes=2_000), "byte budget spent"),
        (Budget(hours=3 / 3_600), "time budget spent"),
        (Budget(min_harvest=1.0, min_harvest_pages=5), None),
    ],
)
def test_other_budgets_end_the_crawl(tmp_path, budget, reason):
    rounds = crawl(tmp_path, budget=budget)
    assert rounds.run() == (reason or "no link is left")


def test_nothing_is_left_of_rounds_that_all_have(tmp_path):
    rounds = crawl(tmp_path)
    rounds.run()
    manifest = last_manifest(rounds.storage)
    assert manifest is not None
    assert manifest.inbox == ()
    assert len(list_round_files(rounds.storage)) <= 2 * (rounds.partitions + 1)


def test_a_process_that_dies_again_and_again_loses_nothing(tmp_path):
    rounds = crawl(tmp_path)
    rounds.at_times(lambda number: rounds.kill(number % 3), 2.0, 4.0, 5.0, 7.0)
    assert rounds.run() == "no link is left"
    assert rounds.fetched() == sorted(WEB)
    assert len(rounds.started) == rounds.partitions + 4


def test_a_process_that_never_finishes_a_round_stops_the_crawl(tmp_path):
    rounds = crawl(tmp_path)
    rounds.on_step = lambda: rounds.kill(1)
    with pytest.raises(StateError, match="partition 1 ended 5 times"):
        rounds.run()


def test_a_silent_process_misses_rounds_and_then_goes_on(tmp_path):
    rounds = crawl(tmp_path)
    begun = rounds.now

    def suspend() -> None:
        if 1 in rounds.processes:
            rounds.processes[1].is_suspended = 3.0 < rounds.now - begun < 20.0

    rounds.on_step = suspend
    assert rounds.run() == "no link is left"
    assert any(1 in report.missing for report in rounds.reports)
    assert rounds.fetched() == sorted(WEB)
    assert set(rounds.pages_asked().values()) == {1}
    assert min(rounds.pauses_s()) >= DELAY_S - 1e-6


def test_a_process_that_stays_silent_is_started_again(tmp_path):
    rounds = crawl(tmp_path)
    begun = rounds.now

    def suspend() -> None:
        if 1 in rounds.processes and rounds.started.count(1) == 1:
            rounds.processes[1].is_suspended = rounds.now - begun > 3.0

    rounds.on_step = suspend
    rounds.run()
    assert rounds.started.count(1) == 2
    assert rounds.fetched() == sorted(WEB)


@pytest.mark.parametrize("after_s", [1.0, 2.7, 3.5, 4.1])
def test_a_new_driver_goes_on_where_the_last_one_died(tmp_path, after_s):
    rounds = crawl(tmp_path, budget=Budget(pages=40))
    rounds.run_until_driver_dies(after_s)
    rounds.abandon()
    assert rounds.run() == "page budget spent"
    assert len(rounds.fetched()) == 40


def test_a_damaged_file_is_named_and_left_out(tmp_path, caplog, monkeypatch):
    rounds = crawl(tmp_path)
    write = SharedStorage.write

    def damage(self: SharedStorage, name: str, content: bytes) -> None:
        write(self, name, bytes(len(content)) if "/files/" in name else content)

    monkeypatch.setattr(SharedStorage, "write", damage)
    assert rounds.run() == "no link is left"
    assert "section links/" in caplog.text
    assert "its checksum is wrong" in caplog.text
    owner = rounds.partition_of(SEED)
    assert {rounds.partition_of(url) for url in rounds.fetched()} == {owner}


def test_later_copies_on_other_partitions_are_duplicates(tmp_path):
    shared = "a whale that is told of at length on many hosts, word by word the same " * 5
    web = ring(HOSTS, PAGES, lambda host, number: shared if number == 3 else f"whale {host}")
    for url, found in list(web.items()):
        if url.endswith("/3"):
            web[url] = web["http://h0.test/3"].__class__(
                url, found.status, found.headers, web["http://h0.test/3"].body
            )
    rounds = SimulatedRounds(tmp_path, web, SEED, limits=Limits(0.5, answer_s=3.0))
    rounds.run()
    copies = [url for url in rounds.duplicates() if url.endswith("/3")]
    owners = {rounds.partition_of(url) for url in copies}
    assert len(owners) > 1


def test_partitions_at_one_address_share_its_delay(tmp_path):
    addresses = {f"h{host}.test": "192.0.2.1" for host in range(HOSTS)}
    rounds = crawl(tmp_path, addresses=addresses)
    rounds.run()
    assert rounds.fetched() == sorted(WEB)
    by_partition = defaultdict(list)
    for at, partition, _ in rounds.asked[HOSTS * 4 :]:
        by_partition[partition].append(at)
    pauses = [
        later - before - FETCH_S
        for asked in by_partition.values()
        for before, later in pairwise(asked)
    ]
    assert min(pauses) >= len(by_partition) * DELAY_S - 1e-6


def test_the_scorer_learns_from_the_pages_of_all(tmp_path):
    rounds = crawl(tmp_path)
    rounds.run()
    manifest = last_manifest(rounds.storage)
    assert manifest is not None
    assert manifest.learned == len(WEB)


def test_a_continuous_crawl_visits_pages_again_until_its_hours_are_over(tmp_path):
    revisit = Revisit(continuous=True, pages_per_day=20_000, hours=5)
    limits = Limits(round_s=600.0, answer_s=60.0, silence_s=1_000.0)
    rounds = crawl(tmp_path, revisit=revisit, limits=limits, step_s=10.0)
    rounds.run()
    assert rounds.fetched() == sorted(WEB)
    assert sum(rounds.reports[-1].counters.kinds("revisits").values()) > len(WEB)
    assert all(partition == rounds.partition_of(url) for _, partition, url in rounds.asked)
