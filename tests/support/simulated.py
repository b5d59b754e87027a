"""Drives a Crawl by a dictionary of answers and a simulated clock, without a network.

A fetch takes :data:`FETCH_S`, and a Wait advances the clock to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from focused.archive.archive import page_rows
from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl import Crawl, Done, Fetch, SettledFetch, Wait, build_crawl
from focused.crawl.crawl_stats import StageTimes
from focused.crawl.online_training import ShareExample
from focused.crawl.page_parser import ParsedPage
from focused.crawl.policy import LinkReprioritiser, Policy
from focused.frontier.queued_link import (
    NO_EXPLORATION,
    Exploration,
    breadth_first,
    highest_score_first,
)
from focused.link_scoring.protocols import LinkScorer
from focused.storage.state_store import StateStore
from focused.topic import Output, Politeness, Seeds, Topic, Training
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected
from tests.support.recorded_web import html
from tests.support.whale_models import WhaleClassifier, WhaleScorer

START = 1_000_000.0
FETCH_S = 0.1

Answer = Outcome | Sequence[Outcome] | Callable[[float], Outcome]
"""The answer of a URL: always the same, one per request (the last repeats), or by the time."""


class Crashed(BaseException):
    """Simulates the death of the process."""


def page(url: str, *links: str, text: str = "", title: str = "", **headers: str) -> Fetched:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fetched(
        url, 200, {"content-type": "text/html", **named}, html(title or url, *links, text=text)
    )


def raw(url: str, body: str | bytes, content_type: str = "text/html") -> Fetched:
    body = body.encode() if isinstance(body, str) else body
    return Fetched(url, 200, {"content-type": content_type}, body)


def moved(url: str, target: str) -> Redirected:
    return Redirected(url, 302, target)


def failed(url: str, kind: FailureKind, retry_after_s: float | None = None) -> Failed:
    return Failed(url, kind, retry_after_s=retry_after_s)


def topic(folder: Path, *seeds: str, delay_s: float = 1.0, **sections: Any) -> Topic:
    """A topic with a delay of a second; sections replace the defaults."""
    base = Topic(
        name="whales",
        path=folder / "whales.toml",
        seeds=Seeds(seeds),
        training=Training((), (), folder / "whales.joblib"),
        politeness=Politeness("FocusedTest/0.1 (+http://example.org/)", delay_s=delay_s),
        output=Output(folder / "out"),
    )
    return replace(base, **sections)


def with_politeness(subject: Topic, **options: Any) -> Topic:
    """The topic with some options of politeness replaced."""
    return replace(subject, politeness=replace(subject.politeness, **options))


def site(*answers: Outcome) -> dict[str, Answer]:
    return {answer.url: answer for answer in answers}


@dataclass
class Simulation:
    """One crawl on its own clock.

    ``asked`` has the time and URL of each fetch in order, ``waited`` each wait with its start.
    """

    topic: Topic
    web: Mapping[str, Answer]
    policy: str = "focused"
    reprioritiser: LinkReprioritiser | None = None
    exploration: Exploration = NO_EXPLORATION
    classifier: TopicClassifier = field(default_factory=WhaleClassifier)
    scorer: LinkScorer = field(default_factory=WhaleScorer)
    training_urls: frozenset[str] = frozenset()
    stages: StageTimes | None = None
    reads_ahead: bool = False
    failed_ahead: Mapping[str, Failed] = field(default_factory=dict)
    """Failures that parser processes report, by URL."""
    confirms_everything: bool = False
    share_example: ShareExample | None = None
    now: float = START
    asked: list[tuple[float, str]] = field(default_factory=list)
    settled: list[SettledFetch] = field(default_factory=list)
    waited: list[tuple[float, Wait]] = field(default_factory=list)
    ended: str = ""
    closed: bool = False
    crawl: Crawl = field(init=False)

    def __post_init__(self) -> None:
        self.crawl = self._open()
        self.crawl.seed(self.topic.seeds.urls, self.now)

    def _open(self) -> Crawl:
        identity = {"topic": self.topic.name, "policy": self.policy}
        self.store = StateStore.open(self.topic.output.folder / "state", identity)
        return build_crawl(
            self.topic,
            self.classifier,
            self._ordered_by(),
            self.store,
            training_urls=self.training_urls,
            stages=self.stages,
            share_example=self.share_example,
        )

    def _ordered_by(self) -> Policy:
        ordering = breadth_first if self.policy == "bfs" else highest_score_first
        patient = self.policy != "bfs"
        return Policy(
            self.policy,
            self.scorer,
            ordering,
            patient,
            exploration=self.exploration,
            reprioritiser=self.reprioritiser,
        )

    def step(self) -> Fetch | Wait | Done:
        """Do one step; fetches are one at a time."""
        step = self.crawl.next(self.now)
        if isinstance(step, Wait):
            assert step.until is not None, "it waits for a fetch, but none is in flight"
            self.waited.append((self.now, step))
            self.now = max(self.now, step.until)
        elif isinstance(step, Fetch):
            self.asked.append((self.now, step.url))
            outcome = _conditional(
                step,
                self._answer(step),
                self.now + FETCH_S,
                confirms_everything=self.confirms_everything,
            )
            self.now += FETCH_S
            ahead = self.failed_ahead.get(step.url)
            if ahead is None and self.reads_ahead:
                ahead = self._read_ahead(step, outcome)
            settled = self.crawl.settle(step.lease, outcome, self.now, ahead)
            if settled is not None:
                self.settled.append(settled)
        return step

    def _read_ahead(self, fetch: Fetch, outcome: Outcome) -> ParsedPage | Failed | None:
        if not isinstance(outcome, Fetched) or not self.crawl.may_parse(fetch.lease, outcome):
            return None
        return self.crawl.parser.page_parser().read(outcome)

    def run(self, most_steps: int = 2_000, pages: int | None = None) -> Simulation:
        """Step until the crawl is done or ``pages`` were fetched."""
        for _ in range(most_steps):
            step = self.step()
            if isinstance(step, Done):
                self.ended = step.reason
                return self
            if pages is not None and self.crawl.counters.fetched >= pages:
                return self
        raise AssertionError(f"not done after {most_steps} steps; asked {self.asked[-10:]}")

    def restart(self, later_s: float = 0.0, **sections: Any) -> Simulation:
        """Close, and continue with a new crawl on the same folder."""
        self.close()
        self.closed = False
        self.now += later_s
        self.topic = replace(self.topic, **sections)
        self.crawl = self._open()
        self.crawl.seed(self.topic.seeds.urls, self.now)
        return self

    def close(self) -> None:
        """Close the crawl; calling it twice is harmless."""
        if not self.closed:
            self.crawl.close(self.now)
            self.closed = True

    def die(self) -> None:
        """Restart from what was committed, as after a kill."""
        self.store.abandon()
        self.crawl.archive.close()
        self.crawl = self._open()

    def crash_at_commit(
        self, number: int, new_scorer: Callable[[], LinkScorer] | None = None
    ) -> Simulation:
        """Run until commit ``number`` (from 1), which fails, and restart.

        ``new_scorer`` makes the scorer of the next process; else the same one is used.
        """
        commits = 0
        commit = self.store.commit

        def failing_commit() -> None:
            nonlocal commits
            commits += 1
            if commits == number:
                raise Crashed
            commit()

        self.store.commit = failing_commit  # type: ignore[method-assign]  # simulates a crash
        try:
            self.run()
        except Crashed:
            self.scorer = self.scorer if new_scorer is None else new_scorer()
            self.die()
            self.crawl.seed(self.topic.seeds.urls, self.now)
        return self

    @property
    def urls(self) -> list[str]:
        """The requested URLs without robots.txt."""
        return [url for _, url in self.asked if not url.endswith("/robots.txt")]

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The archive's rows by URL."""
        rows = list(page_rows(self.store.tables))
        assert [row["seq"] for row in rows] == list(range(len(rows)))
        assert len({row["url"] for row in rows}) == len(rows)
        return {row["url"]: row for row in rows}

    def on_topic(self, start: str) -> list[str]:
        """The URLs on topic that begin with ``start``."""
        return [url for url, row in self.rows.items() if row["on_topic"] and url.startswith(start)]

    def times(self, url: str) -> list[float]:
        """The times of the URL's requests, in seconds since the start."""
        return [round(at - START, 6) for at, asked in self.asked if asked == url]

    def _answer(self, step: Fetch) -> Outcome:
        default = Failed(step.url, FailureKind.GONE, 404)
        answer = self.web.get(step.url, default)
        if callable(answer):
            return answer(self.now)
        if isinstance(answer, Sequence):
            before = sum(url == step.url for _, url in self.asked) - 1
            return answer[min(before, len(answer) - 1)]
        return answer


def _conditional(
    fetch: Fetch, answer: Outcome, now: float, *, confirms_everything: bool
) -> Outcome:
    """Return the answer of a server that compares ETags, or confirms all of them."""
    if not isinstance(answer, Fetched):
        return answer
    answer = replace(answer, received_at=now)
    etag = answer.headers.get("etag")
    asked = fetch.headers.get("If-None-Match")
    if asked is not None and (asked == etag or confirms_everything):
        exchange = answer.exchange and replace(
            answer.exchange, response_head=b"HTTP/1.1 304 Not Modified\r\n\r\n", body=b""
        )
        return NotModified(answer.url, headers=answer.headers, received_at=now, exchange=exchange)
    return answer
