"""Where a crawl's judge and scorer come from: the topic's model, trained when it must be.

A model is made anew when it is missing or when directory or good categories
are no longer those it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from focused.directory.samples import training_samples
from focused.labels.label_file import labels_of
from focused.labels.roles import teaching
from focused.learning.apprentice import Apprentice
from focused.learning.judge_in_office import JudgeInOffice
from focused.learning.link_prior import load_prior
from focused.learning.model_staleness import model_is_stale
from focused.learning.model_store import noted_urls
from focused.scrapy_addon.model_watch import ModelWatch, named_judge
from focused.scrapy_addon.session import Guide
from focused.topic import Topic
from focused.web.url import normalise

Say = Callable[[str], None]


def guide_for(topic: Topic, *, web: str | None, replay: str | None, say: Say) -> Guide:
    """Load the topic's judge, after training it when it is missing or out of date."""
    prior = load_prior(topic.training.link_prior)  # a wrong one is told before a long training
    stale = model_is_stale(topic)
    if stale is not None:
        from focused.scrapy_addon.training import train_for  # slow to import, and seldom needed

        say(f"training {topic.training.model}: {stale}")
        train_for(topic, Path(web) if web else None, replay=replay, say=say)
    watch = ModelWatch(topic.training.model)
    found = named_judge(topic.training.model)
    office = JudgeInOffice(found.judge, found.name)
    return Guide(office, Apprentice(office, prior), training_urls(topic), watch)


def training_urls(topic: Topic) -> frozenset[str]:
    """The normalised URLs of all samples: their pages never count as harvest.

    A sample that redirects counts under both addresses: the listed one, and
    the one whose page was learned from, as the training noted it.
    """
    listed = (normalise(entry.url) for entry in training_samples(topic.training).entries)
    noted = noted_urls(topic.training.model)
    learned_from = noted.read_text(encoding="utf-8").splitlines() if noted.is_file() else []
    taught = (normalise(label.url) for label in teaching(labels_of(topic.training)))
    return frozenset(url for url in (*listed, *learned_from, *taught) if url)
