"""The log that the link prior is fitted on: its links, features and outcomes."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from link_log import LinkLogger, log_links
from link_prior_fitting import LoggedRun

from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.link_scoring.protocols import ScorableLink, TrainingExample, UpdatedScore
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import ExperimentPlan, PreparedTopic, Trial
from focused_lab.recorded_web.recorded_web import read_web_labels
from focused_lab.web_sources import ExperimentWeb
from tests.lab.two_sides import WORDS, planned, prepared_topic
from tests.support.recorded_web import html, page, record_web
from tests.support.whale_models import WhaleClassifier


def apprenticed(folder: Path, samples: Sequence[str] = ()) -> PreparedTopic:
    ours = prepared_topic(folder, samples)
    return replace(
        ours, apprentice=Apprentice(ours.classifier, load_link_prior(), depth_penalty=0.0)
    )


def logs_of(
    plan: ExperimentPlan, web: Path, *ours: PreparedTopic, jobs: int = 1
) -> list[list[LoggedRun]]:
    webs = {"two-sides": ExperimentWeb("two-sides", web)}
    prepared_topics = {each.topic.name: each for each in ours}
    return list(log_links(webs, prepared_topics, plan.trials, plan.settings, jobs=jobs))


def assert_same(one: LoggedRun, other: LoggedRun) -> None:
    assert (one.web, one.topic) == (other.web, other.topic)
    assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(one.on_topic, other.on_topic)


class Noting(Apprentice):
    """Records the links it scored at their turn, and its training pages."""

    # Each run copies its apprentice, so records must be shared by the class.
    asked: ClassVar[dict[str, UpdatedScore]]
    taught: ClassVar[list[str]]

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        again = super().rescore(links)
        self.asked.update({link.url: merged for link, merged in zip(links, again, strict=True)})
        return again

    def learn(self, example: TrainingExample) -> None:
        self.taught.append(example.url)
        super().learn(example)


@pytest.fixture
def noting() -> type[Noting]:
    """A class with empty records."""

    class OwnNoting(Noting):
        asked: ClassVar[dict[str, UpdatedScore]] = {}
        taught: ClassVar[list[str]] = []

    return OwnNoting


def test_a_link_is_logged_with_its_features_at_the_time_of_the_fetch(web, ours, noting):
    ours = replace(ours, apprentice=noting(ours.classifier, load_link_prior()))
    ((run,),) = logs_of(planned(web, ours, "focused", budget="50"), web, ours)
    labelled = [url for url in noting.taught if url != "http://start.test/"]
    assert len(labelled) == 49
    assert run.rows.tolist() == [list(noting.asked[url].features) for url in labelled]
    assert run.on_topic.tolist() == ["whales" in url for url in labelled]
    assert (run.web, run.topic) == ("two-sides", "whales")
    assert (
        run.rows.std(axis=0)[FEATURE_NAMES.index("siblings")] > 0
    )  # the crawl taught it something


def web_with_copies(folder: Path, each: int = 12) -> Path:
    """Two categories; each page links to the next ones, to their copies and to an unknown page."""
    pages, labels = [], []
    for category in WORDS:
        name = category.split("/")[1].lower()
        for n in range(each):
            links = [f"http://{name}.test/{kind}-{n + 1}" for kind in ("page", "copy", "unknown")]
            body = html(f"{name} {n}", *links, text=f"{name} {n}")
            for url in (f"http://{name}.test/page-{n}", f"http://{name}.test/copy-{n}"):
                pages.append(page(url, body))
                labels.append((url, category))
            unknown = html(f"{name} unknown {n}", text=f"nobody knows {name} {n}")
            pages.append(page(f"http://{name}.test/unknown-{n}", unknown))
    seeds = ("http://whales.test/page-0", "http://trade.test/page-0")
    pages.append(page("http://start.test/", html("Start", *seeds)))
    return record_web(folder, *pages, labels=labels, name="two-sides")


def test_seeds_training_pages_copies_and_pages_without_a_label_are_not_logged(tmp_path):
    web = web_with_copies(tmp_path / "web")
    # One of a pair; the other is a training page as well.
    ours = apprenticed(tmp_path, ["http://whales.test/page-5"])
    plan = planned(web, ours, "focused", budget="1000")
    ((from_start,),) = logs_of(plan, web, ours)
    assert (from_start.on_topic.sum(), (~from_start.on_topic).sum()) == (11, 12)
    seeded = [replace(trial, start=("http://whales.test/page-0",)) for trial in plan.trials]
    ((from_whale,),) = logs_of(replace(plan, trials=seeded), web, ours)
    assert (from_whale.on_topic.sum(), (~from_whale.on_topic).sum()) == (10, 0)


def test_labels_change_what_is_written_of_links_and_not_which_are_followed(
    web, ours, tmp_path, noting
):
    ours = replace(ours, apprentice=noting(ours.classifier, load_link_prior()))
    plan = planned(web, ours, "focused", budget="40")
    swapped = tmp_path / "swapped.tsv"
    other_side = dict(zip(WORDS, reversed(WORDS), strict=True))
    swapped.write_text(
        "".join(
            f"{url}\t{other_side[next(iter(categories))]}\n"
            for url, categories in read_web_labels(web / "labels.tsv").items()
        )
    )
    logs: list[LoggedRun] = []
    orders: list[list[str]] = []
    for labels in (None, swapped):
        noting.taught.clear()
        logger = LinkLogger(
            {"two-sides": ExperimentWeb("two-sides", web, labels)}, {"whales": ours}, plan.settings
        )
        logs.append(logger.log(plan.trials[0]))
        orders.append(list(noting.taught))
        logger.close()
    assert orders[0] == orders[1]
    assert np.array_equal(logs[0].rows, logs[1].rows)
    assert np.array_equal(logs[0].on_topic, ~logs[1].on_topic)


def test_what_one_run_taught_the_next_does_not_know(web, tmp_path):
    ours = apprenticed(tmp_path)
    trial = planned(web, ours, "focused", budget="30").trials[0]
    webs = {"two-sides": ExperimentWeb("two-sides", web)}
    logger = LinkLogger(webs, {"whales": ours}, ExperimentSettings())
    first, second = logger.log(trial), logger.log(trial)
    logger.close()
    assert_same(first, second)


def both_topics(folder: Path, web: Path) -> tuple[ExperimentPlan, PreparedTopic, PreparedTopic]:
    """Whales and trade, two draws of seeds each."""
    whales = apprenticed(folder)
    training = replace(whales.topic.training, good=("Top/Trade",))
    trade = replace(whales, topic=replace(whales.topic, name="trade", training=training))
    wished: dict[str, Any] = {"seeds": ["off-topic:2"], "budget": "15", "repeat": 2}
    plan = planned(web, whales, "focused", **wished)
    plan.trials += planned(web, trade, "focused", **wished).trials
    return plan, whales, trade


def test_several_processes_log_what_one_logs(web, tmp_path):
    plan, *ours = both_topics(tmp_path, web)
    alone, together = (logs_of(plan, web, *ours, jobs=jobs) for jobs in (1, 2))
    assert [[run.topic for run in topic] for topic in alone] == [["whales"] * 2, ["trade"] * 2]
    assert [len(topic) for topic in together] == [2, 2]
    for one, other in zip(chain(*alone), chain(*together), strict=True):
        assert_same(one, other)


def test_repeats_draw_other_links(web, tmp_path):
    ours = apprenticed(tmp_path)
    trial = planned(web, ours, "focused", budget="30").trials[0]
    trials: list[Trial] = [trial, replace(trial, repeat=1)]
    ((one, other),) = logs_of(ExperimentPlan(ExperimentSettings(), trials), web, ours)
    assert not np.array_equal(one.rows, other.rows)


def test_a_run_that_meets_no_link_is_an_empty_log(web, tmp_path):
    ours = apprenticed(tmp_path)
    trial = planned(web, ours, "focused", budget="1").trials[0]
    ((run,),) = logs_of(ExperimentPlan(ExperimentSettings(), [trial]), web, ours)
    assert run.rows.shape == (0, len(FEATURE_NAMES))
    assert run.on_topic.shape == (0,)


def test_a_scorer_that_has_no_evidence_is_refused(web, ours):
    assert isinstance(ours.classifier, WhaleClassifier)
    with pytest.raises(TypeError, match="whales: its link scorer does not learn"):
        logs_of(planned(web, ours, "focused", budget="5"), web, ours)
