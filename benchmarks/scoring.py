"""Cost of the apprentice in a crawl: CPU time of scoring links, and memory.

    python benchmarks/scoring.py WEB --topic TOPIC.toml [--pages N]

Crawls a recorded web and times the apprentice: scoring the links of pages with 40 to 60 links to
score, rescoring a link when its turn comes, and learning. Prints the size of its state and its
memory. One process, one core.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.protocols import (
    MergedScores,
    PageContext,
    ScorableLink,
    ScoredLinks,
    TrainingExample,
    UpdatedScore,
)
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.text.documents import HashedPage
from focused.topic.topic_file import load_topic
from focused.web.page import Link, Page
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import hashed_latency, simulate

LINKS = range(40, 61)


class Timed:
    """An apprentice that records the CPU seconds of each call."""

    def __init__(self, apprentice: Apprentice) -> None:
        self._apprentice = apprentice
        self.feature_names = apprentice.feature_names
        self.score_s: list[float] = []
        self.rescore_s: list[float] = []
        self.learn_s: list[float] = []

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Not called in a crawl whose scorer learns."""
        return self._apprentice.score(visit, links)

    def score_merged(
        self, visit: PageContext, links: Sequence[Link], waiting: Sequence[ScorableLink | None]
    ) -> MergedScores:
        """Timed for pages with about fifty links."""
        began = time.process_time()
        answer = self._apprentice.score_merged(visit, links, waiting)
        if len(links) in LINKS:
            self.score_s.append((time.process_time() - began) * 50 / len(links))
        return answer

    def rescore(self, links: Sequence[ScorableLink]) -> Sequence[UpdatedScore]:
        """Timed per link."""
        began = time.process_time()
        answer = self._apprentice.rescore(links)
        self.rescore_s.append((time.process_time() - began) / max(len(links), 1))
        return answer

    def make_example(
        self, link: ScorableLink, page: Page, relevance: float, words: HashedPage | None = None
    ) -> TrainingExample:
        """Timed with learning."""
        began = time.process_time()
        lesson = self._apprentice.make_example(link, page, relevance, words)
        self.learn_s.append(time.process_time() - began)
        return lesson

    def learn(self, lesson: TrainingExample) -> None:
        """Timed with the making of the example."""
        began = time.process_time()
        self._apprentice.learn(lesson)
        self.learn_s[-1] += time.process_time() - began

    def state(self) -> bytes:
        """Delegate to the apprentice."""
        return self._apprentice.state()

    def restore(self, state: bytes) -> None:
        """Delegate to the apprentice."""
        self._apprentice.restore(state)


def main(words: Sequence[str]) -> None:
    """Crawl and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("web", type=Path, help="folder of a recorded web")
    parser.add_argument("--topic", type=Path, required=True, help="topic file")
    parser.add_argument("--pages", type=int, default=1_000, help="pages that count")
    options = parser.parse_args(words)
    topic = load_topic(options.topic)
    guide = load_crawl_models(topic, web=str(options.web), replay=None, say=print)
    if not isinstance(guide.scorer, Apprentice):
        raise SystemExit(f"{options.topic}: its link scorer is not the apprentice")
    timed = Timed(guide.scorer)
    with ParsedWeb(RecordedWeb.open(options.web)) as network:
        for scorer in (guide.scorer.variant(), timed):  # the first run fills the caches of pages
            simulate(
                topic,
                guide.classifier,
                network,
                find_policy("focused")(PolicyInputs(guide.classifier, scorer)),
                latency=hashed_latency(0.2, 0),
                training_urls=guide.training_urls,
                pages=options.pages,
            )
    _tell("score 50 links", timed.score_s)
    _tell("score a link again", timed.rescore_s)
    _tell("learn from a page", timed.learn_s)
    _tell_memory(guide.scorer.variant(), timed.state())


def _tell(what: str, spent_s: Sequence[float]) -> None:
    spent_ms = sorted(second * 1000 for second in spent_s)
    print(
        f"{what:<20} {statistics.median(spent_ms):7.3f} ms median {statistics.fmean(spent_ms):7.3f}"
        f" mean {spent_ms[len(spent_ms) * 9 // 10]:7.3f} nine in ten ({len(spent_ms):,} times)"
    )


def _tell_memory(fresh: Apprentice, state: bytes) -> None:
    tracemalloc.start()
    fresh.restore(state)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"what it knows        {len(state) / 1e6:.1f} MB kept, {held / 1e6:.1f} MB in memory")


if __name__ == "__main__":
    main(sys.argv[1:])
