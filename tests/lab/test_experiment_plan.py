"""The plan: budgets, caps, starts; skipped topics and warnings."""

from dataclasses import replace

import msgspec
import pytest

from focused.errors import ConfigurationError
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import (
    budget_in_pages,
    check_policies,
    parse_budget,
    parse_host_cap,
    parse_seed_set,
    run_key,
)
from tests.lab.two_sides import planned, prepared_topic


@pytest.mark.parametrize("text", ["on-topic", "on-topic:0", "of-topic:5", "on-topic:-1", ""])
def test_seeds_that_are_no_seeds_are_refused(text):
    with pytest.raises(ConfigurationError, match="--seeds"):
        parse_seed_set(text)


def test_a_seeds_file_has_one_url_a_line_and_comments(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("# mine\nhttp://a.test/x#y\n\nhttp://b.test # the other\nhttp://a.test/x\n")
    warnings: list[str] = []
    assert parse_seed_set(str(path), warnings.append).urls == ("http://a.test/x", "http://b.test/")
    assert not warnings


def test_invalid_lines_of_a_seeds_file_are_reported_and_skipped(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("nonsense\nhttp://a.test/\nftp://a.test/\n\x00\n")
    warnings: list[str] = []
    assert parse_seed_set(str(path), warnings.append).urls == ("http://a.test/",)
    assert "skipped what is no http or https URL, in line 1, 3, 4" in warnings[0]


def test_a_seeds_file_without_any_url_is_refused(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("# nothing\nnonsense\n")
    with pytest.raises(ConfigurationError, match="contains no http or https URL"):
        parse_seed_set(str(path))


def test_a_seeds_file_of_bytes_is_refused_by_name(tmp_path):
    path = tmp_path / "seeds.bin"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=r"seeds\.bin: cannot be read as UTF-8"):
        parse_seed_set(str(path))


@pytest.mark.parametrize(
    ("text", "pages"), [("7", 7), ("x1", 40), ("x0.5", 20), ("x1.25", 50), ("x0.001", 1)]
)
def test_a_budget_is_in_pages_or_in_times_the_topics_pages(text, pages):
    assert budget_in_pages(text, relevant=40) == pages


@pytest.mark.parametrize("text", ["0", "-3", "x0", "x-1", "many", "x", "1.5", "xinf", "xnan", ""])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(ConfigurationError, match="--budget"):
        parse_budget(text)


def test_a_host_cap_may_be_none_at_all():
    assert (parse_host_cap("none"), parse_host_cap("300")) == (None, 300)
    for text in ("0", "-1", "some", ""):
        with pytest.raises(ConfigurationError, match="--host-cap"):
            parse_host_cap(text)


def test_an_unknown_policy_is_refused_with_those_there_are():
    with pytest.raises(ConfigurationError, match=r"'sharp'; there are focused, .*bfs"):
        check_policies(["bfs", "sharp"])


def test_an_oracle_is_refused_in_a_real_crawl():
    check_policies(["oracle"])
    with pytest.raises(ConfigurationError, match="oracle sees the labels"):
        check_policies(["bfs", "oracle"], live=True)


def test_repeated_requests_run_once(web, ours):
    plan = planned(
        web, ours, "bfs", "bfs", seeds=["topic", "topic"], host_caps=[5, 5], repeat=2, budget="5"
    )
    assert len(plan.trials) == 2


def test_a_budget_relative_to_the_topic_leaves_training_pages_out(web, tmp_path):
    ours = prepared_topic(tmp_path, [f"http://whales.test/whales-{n}" for n in range(10)])
    assert planned(web, ours, "bfs", budget="x2").trials[0].budget == 60


def test_without_a_host_cap_the_topics_own_holds(web, tmp_path):
    ours = prepared_topic(tmp_path, scope="max_pages_per_host = 7")
    assert planned(web, ours, "bfs").trials[0].host_cap == 7
    assert planned(web, ours, "bfs", host_caps=[None]).trials[0].host_cap is None


def test_seeds_that_cannot_be_sampled_skip_that_start_only(web, ours):
    warnings: list[str] = []
    plan = planned(
        web, ours, "bfs", seeds=["on-topic:500", "topic"], repeat=2, warn=warnings.append
    )
    assert {trial.seeds for trial in plan.trials} == {"topic"}
    (skip,) = plan.skipped
    assert (skip.web, skip.topic) == ("two-sides", "whales")
    assert "on-topic:500" in skip.why and "only 40 labelled pages" in skip.why
    assert "skipped" in warnings[-1]


def test_seeds_that_the_web_does_not_have_are_skipped(web, ours, tmp_path):
    elsewhere = tmp_path / "seeds.txt"
    elsewhere.write_text("http://elsewhere.test/\n")
    plan = planned(web, ours, "bfs", seeds=[str(elsewhere), "topic"])
    assert "none of the seeds" in plan.skipped[0].why
    assert [trial.seeds for trial in plan.trials] == ["topic"]


def test_an_empty_plan_is_an_error(web, ours):
    with pytest.raises(ConfigurationError, match=r"nothing to run: .*on-topic:500"):
        planned(web, ours, "bfs", seeds=["on-topic:500"])


def test_a_budget_beyond_the_web_causes_a_warning(web, ours):
    warnings: list[str] = []
    planned(web, ours, "bfs", budget="82", warn=warnings.append)
    assert warnings == [
        "whales: a budget of 82 pages exceeds two-sides, where 81 pages count; "
        "the runs will end early"
    ]


def test_a_runs_key_changes_with_all_that_decides_about_it(web, ours):
    trial = planned(web, ours, "bfs").trials[0]
    settings = ExperimentSettings()
    keys = [
        run_key(trial, settings, "web", "topic", "program"),
        run_key(replace(trial, start=("http://a.test/",)), settings, "web", "topic", "program"),
        run_key(replace(trial, policy="dfs"), settings, "web", "topic", "program"),
        run_key(replace(trial, budget=3), settings, "web", "topic", "program"),
        run_key(trial, msgspec.structs.replace(settings, seed=1), "web", "topic", "program"),
        run_key(trial, msgspec.structs.replace(settings, delay_s=0.02), "web", "topic", "program"),
        run_key(trial, settings, "other web", "topic", "program"),
        run_key(trial, settings, "web", "topic", "changed program"),
    ]
    assert len(set(keys)) == len(keys)


def test_more_repeats_and_an_equal_budget_keep_a_runs_key(web, ours):
    one = planned(web, ours, "bfs", budget="40")
    more = planned(web, ours, "bfs", budget="x1", repeat=3)
    assert run_key(one.trials[0], one.settings, "web") == run_key(
        more.trials[0], more.settings, "web"
    )
