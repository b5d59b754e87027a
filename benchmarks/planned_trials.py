"""The trials of one topic on one web of the harvest benchmark, for benchmarks that vary them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harvest import Part

from focused.scrapy_addon.crawl_models import load_crawl_models
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


@dataclass(frozen=True, slots=True)
class PlannedTrials:
    """Trials, and the web that they crawl."""

    context: WebContext
    trials: tuple[Trial, ...]


@contextmanager
def plan_trials(
    part: Part, topic_name: str, budget: int, draws: int = 1
) -> Iterator[PlannedTrials]:
    """Plan focused crawls of ``budget`` pages from five pages on topic.

    Each of ``draws`` trials has seeds of its own.
    """
    web = ExperimentWeb(part.web.name, part.web)
    topic = load_topic(Path(f"topics/{topic_name}.toml"))
    models = load_crawl_models(topic, web=str(part.web), replay=None, say=print)
    prepared = {
        topic.name: PreparedTopic(topic, models.classifier, models.scorer, models.training_urls)
    }
    settings = ExperimentSettings(str(budget), draws)
    seeds = [parse_seed_set("on-topic:5")]
    requested = RequestedRuns(("focused",), seeds, (None,), settings)
    plan = plan_experiment([web], [topic], prepared, requested, print)
    contexts = WebContextCache({web.name: web}, prepared)
    try:
        yield PlannedTrials(contexts.for_trial(plan.trials[0]), tuple(plan.trials))
    finally:
        contexts.close()
