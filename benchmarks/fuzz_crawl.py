"""Fuzz a crawl with whole answers: each must be settled and counted, and the crawl must go on."""

from __future__ import annotations

import atexit
import random
import tempfile
from functools import cache
from pathlib import Path

from focused.classifier.topic_classifier import ConstantClassifier
from focused.crawl import Fetch, Wait, build_crawl
from focused.link_scoring.protocols import ConstantLinkScorer
from focused.orderings import PolicyInputs, find_policy
from focused.storage.state_store import StateStore
from focused.topic import NOINDEX_ACTIONS, Output, Politeness, Scope, Seeds, Topic, Training
from focused.web.http_response import outcome_from_response
from focused.web.page import Classification, FailureKind, Page

_ANSWERS_A_CRAWL = 500
_SPELLINGS = (b"location", b"link", b"x-robots-tag", b"refresh", b"content-type", b"retry-after")
_TYPES = ("text/html", "text/html", "application/xhtml+xml", "text/xml", "application/rss+xml", "")
_STATUSES = (200, 200, 200, 200, 201, 206, 301, 302, 304, 307, 403, 404, 410, 429, 500, 503, 999)


class _Judge(ConstantClassifier):
    """Calls a page on topic by its length, so that all branches are taken."""

    def classify(self, page: Page) -> Classification:
        relevance = 0.1 + 0.8 * (len(page.text) % 3 == 0)
        return Classification(relevance, relevance >= self.threshold, known=bool(page.text))


class FuzzedCrawl:
    """A crawl whose answers are cases; it restarts after some, and is reopened in between."""

    def __init__(self) -> None:
        self._now = 1_800_000_000.0
        self._answers = 0
        self._begin(random.Random(0))

    def settle(self, case: bytes, rng: random.Random) -> None:
        """Answer the crawl's next request; nothing may raise, fail internally or stay leased."""
        if self._answers >= _ANSWERS_A_CRAWL:
            self.end()
            self._begin(rng)
        elif self._answers % 100 == 99:
            self._crawl.close(self._now)
            self._open()
        self._answers += 1
        step = self._next_fetch()
        headers = {
            name.decode(): case[:2_000].decode("latin-1")
            for name in _SPELLINGS
            if rng.random() < 0.1
        }
        headers.setdefault("content-type", rng.choice(_TYPES))
        outcome = outcome_from_response(
            rng.choice(_STATUSES), headers, step.url, case, 0.1, self._now
        )
        settled = self._crawl.settle(step.lease, outcome, self._now + 0.1)
        assert self._crawl.in_flight == 0
        assert settled is None or settled.failure != FailureKind.INTERNAL_ERROR
        self._now += 1.0

    def _next_fetch(self) -> Fetch:
        while True:
            step = self._crawl.next(self._now)
            if isinstance(step, Fetch):
                return step
            if isinstance(step, Wait):
                assert step.until is not None
                self._now = max(self._now, step.until)
            else:
                seeds = [f"http://h{self._answers}n{n}.e{n % 3}.example/a/?b={n}" for n in range(3)]
                self._crawl.seed(seeds, self._now)

    def _begin(self, rng: random.Random) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-crawl-")
        folder = Path(self._folder.name)
        self._topic = Topic(
            name="fuzz",
            path=folder / "fuzz.toml",
            seeds=Seeds(("http://e.example/",)),
            training=Training((), (), folder / "fuzz.joblib"),
            scope=Scope(
                content_types=("text/html", "application/xhtml+xml", "text/xml"),
                drop_parameters=rng.choice(((), ("a*", "sid"))),
                max_links_per_page=rng.choice((3, 200)),
            ),
            politeness=Politeness(
                "FuzzBot/1.0 (+http://e.example/)", delay_s=0.0, noindex=rng.choice(NOINDEX_ACTIONS)
            ),
            output=Output(folder / "out"),
        )
        self._answers = 0
        self._open()

    def _open(self) -> None:
        folder = self._topic.output.folder
        store = StateStore.open(folder / "state", {"topic": "fuzz"}, commit_every=10)
        policy = find_policy("bfs")(PolicyInputs(_Judge(), ConstantLinkScorer()))
        self._crawl = build_crawl(self._topic, _Judge(), policy, store)

    def end(self) -> None:
        """Write the Parquet files, and discard the crawl."""
        self._crawl.close(self._now)
        self._folder.cleanup()


@cache
def _crawl() -> FuzzedCrawl:
    crawl = FuzzedCrawl()
    atexit.register(crawl.end)
    return crawl


def settle_answer(case: bytes, rng: random.Random) -> None:
    """Settle the answer in a crawl."""
    _crawl().settle(case, rng)
