"""Two versions of a policy compared from the same starts."""

import json

import paired_harvest
import pytest

from focused.errors import ComparisonError
from focused_lab.analysis.comparison_runs import runs_of
from tests.lab.analysis.comparison_rows import Row, document, run, runs

OLD = {"whales": {"focused": [0.5, 0.4]}, "ships": {"focused": [0.2, 0.2]}}
NEW = {"whales": {"focused": [0.6, 0.5]}, "ships": {"focused": [0.2, 0.4]}}


def differences(before: list[Row], after: list[Row]) -> dict[str, paired_harvest.VersionDifference]:
    grid = paired_harvest.paired_grid(runs_of(before), runs_of(after))
    return {each.part: each for each in paired_harvest.compare_versions(grid)}


def test_differences_are_by_web_by_kind_of_start_and_over_all():
    other = {"web": "other", "seeds": "off-topic:5"}
    found = differences(runs(OLD) + runs(OLD, **other), runs(NEW) + runs(OLD, **other))
    points = {part: round(100 * each.by_topics.mean, 6) for part, each in found.items()}
    assert points == {
        "web": 10.0,
        "other": 0.0,
        "seeds on-topic:5": 10.0,
        "seeds off-topic:5": 0.0,
        "all starts": 5.0,
    }
    assert (found["web"].before, found["web"].after) == pytest.approx((0.325, 0.425))


def test_only_starts_that_both_versions_have_count():
    found = differences(runs(OLD), [*runs(NEW), run("focused", 0.9, repeat=7)])
    assert found["all starts"].pair.starts == 4
    with pytest.raises(ComparisonError, match="no start of focused in common"):
        differences(runs(OLD), runs(NEW, seeds="off-topic:5"))


def test_an_unreachable_start_counts_neither_if_only_one_version_measured_it():
    before = [*runs(OLD), run("focused", 0.0, topic="stars")]
    after = [*runs(NEW), run("focused", 0.0, topic="stars", reachable=0)]
    assert differences(before, after)["all starts"].pair.starts == 4


def test_runs_of_other_budgets_are_refused():
    with pytest.raises(ComparisonError, match="budgets of 100 and 50 pages"):
        differences(runs(OLD), runs(NEW, budget=50))


def test_the_documents_of_a_work_folder_are_read_together(tmp_path):
    for web in ("one", "two"):
        (tmp_path / web).mkdir()
        rows = runs(OLD, web=web)
        (tmp_path / web / "comparison.json").write_text(json.dumps(document(rows)))
    assert {each.web for each in paired_harvest.read_runs(tmp_path)} == {"one", "two"}


def test_a_folder_without_runs_or_with_a_run_twice_is_refused(tmp_path):
    with pytest.raises(ComparisonError, match=r"holds no comparison\.json"):
        paired_harvest.read_runs(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "comparison.json").write_text(json.dumps(document(runs(OLD))))
    with pytest.raises(ComparisonError, match="two runs of one policy"):
        paired_harvest.read_runs(tmp_path)


def test_it_prints_a_row_for_each_part_and_topic(tmp_path, capsys):
    for name, harvests in {"old": OLD, "new": NEW}.items():
        (tmp_path / name).write_text(json.dumps(document(runs(harvests))))
    assert paired_harvest.main([str(tmp_path / "old"), str(tmp_path / "new"), "--topics"]) == 0
    text = capsys.readouterr().out
    assert "all starts" in text and "ships on web" in text
    assert "+10.0" in text
