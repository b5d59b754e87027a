"""A scorer that learns, simple enough to check by eye: the whale scorer with other scores later."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from focused.link_scoring.link_features import clipped_log_odds
from focused.link_scoring.protocols import (
    MergedScore,
    PageContext,
    ScorableLink,
    TrainingExample,
    UpdatedScore,
)
from focused.web.page import Link, Page
from tests.support.whale_models import WhaleScorer


class SimpleLearner(WhaleScorer):
    """Scores as the whale scorer; afterwards as ``new_scores`` says, by URL.

    Keeps its ``examples``; ``learned_here`` are the URLs of those that came from no state. Of
    several in-links the page of the highest relevance counts.
    """

    def __init__(self, new_scores: Mapping[str, float] | None = None) -> None:
        self.examples: list[tuple[str, str, float]] = []
        self.learned_here: list[str] = []
        self.new_scores = dict(new_scores or {})
        self.joined: list[tuple[str, str | None]] = []

    def score_merged(
        self, visit: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> Sequence[MergedScore]:
        own = self.score(visit, links)
        features, is_best_inlink = own.features.copy(), [True] * len(links)
        for i, before in enumerate(waiting):
            if before is None or len(before.features) != len(self.feature_names):
                continue
            self.joined.append((before.url, before.parent))
            is_best_inlink[i] = bool(features[i, 1] > before.features[1])
            features[i] = np.maximum(features[i], before.features)
        scores = features @ np.array([0.6, 0.3])
        rank_score = [clipped_log_odds(score) for score in scores.tolist()]
        rows = zip(scores.tolist(), rank_score, features.tolist(), is_best_inlink, strict=True)
        return [MergedScore(score, rank, tuple(row), best, 7) for score, rank, row, best in rows]

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        return [self.new_score(link) for link in links]

    def new_score(self, link: ScorableLink) -> UpdatedScore:
        before = 0.6 * link.features[0] + 0.3 * link.features[1]
        score = self.new_scores.get(link.url, before)
        return UpdatedScore(score, clipped_log_odds(score), tuple(link.features))

    def make_example(self, link: ScorableLink, page: Page, relevance: float) -> TrainingExample:
        features = tuple(link.features)
        return TrainingExample(
            link.url, link.anchor, link.parent or "", link.tag_path_key, features, relevance
        )

    def learn(self, example: TrainingExample) -> None:
        self.learned_here.append(example.url)
        self.examples.append((example.url, example.anchor, example.relevance))

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self.examples)

    def restore(self, state: bytes) -> None:
        self.examples = msgspec.msgpack.decode(state, type=list[tuple[str, str, float]])
