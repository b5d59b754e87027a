"""An apprentice whose evidence can be checked by eye: its judge, prior, links and lessons."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from focused.learning.apprentice import Apprentice
from focused.learning.evidence import FEATURE_NAMES
from focused.learning.lesson import Lesson
from focused.learning.link_prior import LinkPrior
from focused.learning.protocols import Visit
from focused.learning.word_hashes import hash_words
from focused.web.page import Judgement, Link, Page

HOME = "https://home.example/page"
UNSURE = Judgement(0.5, on_topic=True)
PLAIN = Link("https://home.example/other")
WEIGHTS = {"since": -0.5, "navigation": -0.5, "out_degree": -0.1, "in_links": 0.0}
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


class KeywordJudge:
    """Two nats for each ``good``, minus two for each ``bad``; remembers what it was asked."""

    threshold = 0.5

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, page: Page) -> Judgement:
        return UNSURE

    def verdicts(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([2.0 * (t.count("good") - t.count("bad")) for t in texts], dtype=float)


def new_pupil(**options) -> Apprentice:
    """One that was taught nothing."""
    return Apprentice(KeywordJudge(), PRIOR, **options)


def seen(relevance: float = 0.5, url: str = HOME, links: int = 0, **fields) -> Visit:
    page = Page(url, links=tuple(Link(f"{url}/{n}") for n in range(links)))
    return Visit(page, Judgement(relevance, relevance > 0.5), **fields)


def told(features: Sequence[float]) -> dict[str, float]:
    """The evidence that says anything, by name."""
    named = zip(FEATURE_NAMES, np.array(features).tolist(), strict=True)
    return {name: value for name, value in named if value}


def lesson(
    relevance: float,
    *,
    anchor: str = "",
    url: str = "https://far.example/x",
    words: Sequence[str] = (),
    parent: str = "https://far.example/",
    trail: int = 0,
    features: Mapping[str, float] = MappingProxyType({}),
) -> Lesson:
    row = tuple(features.get(name, 0.0) for name in FEATURE_NAMES)
    return Lesson(url, anchor, parent, trail, row, hash_words(words).hashes.tobytes(), relevance)


def a_crawls_lessons(count: int, seed: int = 1) -> list[Lesson]:
    """Links on odd pages were good, in places and words that tell it now and then."""
    rng = random.Random(seed)
    lessons = []
    for n in range(count):
        good = rng.random() < 0.4
        kind = "whale" if good else "trade"
        row = {name: rng.gauss(1.0 if good else 0.0, 1.0) for name in FEATURE_NAMES}
        lessons.append(
            lesson(
                0.9 if good else 0.1,
                anchor=f"{kind} {rng.choice('abcdef') * 3}",
                url=f"https://{kind}.example/{n}",
                words=rng.sample(["sea", "ship", kind, "harbour", "bank"], 3),
                parent=f"https://home.example/{rng.randrange(5)}",
                trail=rng.randrange(5),
                features=row,
            )
        )
    return lessons
