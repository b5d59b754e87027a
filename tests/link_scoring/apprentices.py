"""An apprentice with a simple prior, and links and examples for its tests."""

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import LinkPrior
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.link_scoring.protocols import PageContext, TrainingExample
from focused.web.page import Classification, Link, Page

HOME = "https://home.example/page"
UNSURE = Classification(0.5, on_topic=True)
PLAIN = Link("https://home.example/other")
WEIGHTS = {"since": -0.5, "in_links": 0.0}
PRIOR = LinkPrior(
    "made up",
    ("nowhere",),
    bias=-1.0,
    weights=np.array([WEIGHTS.get(name, 0.4) for name in FEATURE_NAMES]),
    scales=np.ones(len(FEATURE_NAMES)),
)


LINKS = [
    Link(f"https://{kind}.example/{n}", f"{kind} {n}", f"a {kind} in the sea", tag_path=f"ul/{n}")
    for kind in ("whale", "trade", "good")
    for n in range(5)
]


class KeywordClassifier:
    """Two nats for each ``good``, minus two for each ``bad``; remembers what it was asked."""

    threshold = 0.5

    def __init__(self) -> None:
        self.asked: list[str] = []

    def classify(self, page: Page) -> Classification:
        return UNSURE

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([2.0 * (t.count("good") - t.count("bad")) for t in texts], dtype=float)


def new_apprentice(**options) -> Apprentice:
    """One that was taught nothing."""
    return Apprentice(KeywordClassifier(), PRIOR, **options)


def seen(relevance: float = 0.5, url: str = HOME, **fields) -> PageContext:
    return PageContext(Page(url), Classification(relevance, relevance > 0.5), **fields)


def named_features(features: Sequence[float]) -> dict[str, float]:
    """Return the features other than 0, by name."""
    named = zip(FEATURE_NAMES, np.array(features).tolist(), strict=True)
    return {name: value for name, value in named if value}


def example(
    relevance: float,
    *,
    anchor: str = "",
    url: str = "https://far.example/x",
    parent: str = "https://far.example/",
    tag_path_key: int = 0,
    features: Mapping[str, float] = MappingProxyType({}),
) -> TrainingExample:
    row = tuple(features.get(name, 0.0) for name in FEATURE_NAMES)
    return TrainingExample(url, anchor, parent, tag_path_key, row, relevance)


def examples_of_a_crawl(count: int, seed: int = 1) -> list[TrainingExample]:
    """Links on odd pages were good, in places that tell it now and then."""
    rng = random.Random(seed)
    examples = []
    for n in range(count):
        good = rng.random() < 0.4
        kind = "whale" if good else "trade"
        row = {name: rng.gauss(1.0 if good else 0.0, 1.0) for name in FEATURE_NAMES}
        examples.append(
            example(
                0.9 if good else 0.1,
                anchor=f"{kind} {rng.choice('abcdef') * 3}",
                url=f"https://{kind}.example/{n}",
                parent=f"https://home.example/{rng.randrange(5)}",
                tag_path_key=rng.randrange(5),
                features=row,
            )
        )
    return examples
