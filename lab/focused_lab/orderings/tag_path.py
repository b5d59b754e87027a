"""A bandit whose arms are clusters of tag paths: menus, lists, paragraphs.

Gauquier, Manolescu, Senellart: the crawler SB of "Efficient Crawler for Scalable Web Data
Acquisition" (with its URL classifier: SB-CLASSIFIER). A tag path becomes the frequencies of its
pairs of neighbouring elements, start and end included, hashed to 2^12 dimensions; it joins the
nearest centroid with a cosine of at least 0.75, or founds an arm. Of the arms with waiting links
(the others sleep; Kleinberg, Niculescu-Mizil, Sharma: Regret Bounds for Sleeping Experts and
Bandits, 2010) the one with the greatest ``mean reward + alpha * sqrt(ln t / n)`` is played: one of
its links, at random. n counts its fetched pages, t all of them.

Differences: their reward is the number of new targets on the page, ours the page's relevance, 0 for
a duplicate. Their alpha of 2 sqrt(2) suits unbounded rewards; with relevances, some hundred arms
and a thousand pages it would only explore, so alpha is :data:`ALPHA`. They crawl one site; here an
arm may have links on many hosts, and the first host that is due serves it. A centroid counts each
distinct path once. Their URL classifier separates files from pages, which is not needed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xxhash
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs
from focused.web.page import Link
from focused.web.urls import host_of
from focused_lab.orderings.link_values import GroupHeads

ALPHA = 0.5
"""Weight of exploration, the greatest spread of rewards in [0, 1].

UCB1-tuned has the same bound, as a variance of 1/4 (Auer, Cesa-Bianchi, Fischer: Finite-time
Analysis of the Multiarmed Bandit Problem, 2002, section 4).
"""

MIN_COSINE = 0.75
MAX_ARMS = 400
_DIMENSIONS = 1 << 12
_RESTING_PRIORITY = -1.0
_UNTRIED_VALUE = 10.0  # above any played arm
_PAGES_PER_REVIEW = 20


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy; ``inputs.seed`` orders the links within an arm."""
    return with_alpha(inputs, ALPHA)


def with_alpha(inputs: PolicyInputs, alpha: float) -> Policy:
    """Create the policy with another weight of exploration."""
    bandit = _Bandit(inputs.seed, alpha)
    return Policy("tag-path", FunctionScorer(bandit.scores), _arm_priority, reprioritiser=bandit)


def _arm_priority(score: float, found_seq: int) -> float:
    """The arm's value behind a link's score."""
    return (
        score / (1.0 - score)
        if 0.0 < score < 1.0
        else (_RESTING_PRIORITY if score <= 0.0 else _UNTRIED_VALUE)
    )


class TagPathClusters:
    """Clusters of tag paths, numbered from 0 as they are founded."""

    def __init__(self, most: int = MAX_ARMS) -> None:
        """Once ``most`` arms exist, every path joins the nearest."""
        self._most = most
        self._of_path: dict[str, int] = {}
        self._sums = np.empty((0, _DIMENSIONS), dtype=np.float32)
        self._hashing = HashingVectorizer(
            n_features=_DIMENSIONS,
            analyzer=_element_pairs,
            norm="l2",
            alternate_sign=False,
            dtype=np.float32,
        )

    def __len__(self) -> int:
        return len(self._sums)

    def of(self, path: str) -> int:
        """The arm of a tag path, which never changes."""
        arm = self._of_path.get(path)
        if arm is None:
            arm = self._of_path[path] = self._place(path)
        return arm

    def _place(self, path: str) -> int:
        vector = self._hashing.transform([path]).toarray()[0]
        if len(self._sums):
            # A sum of vectors has the direction of their mean.
            lengths = np.linalg.norm(self._sums, axis=1)
            cosines = self._sums @ vector / lengths
            nearest = int(np.argmax(cosines))
            if cosines[nearest] >= MIN_COSINE or len(self) >= self._most:
                self._sums[nearest] += vector
                return nearest
        self._sums = np.vstack([self._sums, vector])
        return len(self._sums) - 1


def _element_pairs(path: str) -> list[str]:
    elements = ["^", *path.split("/"), "$"]
    return [f"{one}/{other}" for one, other in pairwise(elements)]


@dataclass(slots=True)
class _ArmStatistics:
    """How often an arm was played, and its total reward."""

    played: int = 0
    reward: float = 0.0


class _Bandit:
    """Scores links by their arm, and rewards arms by their pages."""

    def __init__(self, seed: int, alpha: float) -> None:
        self._alpha = alpha
        self._arms = TagPathClusters()
        self._records: dict[int, _ArmStatistics] = {}
        self._plays = 0
        self._reviewed_at = 1
        self._heads: GroupHeads[tuple[int, str]] = GroupHeads(
            _RESTING_PRIORITY, key=lambda url: xxhash.xxh3_64_intdigest(url.encode(), seed)
        )
        self._arm_of: dict[str, int] = {}

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> NDArray[np.float64]:
        """The value of each link's arm, mapped to [0, 1]; 0 for known links."""
        values = np.array([self._value_of(link) for link in links])
        return values / (1.0 + values)

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Reward the arm that led here; move the heads that changed."""
        url = settled.link.url
        self._heads.gone(url)
        arm = self._arm_of.pop(url, None)
        for found in settled.scored.values():
            of_link = self._arms.of(found.link.tag_path)
            if self._heads.add((of_link, host_of(found.link.url)), found.link.url):
                self._arm_of[found.link.url] = of_link
        changed: list[tuple[int, str]] = []
        if arm is not None and settled.outcome == "fetched" and settled.classification is not None:
            self._plays += 1
            record = self._records.setdefault(arm, _ArmStatistics())
            record.played += 1
            if settled.duplicate_of is None:
                record.reward += settled.classification.guiding_relevance
            changed = self._reviewed(arm)
        return self._heads.moves(lambda group: self._value(group[0]), changed)

    def _reviewed(self, arm: int) -> list[tuple[int, str]]:
        """The groups to revalue: the arm's own, periodically all, because t has grown."""
        if self._plays - self._reviewed_at < _PAGES_PER_REVIEW:
            return [group for group in self._heads.groups() if group[0] == arm]
        self._reviewed_at = self._plays
        return list(self._heads.groups())

    def _value_of(self, link: Link) -> float:
        return 0.0 if self._heads.knows(link.url) else self._value(self._arms.of(link.tag_path))

    def _value(self, arm: int) -> float:
        record = self._records.get(arm)
        if record is None:
            return _UNTRIED_VALUE
        # t as of the last review: otherwise all arms would change with each page.
        unknown = self._alpha * np.sqrt(np.log(max(self._reviewed_at, 2)) / record.played)
        return float(record.reward / record.played + unknown)
