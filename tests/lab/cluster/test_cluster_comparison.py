"""Clusters are compared with a single crawl by the measures of Cho and Garcia-Molina."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.cluster.assignment import SiteUnit
from focused.cluster.routing import LinkMode
from focused.recorded_web.recorded_web import RecordedWeb, RecordedWebWriter
from focused_lab.cluster.cluster_comparison import (
    ClusterRow,
    ClusterVariant,
    Sharing,
    compare_clusters,
    max_by_mean,
    measure_assignment,
    variants_of,
)
from focused_lab.cluster.cluster_report import summarise
from focused_lab.web_sources import ExperimentWeb
from tests.support.two_sides import HTML, build_web, compare, planned, prepared_topic

PAGES = 81
"""Of the two sides, with the start."""


def rows(folder: Path, *variants: ClusterVariant, budget: str = "none") -> list[ClusterRow]:
    web, ours = build_web(folder / "web"), prepared_topic(folder)
    plan = planned(web, ours, "bfs", budget="1" if budget == "none" else budget)
    webs = {"two-sides": ExperimentWeb("two-sides", web)}
    topics = {ours.topic.name: ours}
    return list(compare_clusters(webs, topics, plan, variants, has_budget=budget != "none"))


def test_by_exchange_nothing_is_lost_or_fetched_twice(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, ClusterVariant(3))  # a host each
    assert (row.coverage, row.overlap) == (1.0, 0.0)
    assert (row.fetched, row.single_fetched) == (PAGES, PAGES)
    assert (row.best, row.harvest) == (row.single_best, row.single_harvest)
    assert 0 < row.messages_per_page < 1


def test_a_firewall_costs_coverage_and_crossover_overlap(tmp_path: Path) -> None:
    firewall, crossover = rows(
        tmp_path,
        ClusterVariant(3, LinkMode.FIREWALL, sharing=Sharing.NOTHING),
        ClusterVariant(3, LinkMode.CROSSOVER, sharing=Sharing.NOTHING),
    )
    assert firewall.coverage < crossover.coverage == 1.0
    assert firewall.sent == crossover.sent == 0


def test_by_url_more_links_are_exchanged_than_by_site(tmp_path: Path) -> None:
    by_site, by_url = rows(tmp_path, ClusterVariant(3), ClusterVariant(3, unit=SiteUnit.URL))
    assert by_url.messages_per_page > by_site.messages_per_page
    assert by_url.coverage == 1.0


def test_links_that_all_know_are_not_sent(tmp_path: Path) -> None:
    none, some, every = rows(
        tmp_path, *(ClusterVariant(3, unit=SiteUnit.URL, replicate=k) for k in (0, 20, 1_000))
    )
    assert none.messages_per_page > some.messages_per_page > every.messages_per_page == 0
    assert every.coverage == 1.0


def test_on_a_budget_coverage_is_the_share_of_the_single_crawls_pages(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, ClusterVariant(3), budget="20")
    assert row.fetched == row.single_fetched == 20
    assert 0 < row.coverage <= 1


def test_all_combinations_are_made_and_without_an_exchange_nothing_is_shared() -> None:
    modes, units = [LinkMode.EXCHANGE, LinkMode.FIREWALL], [SiteUnit.DOMAIN]
    found = variants_of([2, 4], modes, units, [1.0, 10.0], [0], [Sharing.ALL], 3)
    firewall = ClusterVariant(2, LinkMode.FIREWALL, sharing=Sharing.NOTHING, partitions=3)
    assert found.count(firewall) == 1
    assert len(found) == 6
    assert [each.partitions for each in found] == [3, 3, 3, 4, 4, 4]


def test_means_are_those_of_all_starts(tmp_path: Path) -> None:
    made = rows(tmp_path, ClusterVariant(2), ClusterVariant(3), ClusterVariant(2))
    two, three = summarise(made)
    assert (two.starts, three.starts) == (2, 1)
    assert two.harvest_gain_sd == pytest.approx(0.0)
    assert three.harvest_gain_sd is None


def test_the_balance_is_the_largest_count_by_the_mean() -> None:
    assert max_by_mean({0: 3, 1: 1}, 4) == 3.0
    assert max_by_mean({}, 4) == 0.0


@pytest.fixture
def wide_web(tmp_path: Path) -> Iterator[RecordedWeb]:
    writer = RecordedWebWriter(tmp_path / "wide", "wide", "test")
    for number in range(500):
        writer.add(f"http://site{number}.org/", 200, HTML, b"<p>page")
    writer.finish([])
    with RecordedWeb.open(tmp_path / "wide") as web:
        yield web


def test_few_hosts_move_when_a_worker_joins_or_leaves(wide_web: RecordedWeb) -> None:
    row = measure_assignment("wide", wide_web, 512, 8, SiteUnit.DOMAIN)
    assert row.partition_balance <= 1.25
    assert row.hosts_moved_by_join < 0.25
    assert 0.125 * 0.8 < row.hosts_moved_by_leave < 0.25
    assert row.modulo_hosts_moved > 0.8


def test_the_command_shows_and_writes_the_measures(tmp_path: Path) -> None:
    build_web(tmp_path / "web")
    options = ("--policies", "bfs", "--budget", "none", "--workers", "1,3")
    options = (*options, "--json", tmp_path / "copy.json")
    done = compare(tmp_path, *options, "--mode", "exchange,firewall")
    assert done.exit_code == 0, done.output
    assert "coverage %" in done.output
    assert "Assignment of partitions" in done.output
    document = json.loads((tmp_path / "comparison" / "clusters.json").read_text())
    assert json.loads((tmp_path / "copy.json").read_text()) == document
    assert [each["variant"]["workers"] for each in document["measures"]] == [1, 1, 3, 3]
    assert document["measures"][2]["coverage"] == 1.0
    with (tmp_path / "comparison" / "clusters.csv").open() as file:
        assert [row["mode"] for row in csv.DictReader(file)] == ["exchange", "firewall"] * 2


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--workers", "0"),
        ("--mode", "tunnel"),
        ("--unit", "page"),
        ("--batch-s", "0"),
        ("--replicate", "-1"),
        ("--share", "everything"),
    ],
)
def test_invalid_options_are_named(tmp_path: Path, option: str, value: str) -> None:
    build_web(tmp_path / "web")
    done = compare(tmp_path, "--workers", "2", option, value)
    assert done.exit_code == 2
    assert option in done.output
    assert value in done.output


def test_clusters_are_simulated_in_one_process(tmp_path: Path) -> None:
    build_web(tmp_path / "web")
    done = compare(tmp_path, "--workers", "2", "--live")
    assert done.exit_code == 2
    assert "--live" in done.output
