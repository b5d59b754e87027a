"""The experiment runner: what counts, and what runs share."""

import copy
import signal
import tempfile

import pytest

from focused.crawl.spam_filter import spam_classifier_of
from focused.errors import ConfigurationError, StateError
from focused.link_scoring.protocols import ScoredLinks
from focused.web.page import Classification, Page
from focused_lab.runner import CachingClassifier, ExperimentRunner, RunCancelled, SharedCpuTime
from focused_lab.web_sources import ExperimentWeb
from tests.lab.two_sides import (
    DeadlyClassifier,
    planned,
    prepared_topic,
    rows_of,
    run_all,
    steady,
    with_classifier,
)
from tests.support.whale_models import WhaleClassifier, WhaleScorer


class ContraryClassifier(WhaleClassifier):
    def classify(self, page: Page) -> Classification:
        wrong = super().classify(page)
        return Classification(1 - wrong.relevance, not wrong.on_topic)


def test_labels_decide_whatever_the_classifier_says(web, ours):
    contrary = with_classifier(ours, ContraryClassifier())
    plan = planned(web, ours, "bfs", budget="20")
    by_ours, by_contrary = (rows_of(plan, web, each)[0] for each in (ours, contrary))
    assert by_ours["harvest"] == by_contrary["harvest"] > 0
    assert by_ours["classifier_recall"] == 1.0
    assert (by_contrary["classifier_recall"], by_contrary["classifier_precision"]) == (0.0, 0.0)


def test_training_pages_count_neither_as_harvest_nor_as_fetched(web, tmp_path):
    # A URL that differs in scheme from the recorded one is the same page.
    samples = [f"https://whales.test/whales-{n}" for n in range(0, 40, 2)]
    ours = prepared_topic(tmp_path, samples)
    (row,) = rows_of(planned(web, ours, "oracle", budget="1000"), web, ours)
    assert row["relevant"] == 20
    assert (row["on_topic"], row["recall"]) == (20, 1.0)
    assert row["fetched"] == 1 + 40 + 20  # the start, all of trade, the untrained whales


def test_policies_that_look_ahead_beat_those_that_do_not(tmp_path):
    rows = run_all(tmp_path, "focused", "anchor", "oracle", "bfs", "dfs", "random")
    for seeing in ("focused", "anchor", "oracle"):
        for blind in ("bfs", "random"):
            assert rows[seeing]["harvest"] > rows[blind]["harvest"], (seeing, blind)
    assert rows["oracle"]["harvest"] == 19 / 20  # all but the start


def test_several_processes_bring_what_one_brings(tmp_path):
    one = run_all(tmp_path / "1", "focused", "random", "path-oracle", seeds=["on-topic:2"])
    two = run_all(tmp_path / "2", "focused", "random", "path-oracle", seeds=["on-topic:2"], jobs=2)
    for policy in one:
        assert steady(one[policy]) == steady(two[policy])


def test_a_host_cap_bounds_what_one_host_gives(tmp_path):
    row = run_all(tmp_path, "oracle", host_caps=[5])["oracle"]
    assert (row["on_topic"], row["hosts"], row["host_cap"]) == (5, 1, 5)
    assert row["end_reason"].startswith("only hosts are left whose budget is spent")


def test_runs_with_and_without_a_cap_stand_side_by_side(web, ours):
    plan = planned(web, ours, "oracle", budget="20", host_caps=[5, None])
    rows = rows_of(plan, web, ours)
    assert [(row["host_cap"], row["on_topic"]) for row in rows] == [(5, 5), (None, 19)]


def test_all_policies_of_one_repeat_start_alike_and_repeats_differ(web, ours):
    plan = planned(web, ours, "bfs", "dfs", seeds=["off-topic:3"], budget="12", repeat=2)
    starts = [(trial.repeat, trial.start) for trial in plan.trials]
    assert starts[0] == starts[1] != starts[2] == starts[3]
    assert all("trade" in url for _, start in starts for url in start)
    first, _, second, _ = rows_of(plan, web, ours)
    assert first["simulated_s"] != second["simulated_s"]


class LearningScorer(WhaleScorer):
    """Scores links lower with each page that it scored."""

    def __init__(self) -> None:
        self.pages = 0

    def score(self, visit: object, links: object) -> ScoredLinks:
        self.pages += 1
        scored = super().score(visit, links)  # type: ignore[arg-type]  # passed on as it came
        return ScoredLinks(scored.scores / self.pages, scored.features)


def test_what_an_apprentice_learns_in_one_run_does_not_reach_the_next(web, ours):
    scorer = LearningScorer()
    learning = type(ours)(ours.topic, ours.classifier, scorer, ours.sample_urls)
    plan = planned(web, learning, "focused", budget="20")
    webs = {"two-sides": ExperimentWeb("two-sides", web)}
    runner = ExperimentRunner(webs, {"whales": learning}, plan.settings)
    try:
        first, second = (steady(runner.run(plan.trials[0])) for _ in range(2))
    finally:
        runner.close()
    assert first == second
    assert scorer.pages == 0


def test_a_run_is_given_up_when_it_is_to_stop(web, ours):
    plan = planned(web, ours, "bfs", budget="20")
    webs = {"two-sides": ExperimentWeb("two-sides", web)}
    runner = ExperimentRunner(webs, {"whales": copy.copy(ours)}, plan.settings, stop=lambda: True)
    with pytest.raises(RunCancelled):
        runner.run(plan.trials[0])
    runner.close()


class BrokenClassifier(WhaleClassifier):
    def classify(self, page: Page) -> Classification:
        raise ZeroDivisionError


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_classifier_or_policy_that_fails_on_every_page_is_an_error(web, ours, jobs):
    ours = with_classifier(ours, BrokenClassifier())
    plan = planned(web, ours, "bfs", budget="20")
    with pytest.raises(
        ConfigurationError, match="bfs on whales: 1 fetched pages could not be classified"
    ):
        rows_of(plan, web, ours, jobs)


class InterruptedClassifier(WhaleClassifier):
    """Ctrl-C comes with every page."""

    def classify(self, page: Page) -> Classification:
        signal.raise_signal(signal.SIGINT)
        return super().classify(page)


def test_ctrl_c_cancels_a_run_and_leaves_no_files(web, ours, tmp_path, monkeypatch):
    ours = with_classifier(ours, InterruptedClassifier())
    plan = planned(web, ours, "bfs", budget="20")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        rows_of(plan, web, ours)
    assert not list(tmp_path.glob("focused-simulation-*"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_dead_worker_is_reported_with_its_runs(web, ours, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # nobody cleans up after a killed process
    ours = with_classifier(ours, DeadlyClassifier())
    plan = planned(web, ours, "bfs", "dfs", budget="20")
    with pytest.raises(StateError, match=r"(bfs|dfs) on whales.*memory.*fewer --jobs"):
        rows_of(plan, web, ours, jobs=2)


class CountingSpamClassifier:
    good_mean, spam_mean, spam_sites = -1.0, 1.0, ("spam.test",)

    def __init__(self) -> None:
        self.rated: list[str] = []

    def evidence(self, page: Page) -> float | None:
        self.rated.append(page.url)
        return None if "short" in page.url else 0.5


class RatingClassifier(WhaleClassifier):
    def __init__(self) -> None:
        self.spam = CountingSpamClassifier()


def test_runs_share_what_the_spam_classifier_says_of_a_page():
    rating = RatingClassifier()
    cached = spam_classifier_of(CachingClassifier(rating, SharedCpuTime()))
    assert cached is not None
    pages = [Page("http://a.test/"), Page("http://a.test/short")]
    found = [[cached.evidence(page) for page in pages] for _ in range(2)]
    assert found == [[0.5, None]] * 2
    assert rating.spam.rated == [page.url for page in pages]
    assert cached.spam_sites == ("spam.test",)


def test_a_classifier_without_spam_evidence_has_none_in_experiments():
    assert spam_classifier_of(CachingClassifier(WhaleClassifier(), SharedCpuTime())) is None
