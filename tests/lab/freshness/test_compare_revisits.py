"""``focused compare-revisits``: runs, statistics, output, and messages for invalid input."""

import csv
import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result

from focused.errors import ConfigurationError
from focused.revisit.policies import revisit_policy_names
from focused_lab.change_history import write_change_history
from focused_lab.freshness.revisit_comparison import (
    RevisitRun,
    RevisitSettings,
    SiteRow,
    make_run,
    plan_runs,
    run_comparison,
)
from focused_lab.freshness.revisit_report import rank_policies, result_tables, summarise
from focused_lab.freshness.windows import bursty_sites
from tests.support.command import focused

SMALL = ("--years", "1", "--warm-up-days", "90", "--max-pages", "15", "--intervals", "30")


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("histories")
    paths = []
    for site in bursty_sites(5, sites=3, pages=20, years=1.5):
        paths.append(str(folder / f"{site.site}.tsv.gz"))
        write_change_history(Path(paths[-1]), site)
    return paths


compare = partial(focused, "compare-revisits")


@pytest.fixture(scope="module")
def compared(histories: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    out = tmp_path_factory.mktemp("out")
    arguments = ("--policies", "nutch,kolobov", "--budget", "both", "--repeat", "2", "--jobs", "1")
    return compare(*histories, *SMALL, *arguments, "--out", str(out)), out


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_the_tables_show_each_policy_and_measure(compared):
    result, _ = compared
    for words in (
        "Freshness, %",
        "Age, days",
        "Changes caught",
        "pooled budget",
        "per-site budget",
    ):
        assert words in result.output
    for name in ("nutch", "kolobov", "uniform", "optimal-true-rates", "30 days"):
        assert name in result.output


def test_the_report_has_data_and_curves(compared):
    _, out = compared
    document = json.loads((out / "revisits.json").read_text())
    assert document["settings"]["repeats"] == 2
    assert {each["policy"] for each in document["measures"]} == {
        "uniform",
        "optimal-true-rates",
        "upper-bound",
        "nutch",
        "kolobov",
    }
    rows = read_csv(out / "sites.csv")
    assert len(rows) == 5 * 2 * 2 * 3  # policies, budgets, repeats, sites
    assert {row["site"] for row in rows} == {"bursty-1", "bursty-2", "bursty-3"}
    for name in ("freshness-pooled", "gain-pooled", "freshness-per-site", "gain-per-site"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{name}.svg").read_text()


def test_measures_are_within_their_bounds(compared):
    _, out = compared
    for row in read_csv(out / "measures.csv"):
        assert 0 <= float(row["freshness_low"]) <= float(row["freshness"]) <= 1
        assert float(row["bound_gain"]) <= 1
        if row["policy"] == "upper-bound":
            assert float(row["bound_gain"]) == pytest.approx(1.0)
            assert row["age_days"] == row["caught"] == ""  # only freshness is bounded
            continue
        assert 0 <= float(row["caught"]) <= 1
        assert float(row["age_days"]) >= 0
        expected = {"uniform": 0.0, "optimal-true-rates": 1.0}.get(row["policy"])
        if expected is not None:
            assert float(row["gain"]) == pytest.approx(expected)


def test_several_processes_give_the_same_figures():
    settings = RevisitSettings(
        (), bursty=True, policies=("nutch",), intervals_days=(30.0,), years=0.5,
        warm_up_days=60, max_pages=5,
    )  # fmt: skip
    runs = plan_runs(settings)

    def figures(jobs: int) -> list[tuple[object, ...]]:
        return [
            (run, [(row.site, row.fresh_s, row.visits) for row in rows])
            for run, rows in run_comparison(settings, runs, jobs)
        ]

    assert figures(1) == figures(2)


def test_all_names_every_policy_and_bound():
    runs = plan_runs(RevisitSettings((), poisson=True, intervals_days=(7.0,)))
    names = {run.policy for run in runs}
    assert names == {*revisit_policy_names(), "optimal-true-rates", "upper-bound"}


def test_each_policy_sees_the_same_pages():
    settings = RevisitSettings((), bursty=True, years=0.5, warm_up_days=10, max_pages=5)
    runs = [run for run in plan_runs(settings) if run.policy in ("uniform", "nutch")]
    pages = {
        (run.policy, tuple((row.pages, row.changes) for row in make_run(settings, run)))
        for run in runs
        if run.interval_days == 7
    }
    assert len({found for _, found in pages}) == 1


def test_dates_of_changes_reach_the_policies_that_use_them():
    def fresh_s(policy: str, *, dated: bool) -> float:
        settings = RevisitSettings(
            (), bursty=True, years=1, warm_up_days=30, max_pages=20, dated=dated
        )
        return sum(row.fresh_s for row in make_run(settings, RevisitRun(policy, 30, "pooled", 0)))

    assert fresh_s("nutch", dated=True) != fresh_s("nutch", dated=False)
    assert fresh_s("kolobov", dated=True) == fresh_s("kolobov", dated=False)


def row(policy: str, site: str, fresh_s: float, *, caught: int = 1) -> SiteRow:
    return SiteRow(
        policy, 7.0, "pooled", 0, site, 1, 100.0, fresh_s, 50.0 * 86_400, 4, caught, 10, 0.0
    )


def test_the_gain_is_the_share_of_the_gap_between_uniform_and_optimal():
    rows = [
        row("uniform", "a", 50),
        row("uniform", "b", 70),
        row("optimal-true-rates", "a", 70),
        row("optimal-true-rates", "b", 90),
        row("mine", "a", 60),
        row("mine", "b", 90, caught=3),
    ]
    found = {each.policy: each for each in summarise(rows)}
    assert found["mine"].gain.value == pytest.approx(0.75)
    assert found["mine"].freshness.value == pytest.approx(0.75)
    assert found["mine"].age_days.value == pytest.approx(0.5)
    assert found["mine"].caught.value == pytest.approx(0.5)
    assert (found["mine"].gain.low, found["mine"].gain.high) == pytest.approx((0.5, 1.0))
    assert rank_policies(list(found.values())) == ["mine", "uniform", "optimal-true-rates"]


def test_one_site_has_no_interval_and_no_gap_no_gain():
    rows = [row(name, "a", 50) for name in ("uniform", "optimal-true-rates", "mine")]
    found = {each.policy: each for each in summarise(rows)}
    assert found["mine"].freshness.low is None
    assert found["mine"].gain.value is None
    assert result_tables(list(found.values()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name at least one change history, or --poisson or --bursty"),
        (("--poisson", "--policies", "guess"), "no revisit policy is named 'guess'"),
        (("--poisson", "--policies", ","), "names nothing"),
        (("--poisson", "--intervals", "weekly"), "'weekly' is not a number of days"),
        (("--poisson", "--years", "0.2"), "the warm-up is as long as the whole window"),
        (("missing.tsv.gz",), "missing.tsv.gz"),
    ],
)
def test_invalid_input_is_one_line_with_status_2(arguments, message, tmp_path):
    result = compare(*arguments, "--out", str(tmp_path / "out"), status=2)
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_two_histories_of_one_name_are_refused(histories, tmp_path):
    again = tmp_path / Path(histories[0]).name
    again.write_bytes(Path(histories[0]).read_bytes())
    result = compare(histories[0], str(again), *SMALL, "--out", str(tmp_path / "out"), status=2)
    assert "two change histories have the name 'bursty-1'" in result.output


def test_an_empty_history_is_refused(tmp_path):
    path = tmp_path / "empty.tsv"
    path.write_text("")
    settings = RevisitSettings((str(path),))
    with pytest.raises(ConfigurationError, match="'empty' has no pages"):
        make_run(settings, plan_runs(settings)[0])
