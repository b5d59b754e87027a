"""The frontier against a model of itself: any order of calls, restarts included."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.exploration import Exploration, barren_after
from focused.frontier.frontier import Offer
from focused.frontier.politeness import HostPace
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.store import StateStore

IDENTITY = {"topic": "machine", "policy": "focused"}
EXPLORATION = Exploration(unknown=0.5, dry=0.25)
SEED = 0.0
scores = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
hosts, pages = st.integers(0, 3), st.integers(0, 9)


class FrontierMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 0.0
        self.waiting: dict[str, float] = {}
        self.evidence: dict[str, float] = {}
        self.asked: dict[str, int] = {}
        self.barren: dict[str, float] = {}
        self.done: set[str] = set()
        self.due: dict[str, float] = {}
        self.under_way: list[Offer] = []
        self._open()

    def _open(self) -> None:
        self.store = StateStore.open(self.folder / "state", IDENTITY)
        self.frontier = DiskFrontier(self.store, exploration=EXPLORATION)

    def _is_under_way(self, url: str) -> bool:
        return any(offer.link.url == url for offer in self.under_way)

    def _worth(self, host: str, best: float) -> float:
        return best + EXPLORATION.hope(self.asked.get(host, 0), self.barren.get(host, 0.0))

    @rule(host=hosts, page=pages, score=scores, told=st.integers(1, 3), joined=st.booleans())
    def push(self, host: int, page: int, score: float, told: int, joined: bool) -> None:
        url = f"http://{host}/{page}"
        known = url in self.waiting or url in self.done
        link = QueuedLink(link_key(url), url, str(host), score, score, evidence=(float(told),))
        assert self.frontier.push(link, self.now, joined=joined) is not known
        if url in self.done or self._is_under_way(url):
            return
        rises = score > self.waiting.get(url, -1.0)
        if rises or (joined and self.evidence[url] not in (told, SEED)):
            self.waiting[url], self.evidence[url] = score, float(told)

    @rule(host=hosts, page=pages)
    def push_seed(self, host: int, page: int) -> None:
        url = f"http://{host}/{page}"
        if url not in self.waiting and url not in self.done:
            self.frontier.push(QueuedLink(link_key(url), url, str(host), 0.8, 1.0), self.now)
            self.waiting[url], self.evidence[url] = 0.8, SEED

    @rule()
    def offer(self) -> None:
        offer = self.frontier.offer(self.now)
        busy = {offer.host.name for offer in self.under_way}
        open_to_ask = {
            url: self._worth(host, score)
            for url, score in self.waiting.items()
            if (host := url.split("/")[2]) not in busy and self.due.get(host, 0.0) <= self.now
        }
        if not open_to_ask:
            assert not isinstance(offer, Offer)
            assert (offer is None) == (not self.waiting)
            return
        assert isinstance(offer, Offer)
        assert offer.link.url in open_to_ask
        assert open_to_ask[offer.link.url] == max(open_to_ask.values())
        assert offer.link.priority == self.waiting[offer.link.url]
        self.under_way.append(offer)

    @precondition(lambda self: self.under_way)
    @rule(priority=scores)
    def goes_back_for_less_or_more(self, priority: float) -> None:
        offer = self.under_way.pop()
        self.frontier.requeue(offer, replace(offer.link, priority=priority), self.now)
        self.waiting[offer.link.url] = priority

    @precondition(lambda self: self.under_way)
    @rule(
        delay_s=st.sampled_from([0.0, 1.0, 5.0]),
        fate=st.sampled_from(["settle", "retry", "back"]),
        relevance=scores,
    )
    def finish(self, delay_s: float, fate: str, relevance: float) -> None:
        offer = self.under_way.pop(0)
        pace = HostPace(self.now + delay_s)
        self.due[offer.host.name] = pace.due_at
        if fate == "settle":
            host = offer.host
            host.asked = self.asked[host.name] = host.asked + 1
            host.barren = self.barren[host.name] = barren_after(host.barren, relevance)
            self.frontier.settle(offer, pace, self.now)
            del self.waiting[offer.link.url]
            self.done.add(offer.link.url)
        elif fate == "retry":
            self.frontier.retry(offer, pace, self.now)
        else:
            self.frontier.put_back(offer, pace, self.now)

    @rule(host=hosts, page=pages)
    def drop(self, host: int, page: int) -> None:
        url = f"http://{host}/{page}"
        link = QueuedLink(link_key(url), url, str(host), 0.0, 0.0)
        self.frontier.drop(link, self.now)
        if url in self.waiting and not self._is_under_way(url):
            del self.waiting[url]
            self.done.add(url)

    @rule(host=hosts, page=pages, priority=scores)
    def reprioritise(self, host: int, page: int, priority: float) -> None:
        url = f"http://{host}/{page}"
        self.frontier.reprioritise({url: priority}, self.now)
        if url in self.waiting and not self._is_under_way(url):
            self.waiting[url] = priority

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.frontier.save()
        self.store.close()
        self.under_way.clear()
        self._open()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self.frontier) == len(self.waiting)

    @invariant()
    def what_waits_is_told_with_its_evidence(self) -> None:
        urls = [f"http://{host}/{page}" for host in range(4) for page in range(10)]
        known = self.frontier.known_among([(url.split("/")[2], link_key(url)) for url in urls])
        assert known.settled == {link_key(url) for url in self.done}
        found = known.waiting
        assert {link.url: link.priority for link in found.values()} == {
            url: score for url, score in self.waiting.items() if not self._is_under_way(url)
        }
        for link in found.values():
            told = self.evidence[link.url]
            assert link.evidence == (() if told == SEED else (told,))

    @invariant()
    def each_host_knows_its_best_waiting_link(self) -> None:
        under_way = {offer.link.url for offer in self.under_way}
        best: dict[str, float] = {}
        for url, score in self.waiting.items():
            if url not in under_way:
                host = url.split("/")[2]
                best[host] = max(score, best.get(host, -1.0))
        known = {name: self.frontier.hosts.known(name) for name in map(str, range(4))}
        assert {name: host.best for name, host in known.items() if host} == {
            name: best.get(name) for name, host in known.items() if host
        }
        assert self.frontier.hosts.with_links == len(best)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


TestFrontierMachine = FrontierMachine.TestCase
TestFrontierMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
