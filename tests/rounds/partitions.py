"""Partitions of a crawl over a dictionary of answers, driven one fetch at a time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from focused.crawl import Done, Fetch, Wait
from focused.crawl.policy import Policy
from focused.frontier.queued_link import highest_score_first
from focused.link_scoring.protocols import LinkScorer
from focused.rounds.outbox import OwnerOf
from focused.rounds.partition import build_partition
from focused.rounds.shared_contents import RoundContents
from focused.storage.state_store import StateStore
from focused.web.page import Failed, FailureKind, Outcome
from focused.web.urls import host_of
from tests.support.simulated import FETCH_S, START, topic
from tests.support.whale_models import WhaleClassifier


def partition_of_host(partitions: int) -> OwnerOf:
    """Hosts whose names begin with a belong to partition 0, with b to partition 1, and so on."""
    return lambda host, key: (ord(host[0]) - ord("a")) % partitions


def send_claims(contents: RoundContents) -> list[bytes]:
    """Take the claims that are to be sent."""
    claims = contents.claims.first()
    contents.claims.remove([number for number, _ in claims])
    return [row for _, row in claims]


class DrivenPartition:
    """One partition; ``urls`` are its hosts' pages that it asked for.

    ``options`` are those of :func:`build_partition`.
    """

    def __init__(
        self, folder: Path, number: int, partitions: int, scorer: LinkScorer, **options: Any
    ) -> None:
        self._owner_of = partition_of_host(partitions)
        self.now = START
        self.urls: list[str] = []
        subject = topic(folder / str(number))
        state = subject.output.folder / "state"
        self.store = StateStore.open(state, {"partition": str(number)})
        self.partition = build_partition(
            number,
            subject,
            WhaleClassifier(),
            Policy("focused", scorer, highest_score_first),
            self.store,
            self._owner_of,
            **options,
        )
        self.crawl = self.partition.crawl
        self.contents = self.partition.contents
        self.examples = self.partition.examples

    def seed(self, *urls: str) -> None:
        """Queue the seeds that are its own."""
        own = [url for url in urls if self._owner_of(host_of(url), b"") == self.partition.number]
        self.crawl.seed(own, self.now)

    def run(self, web: Mapping[str, Outcome]) -> None:
        """Fetch until nothing is left."""
        while not isinstance(step := self.crawl.next(self.now), Done):
            if isinstance(step, Wait):
                assert step.until is not None, "it waits for a fetch, and none is under way"
                self.now = max(self.now, step.until)
                continue
            assert isinstance(step, Fetch)
            if not step.url.endswith("/robots.txt"):
                self.urls.append(step.url)
            self.now += FETCH_S
            gone = Failed(step.url, FailureKind.GONE, 404)
            self.crawl.settle(step.lease, web.get(step.url, gone), self.now)

    def die(self) -> None:
        """End without a commit, as a killed process."""
        self.store.abandon()
        self.crawl.archive.close()

    def close(self) -> None:
        """Close the folder."""
        self.crawl.close(self.now)
