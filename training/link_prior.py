"""Fit the link priors that the library ships: ``python training/link_prior.py``.

Builds the four recorded webs if they are missing, trains stale classifiers of the shipped
topics, logs the links of crawls with a noisy order, fits a prior on all webs and one without
each, and writes their files and their card. A topic belongs to the web that its
``training.link_prior`` leaves out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from link_log import log_links
from link_prior_card import group_by_web, measure_web_quality, render_prior_card
from link_prior_fitting import LoggedRun, fit_link_prior

from focused.classifier.classifier_file import load_classifier, load_current_classifier
from focused.cli import main as focused
from focused.errors import ModelError
from focused.files import write_atomically, write_json_atomically
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import DEFAULT_PRIOR, LinkPrior, LinkPriorFile
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.scrapy_addon.crawl_models import training_urls
from focused.scrapy_addon.model_training import train_topic_model
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import (
    PreparedTopic,
    RequestedRuns,
    parse_seed_set,
    plan_experiment,
)
from focused_lab.web_sources import ExperimentWeb

ROOT = Path(__file__).parents[1]
PRIORS = Path("focused/link_scoring/priors")
CARD = Path("models/link-prior.md")
SEEDS = ("on-topic:5", "off-topic:5")

# What the crawls follow: round numbers, set before anything was fitted. A fitted prior would bring
# one web's labels into what is logged on another, and so into the prior that must not know them.
_BY_HAND = {
    "parent": 0.25,
    "parents": 0.15,
    "anchor": 0.2,
    "context": 0.1,
    "url": 0.3,
    "anchor_meaning": 0.2,
    "url_meaning": 0.2,
}
FIRST_GUESS = LinkPrior(
    "by-hand",
    (),
    -2.0,
    np.array([_BY_HAND.get(name, 0.0) for name in FEATURE_NAMES]),
    np.ones(len(FEATURE_NAMES)),
)


@dataclass(frozen=True)
class Web:
    """A recorded web to log crawls of, and how it is built; ``host_caps`` in pages."""

    name: str
    folder: Path
    build: tuple[str, ...] = ()
    host_caps: tuple[int | None, ...] = (None,)


WEBS = (
    Web("foldoc", Path("webs/foldoc"), ("foldoc",)),
    # A cap leads crawls over more hosts; the other webs have three at most.
    Web("docweb", Path("webs/docweb-medium"), ("docweb", "--tier", "medium"), (None, 60)),
    Web("wordnet", Path("webs/wordnet"), ("wordnet",)),
    Web("debian", Path("webs/debian"), ("debian",)),
)


@dataclass(frozen=True)
class Options:
    """``pages`` and ``repeat`` are of each topic and kind of seeds."""

    pages: int = 400
    repeat: int = 2
    jobs: int = 2
    seed: int = 1_000
    out: Path = PRIORS
    card: Path = CARD


def main(words: Sequence[str] | None = None) -> int:
    """Fit, write, and print the card; return the exit status."""
    options = _options(words)
    os.chdir(ROOT)
    for web in WEBS:
        if not (web.folder / "web.json").is_file():
            focused(
                ["web", "build", *web.build, "--folder", str(web.folder)], standalone_mode=False
            )
    topics = [load_topic(path) for path in sorted(Path("topics").rglob("*.toml"))]
    print(make_priors(WEBS, topics, options))
    return 0


def make_priors(webs: Sequence[Web], topics: Sequence[Topic], options: Options) -> str:
    """Log, fit and write; return the card."""
    candidates = {
        topic.name: _candidate(topic, web) for web in webs for topic in topics_of(web, topics)
    }
    runs = [
        run for web in webs for run in _logged(web, topics_of(web, topics), candidates, options)
    ]
    priors = fitted_priors(runs)
    qualities = [
        measure_web_quality(own, priors[without(web)], priors[DEFAULT_PRIOR])
        for web, own in group_by_web(runs).items()
    ]
    card = render_prior_card(priors, qualities, _command(options))
    options.out.mkdir(parents=True, exist_ok=True)
    for name, prior_file in priors.items():
        write_json_atomically(options.out / f"{name}.json", msgspec.to_builtins(prior_file))
    write_atomically(options.card, card.encode())
    return card


def topics_of(web: Web, topics: Sequence[Topic]) -> list[Topic]:
    """The topics whose crawls start from the prior that leaves ``web`` out."""
    return [topic for topic in topics if topic.training.link_prior == without(web.name)]


def without(web: str) -> str:
    """The name of the prior that was not fitted on ``web``."""
    return f"without-{web}"


def fitted_priors(runs: Sequence[LoggedRun]) -> dict[str, LinkPriorFile]:
    """The prior of all webs, and one without each, by name."""
    left_out = {
        without(web): fit_link_prior([run for run in runs if run.web != web])
        for web in group_by_web(runs)
    }
    return {DEFAULT_PRIOR: fit_link_prior(runs), **left_out}


def _candidate(topic: Topic, web: Web) -> PreparedTopic:
    # Not as a crawl's guide is made: the shipped priors may be those that no longer fit.
    try:
        classifier, _ = load_current_classifier(topic)
    except ModelError as stale:
        _say(f"training {topic.training.model}: {stale}")
        train_topic_model(topic, web.folder, replay=None, say=_say)
        classifier, _ = load_classifier(topic.training.model)
    # By odds alone: how near its root a link lies is no features that could be weighed.
    apprentice = Apprentice(classifier, FIRST_GUESS, learns=False, depth_penalty=0.0)
    return PreparedTopic(topic, classifier, apprentice, training_urls(topic))


def _logged(
    web: Web,
    topics: Sequence[Topic],
    candidates: Mapping[str, PreparedTopic],
    options: Options,
) -> list[LoggedRun]:
    """The runs on one web."""
    examined = ExperimentWeb(web.name, web.folder)
    settings = ExperimentSettings(str(options.pages), options.repeat, seed=options.seed)
    wish = RequestedRuns(
        ("focused",), [parse_seed_set(each) for each in SEEDS], web.host_caps, settings
    )
    plan = plan_experiment([examined], topics, candidates, wish, _say)
    began_s, runs = time.monotonic(), list[LoggedRun]()
    for logged in log_links(
        {web.name: examined}, candidates, plan.trials, settings, jobs=options.jobs
    ):
        runs += logged
    _say(f"{web.name}: {len(runs)} runs, {time.monotonic() - began_s:.0f} s")
    return runs


def _options(words: Sequence[str] | None) -> Options:
    default = Options()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=_count, default=default.pages, help="pages per crawl")
    parser.add_argument("--repeat", type=_count, default=default.repeat, help="draws of seeds")
    parser.add_argument("--jobs", type=_count, default=default.jobs)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--out", type=_path, default=default.out, help="folder of the priors")
    parser.add_argument("--card", type=_path, default=default.card)
    return Options(**vars(parser.parse_args(words)))


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is no number from 1 on")
    return number


def _path(word: str) -> Path:
    # From where it was called, before main() goes to the root.
    return Path(word).absolute()


def _command(options: Options) -> str:
    """What makes these priors again, wherever they are written."""
    words = [f"--{name} {getattr(options, name)}" for name in ("pages", "repeat", "seed")]
    return " ".join(["python training/link_prior.py", *words])


def _say(line: str) -> None:
    print(f"link_prior: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
