"""Trials of shipped topics on one web, for programs that vary what an experiment keeps fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.scrapy_addon.model_training import train_topic_model
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import (
    PreparedTopic,
    RequestedRuns,
    Trial,
    parse_seed_set,
    plan_experiment,
)
from focused_lab.runner import WebContext, WebContextCache
from focused_lab.web_sources import ExperimentWeb

ON_TOPIC, OFF_TOPIC = "on-topic:5", "off-topic:5"
"""Seed sets of the benchmarks."""


@dataclass(frozen=True, slots=True)
class PlannedTrials:
    """Trials on one web, and what they crawl."""

    trials: tuple[Trial, ...]
    contexts: WebContextCache

    @property
    def context(self) -> WebContext:
        """The web of the first trial, with its topic selected."""
        return self.contexts.for_trial(self.trials[0])


def prepare_topic(
    topic: Topic, web: Path | None, say: Callable[[str], None] = print
) -> PreparedTopic:
    """Load the models of a topic, trained on a web if they are missing or outdated.

    Without a web its samples are fetched.
    """
    models = load_crawl_models(
        topic, lambda: train_topic_model(topic, web, replay=None, say=say), say
    )
    return PreparedTopic(topic, models.classifier, models.scorer, models.training_urls)


@contextmanager
def plan_trials(
    web: Path,
    topic_files: Sequence[Path],
    settings: ExperimentSettings,
    *,
    policies: Sequence[str] = ("focused",),
    seeds: Sequence[str] = (ON_TOPIC,),
) -> Iterator[PlannedTrials]:
    """Plan crawls of a web without a host cap, from seeds that are drawn for each repeat."""
    examined = ExperimentWeb(web.name, web)
    topics = [load_topic(file) for file in topic_files]
    prepared = {topic.name: prepare_topic(topic, web) for topic in topics}
    requested = RequestedRuns(policies, [parse_seed_set(each) for each in seeds], (None,), settings)
    plan = plan_experiment([examined], topics, prepared, requested, print)
    contexts = WebContextCache({examined.name: examined}, prepared)
    try:
        yield PlannedTrials(tuple(plan.trials), contexts)
    finally:
        contexts.close()
