"""The effect of online training on crawls of generated webs with known labels.

A quarter of the pages is on topic, in regions; most links stay in their region. Words correlate
with the topic of a page and of links to it. No crawl sees the labels.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np

from focused.crawl.policy import Policy
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import LinkPrior, load_link_prior
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.orderings import PolicyInputs, find_policy
from focused.topic.topic_file import load_topic
from focused.web.page import Classification, Page
from focused_lab.simulation.simulator import RecordedNetwork, constant_latency, simulate
from tests.support.crawling import write_topic
from tests.support.recorded_web import MemoryWeb, page

PAGES, HOSTS, BUDGET, SEEDS = 700, 14, 150, 6
ON_TOPIC = 0.25
SEA = ("whale", "krill", "baleen", "harpoon", "spout", "fluke")
LAND = ("ledger", "tariff", "invoice", "freight", "market", "bond")


@dataclass(frozen=True)
class SeaClassifier:
    """Calibrated: knows how much more often a word of the sea occurs on on-topic pages.

    ``sure`` is the share of sea words on on-topic pages; off topic it is one minus that.
    """

    sure: float
    threshold: float = 0.5

    def classify(self, page: Page) -> Classification:
        prior = math.log(ON_TOPIC / (1.0 - ON_TOPIC))
        relevance = 1.0 / (1.0 + math.exp(-prior - self._nats(page.title)))
        return Classification(relevance, relevance >= self.threshold)

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._nats(text) for text in texts], dtype=float)

    def _nats(self, text: str) -> float:
        words = text.lower().split()
        sea = sum(word in SEA for word in words) - sum(word in LAND for word in words)
        return sea * math.log(self.sure / (1.0 - self.sure))


@dataclass(frozen=True)
class MadeUpWeb:
    web: MemoryWeb
    on_topic: frozenset[str]
    start: str


def made_up(seed: int, sure: float, words: int = 5) -> MadeUpWeb:
    """A web whose words, on a page and two of each anchor, are of the sea with share ``sure``."""
    rng = random.Random(seed)
    topical = [rng.random() < ON_TOPIC for _ in range(PAGES)]
    like = {kind: [n for n in range(PAGES) if topical[n] is kind] for kind in (False, True)}
    # Most on-topic pages are on hosts of odd number; a URL reveals no more than its host.
    host = [rng.randrange(HOSTS // 2) * 2 + (rng.random() < 0.8) * good for n, good in
            enumerate(topical)]  # fmt: skip
    urls = [f"http://h{host[n]}.test/p{n}" for n in range(PAGES)]

    def text(n: int, count: int) -> str:
        share = sure if topical[n] else 1.0 - sure
        return " ".join(rng.choice(SEA if rng.random() < share else LAND) for _ in range(count))

    pages = []
    for n, url in enumerate(urls):
        near = rng.choices(like[topical[n]], k=5) + rng.choices(range(PAGES), k=3)
        links = "".join(f'<li><a href="{urls[k]}">{text(k, 2)}</a></li>' for k in near)
        body = f"<title>{text(n, words)}</title><p>Page {n}</p><ul>{links}</ul>"
        pages.append(page(url, body))
    good = frozenset(url for url, right in zip(urls, topical, strict=True) if right)
    return MadeUpWeb(MemoryWeb(*pages), good, urls[like[True][0]])


def harvest(made: MadeUpWeb, policy: Policy, classifier: SeaClassifier, folder: Path) -> float:
    """The share of on-topic pages among the first that a crawl fetched."""
    path = write_topic(folder, made.start, politeness="concurrency = 1\npatience = 0")
    run = simulate(
        load_topic(path),
        classifier,
        RecordedNetwork(made.web),
        policy,
        latency=constant_latency(0.01),
        pages=BUDGET,
    )
    fetched = run.pages.loc[run.pages["outcome"] == "fetched", "url"]
    assert len(fetched) == BUDGET
    return float(fetched.isin(made.on_topic).mean())


def gains(folder: Path, sure: float, prior: LinkPrior, words: int = 5) -> list[float]:
    """The gain in harvest over the frozen prior, web by web."""
    classifier = SeaClassifier(sure)
    found = []
    for seed in range(SEEDS):
        made = made_up(seed, sure, words)
        inputs = PolicyInputs(classifier, Apprentice(classifier, prior))
        learning = harvest(made, find_policy("focused")(inputs), classifier, folder)
        frozen = harvest(made, find_policy("focused-without-learning")(inputs), classifier, folder)
        found.append(learning - frozen)
    return found


def misled() -> LinkPrior:
    """A prior with inverted weights."""
    right = load_link_prior()
    weights = dict(zip(FEATURE_NAMES, right.weights.tolist(), strict=True))
    wrong = weights | dict.fromkeys(("anchor", "parent", "parents"), -0.3)
    return replace(right, name="misled", weights=np.array(list(wrong.values())))


def test_with_a_weak_classifier_learning_costs_no_more_than_noise(tmp_path):
    gained = gains(tmp_path, 0.53, load_link_prior())
    # The mean of six webs has a standard error of 0.02.
    assert mean(gained) > -0.04


def test_with_a_good_classifier_learning_corrects_a_wrong_prior(tmp_path):
    gained = gains(tmp_path, 0.9, misled())
    assert mean(gained) > 0.1
