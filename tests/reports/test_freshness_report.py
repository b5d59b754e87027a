"""Estimates of a collection's freshness and age, from visits to pages whose changes are known."""

import io
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from focused.archive.parquet import VISITS_SCHEMA
from focused.reports.crawl_folder import CrawlFolder, read_crawl
from focused.reports.crawl_report import build_report, report_to_dict
from focused.reports.freshness_report import measure_freshness, optimal_freshness
from focused.reports.report_output import print_report
from tests.support.crawl_folders import frame, good_page, page, write_crawl

DAY_S = 86_400.0
DAYS = 60.0


@dataclass(frozen=True)
class Truth:
    """A crawl, with the freshness and the age of its collection at its end."""

    crawl: CrawlFolder
    freshness: float
    age_days: float


def poisson_crawl(
    seed: int, hosts: int = 30, pages_per_host: int = 12, in_bursts: bool = False
) -> Truth:
    """Pages that change by Poisson processes, whose rates differ by host and by page.

    ``in_bursts``: the pages of a host change on a few days, most of them together.
    """
    rng = np.random.default_rng(seed)
    rows, visits, fresh, ages = [], [], [], []
    for host in range(hosts):
        host_rate = np.exp(rng.normal(np.log(1 / 20), 1.0))
        bursts = np.sort(rng.uniform(0, DAYS, rng.poisson(host_rate * DAYS)))
        for number in range(pages_per_host):
            rate = host_rate * rng.gamma(1.0)
            changes = np.sort(rng.uniform(0, DAYS, rng.poisson(rate * DAYS)))
            if in_bursts:
                changes = bursts[rng.random(len(bursts)) < 0.7]
            every = rng.uniform(2.0, 10.0)
            times = np.arange(rng.uniform(0, every), DAYS, every)
            url, seq, previous = f"http://h{host}.test/{number}", len(rows), 0.0
            for at in times:
                changed = bool(((changes > previous) & (changes <= at)).any())
                visits.append(
                    {
                        "page": seq,
                        "url": url,
                        "at": at * DAY_S,
                        "previous_at": previous * DAY_S,
                        "result": "changed" if changed else "identical",
                        "predicted": 0.2,
                    }
                )
                previous = at
            missed = changes[changes > previous]
            fresh.append(not len(missed))
            ages.append(DAYS - missed[0] if len(missed) else 0.0)
            seen = {"first_seen": 0.0, "last_seen": previous * DAY_S, "fetched_at": 0.0}
            rows.append(page(url, **seen))
    # A page that leaves at the last moment tells the time of the estimate.
    rows[-1]["fetched_at"] = DAYS * DAY_S
    table = pd.DataFrame(visits, columns=VISITS_SCHEMA.names).sort_values("at", ignore_index=True)
    crawl = CrawlFolder(Path("out"), frame(rows), {}, {}, table)
    return Truth(crawl, float(np.mean(fresh)), float(np.mean(ages)))


def test_the_intervals_contain_the_truth_nearly_always():
    freshness, age = 0, 0
    for seed in range(20):
        truth = poisson_crawl(seed)
        report = measure_freshness(truth.crawl)
        assert report is not None
        freshness += report.freshness.low <= truth.freshness <= report.freshness.high
        age += report.age_days.low <= truth.age_days <= report.age_days.high
        # An interval that says nothing contains everything.
        assert report.freshness.high - report.freshness.low < 0.2
    assert freshness >= 17
    assert age >= 16


def test_the_intervals_allow_for_hosts_whose_pages_change_together():
    freshness, widths = 0, []
    for seed in range(20):
        truth = poisson_crawl(seed, in_bursts=True)
        report = measure_freshness(truth.crawl)
        assert report is not None
        freshness += report.freshness.low <= truth.freshness <= report.freshness.high
        widths.append(report.freshness.high - report.freshness.low)
    assert freshness >= 17
    independent = measure_freshness(poisson_crawl(0).crawl)
    assert independent is not None
    assert np.mean(widths) > 1.2 * (independent.freshness.high - independent.freshness.low)


def test_with_few_hosts_there_are_intervals_too():
    truth = poisson_crawl(1, hosts=2, pages_per_host=100)
    report = measure_freshness(truth.crawl)
    assert report is not None
    assert report.freshness.low <= truth.freshness <= report.freshness.high
    assert 0.01 < report.freshness.high - report.freshness.low < 0.3


def test_the_same_seed_gives_the_same_report():
    crawl = poisson_crawl(1, hosts=3).crawl
    assert measure_freshness(crawl, seed=3) == measure_freshness(crawl, seed=3)


def test_hosts_that_change_most_come_first_with_their_rates():
    report = measure_freshness(poisson_crawl(2).crawl)
    assert report is not None
    load = [host["change_rate"] * host["pages"] for host in report.hosts]
    assert load == sorted(load, reverse=True)
    observed = [host["changes"] / host["visits"] for host in report.hosts]
    assert observed[0] > 2 * observed[-1]
    assert sum(host["pages"] for host in report.hosts) == report.pages


def test_a_larger_budget_buys_more_freshness_and_finds_more_changes():
    report = measure_freshness(poisson_crawl(2).crawl)
    assert report is not None
    budgets = report.budgets
    assert [each["pages_per_day"] / report.visits_per_day for each in budgets] == pytest.approx(
        [0.25, 0.5, 1, 2, 4]
    )
    for less, more in pairwise(budgets):
        assert 0 < less["freshness"] < more["freshness"] < 1
        assert less["changes_found"] < more["changes_found"]


def test_equal_rates_give_the_freshness_of_even_visits():
    budgets, freshness = optimal_freshness(np.full(100, 0.2))
    r = 0.2 * 100 / np.array([5.0, 20.0, 80.0])
    found = np.interp([5.0, 20.0, 80.0], budgets, freshness)
    assert found == pytest.approx(-np.expm1(-r) / r, abs=0.003)


def test_the_allocation_is_the_best_of_all_splits():
    slow, fast, each = 0.01, 1.0, 50
    budgets, freshness = optimal_freshness(np.repeat([slow, fast], each))

    def fresh(rate: float, visits: np.ndarray) -> np.ndarray:
        r = rate * each / visits
        return -np.expm1(-r) / r

    split = np.linspace(0.01, 9.99, 999)
    best = (fresh(slow, split) + fresh(fast, 10.0 - split)).max() / 2
    assert np.interp(10.0, budgets, freshness) == pytest.approx(best, abs=0.002)


def test_pages_that_are_gone_count_as_gone_and_not_as_stale():
    truth = poisson_crawl(3, hosts=4)
    pages = truth.crawl.pages
    pages.loc[pages.index[:10], "gone_at"] = DAYS * DAY_S
    report = measure_freshness(truth.crawl)
    assert report is not None
    assert (report.gone, report.pages) == (10, len(pages) - 10)


def test_a_crawl_without_revisits_has_no_freshness(tmp_path):
    crawl = read_crawl(write_crawl(tmp_path, [good_page("http://a.test/")]))
    assert build_report(crawl)["freshness"] is None


def test_the_report_of_a_continuous_crawl_shows_freshness_hosts_and_budgets(living_crawl, tmp_path):
    screen = Console(file=io.StringIO(), width=120)
    print_report(living_crawl, screen, out=tmp_path)
    shown = screen.file.getvalue()
    for text in ("fresh pages, 95%", "age in days", "identical", "Hosts with most changes"):
        assert text in shown
    assert "What a budget buys" in shown
    written = json.loads((tmp_path / "report.json").read_text())["freshness"]
    assert written["results"]["changed"] == 3
    assert written["pages"] + written["gone"] == 7
    assert 0.5 < written["freshness"]["low"] <= written["freshness"]["value"] <= 1


def test_the_report_is_plain_data(living_crawl):
    report = report_to_dict(build_report(read_crawl(living_crawl)))
    assert json.loads(json.dumps(report["freshness"])) == report["freshness"]
