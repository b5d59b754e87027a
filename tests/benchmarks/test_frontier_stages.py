"""A small frontier, measured and killed as the benchmark does it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import frontier_report as report
import pytest
from frontier_growth import grow_and_measure, reopen
from frontier_machine import allocated_bytes, killed_at_last, spent
from frontier_stages import Job, sizes_up_to

from tests.support.frontier_recordings import recording

pytestmark = pytest.mark.long

LINKS = 3_000


def test_a_frontier_is_measured_killed_and_has_all_that_was_committed(tmp_path: Path) -> None:
    job = Job(tmp_path / "state", recording(), LINKS, hosts=150, links_a_host=20)
    with killed_at_last(grow_and_measure, job) as connection:
        stage = connection.recv()
        committed = connection.recv()
    with killed_at_last(reopen, replace(job, now=stage.now)) as connection:
        reopened = connection.recv()
    assert stage.links >= LINKS
    assert stage.order.among_hosts == stage.order.in_host == 0.0
    assert stage.push.times > 0 and stage.disk_bytes > 0
    assert reopened.links == committed


def test_a_frontier_is_measured_at_a_hundredth_a_tenth_and_all() -> None:
    assert sizes_up_to(10_000_000) == [100_000, 1_000_000, 10_000_000]


def test_holes_of_files_take_no_room(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 30)
    (tmp_path / "full").write_bytes(bytes(100_000))
    assert 100_000 <= allocated_bytes(tmp_path) < 200_000


def test_times_are_reported_in_microseconds_of_the_clock_and_of_the_process() -> None:
    percentiles = spent([(0.001, 0.0005), (0.003, 0.0005), (0.008, 0.0005)])
    assert (percentiles.median_us, percentiles.cpu_us, percentiles.times) == (
        pytest.approx(3000),
        pytest.approx(500),
        3,
    )
    assert percentiles.mean_us == pytest.approx(4000)


def test_lost_links_are_committed_links_that_did_not_return() -> None:
    assert report.lost({"committed": 70, "reopened_warm": {"links": 64}}) == 6
