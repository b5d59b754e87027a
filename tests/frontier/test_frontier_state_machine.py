"""The frontier on disk against the reference: any calls in any order, with crashes."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from focused.frontier import link_table
from focused.frontier.disk_frontier import NotYet, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.host_scheduler import HostLimits
from focused.frontier.queued_link import Exploration, QueuedLink, link_key, unproductive_after
from focused.storage import state_store as store_module
from tests.frontier.reference_frontier import Memory, ReferenceFrontier
from tests.frontier.steps import Frontier, FrontierProcess, drop_host, link
from tests.support.examples import examples

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Thousands of openings wait for no disk here."""
HOSTS, PAGES = 5, 8
CORNERS = [(host, page) for host in range(HOSTS) for page in (0, 1)]
MANY_SYNCS = 20
scores = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
hosts, pages = st.integers(0, HOSTS - 1).map(str), st.integers(0, PAGES - 1)
urls = st.builds("http://{}/{}".format, hosts, pages)
delays_s = st.sampled_from([0.0, 1.0, 5.0])
limits = st.none() | st.integers(1, 6)
setups = st.fixed_dictionaries(
    {
        "exploration": st.sampled_from(
            [Exploration(), Exploration(new_host_bonus=0.5, unproductive_penalty=0.25)]
        ),
        "limits": st.builds(
            HostLimits, st.none() | st.integers(2, 9), st.none() | st.integers(3, 12)
        ),
        "address_delay_s": st.sampled_from([0.0, 0.5, 2.0]),
    }
)


class FrontierMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        self.now = 0.0
        self.in_flight: list[tuple[Offer, Offer]] = []
        self.shared = False
        """Whether hosts were ever found at an address: then a frontier may wake up early."""

    @initialize(
        setup=setups,
        checkpoint_bytes=st.sampled_from([1, 1_000, 2_000_000]),
        recent_links=st.sampled_from([1, 3, 4_096]),
        first=st.lists(scores, min_size=HOSTS, max_size=HOSTS),
        at=st.just([]) | st.lists(st.integers(0, 1), min_size=HOSTS, max_size=HOSTS),
    )
    def begin(
        self,
        setup: dict,
        checkpoint_bytes: int,
        recent_links: int,
        first: list[float],
        at: list[int],
    ) -> None:
        self.patches = [
            mock.patch.object(store_module, "_CHECKPOINT_BYTES", checkpoint_bytes),
            mock.patch.object(link_table, "_CACHE_SIZE", recent_links),
        ]
        for patch in self.patches:
            patch.start()
        self.setup = setup
        self.process, self.committed = FrontierProcess(self.folder / "state"), Memory()
        self._open_both()
        self.push(
            [(f"http://{host}/{page}", first[host], 1) for host, page in CORNERS], 0, "", False
        )
        for host, address in enumerate(at):
            self.is_found_at(str(host), address)

    def _open_both(self) -> None:
        self.in_flight.clear()
        self.disk = self.process.open(**self.setup)
        self.reference = ReferenceFrontier(self.committed.after_a_crash(), **self.setup)

    # Links

    @rule(
        found=st.lists(st.tuples(urls, scores, st.integers(0, 3)), max_size=5),
        depth=st.integers(0, 3),
        by=urls,
        joined=st.booleans(),
    )
    def push(self, found: list[tuple[str, float, int]], depth: int, by: str, joined: bool) -> None:
        for url, score, feature in found:
            features = (float(feature),) if feature else ()
            new = link(url, score, features=features, depth=depth, parent=by, found_at=self.now)
            assert self.disk.push(new, self.now, joined=joined) == self.reference.push(
                new, self.now, joined=joined
            )

    @rule(url=urls, verb=st.sampled_from(["drop", "drop", "drop host", "forget", "forget"]))
    def take_out(self, url: str, verb: str) -> None:
        gone = link(url, 0.0)
        results = []
        for frontier in (self.disk, self.reference):
            if verb == "drop":
                results.append(int(frontier.drop(gone, self.now)))
            elif verb == "forget":
                results.append(int(frontier.forget(gone.host, gone.key)))
            else:
                results.append(drop_host(frontier, gone.host, self.now))
        assert results[0] == results[1]

    @rule(priorities=st.dictionaries(urls, scores, max_size=5))
    def reprioritise(self, priorities: dict[str, float]) -> None:
        assert self.disk.reprioritise(priorities, self.now) == self.reference.reprioritise(
            priorities, self.now
        )

    @rule(
        host=hosts,
        first=st.integers(0, 2),
        count=st.integers(1, 4),
        moved=st.lists(scores, min_size=4, max_size=4),
    )
    def rescore_best(self, host: str, first: int, count: int, moved: list[float]) -> None:
        asked: list[list[tuple[QueuedLink, int]]] = []
        for frontier in (self.disk, self.reference):
            asked.append([])

            def again(waiting: Sequence[QueuedLink], found: Sequence[int]) -> Sequence[QueuedLink]:
                before = len(asked[-1])
                asked[-1].extend(zip(waiting, found, strict=True))
                return [replace(link, priority=moved[n]) for n, link in enumerate(waiting, before)]

            frontier.rescore_best(
                frontier.hosts.get(host), again, range(first, first + count), self.now
            )
        assert asked[0] == asked[1]

    # Fetches

    @rule(at_most=st.integers(1, 4), patience_s=st.sampled_from([0.0, 0.0, 1.0, 4.0]))
    def offer(self, at_most: int, patience_s: float) -> None:
        for _ in range(at_most):
            if not isinstance(self._offer(patience_s), Offer):
                return

    def _offer(self, patience_s: float = 0.0) -> NotYet | Offer | None:
        ours = self.disk.offer(self.now, patience_s)
        if self.shared and patience_s:
            # What is better soon may hang on an address: then a frontier may wait for too much.
            patience_s = 0.0
            if isinstance(ours, NotYet):
                assert ours.until is None or ours.until > self.now
                ours = self.disk.offer(self.now)
        self.reference.of_equals = ours.host.name if isinstance(ours, Offer) else None
        theirs = self.reference.offer(self.now, patience_s)
        assert type(ours) is type(theirs), (ours, theirs)
        if isinstance(ours, Offer):
            assert (ours.link, ours.queue_key) == (theirs.link, theirs.queue_key)
            self.in_flight.append((ours, theirs))
        elif isinstance(ours, NotYet):
            self._must_wake_in_time(ours, theirs)
        return ours

    def _must_wake_in_time(self, ours: NotYet, theirs: NotYet) -> None:
        if not self.shared:
            assert ours == theirs
        assert ours.until is None or ours.until > self.now
        if theirs.until is not None:
            assert ours.until is not None
            assert ours.until <= theirs.until

    @precondition(lambda self: self.in_flight)
    @rule(
        which=st.integers(0, 9),
        delay_s=delays_s,
        fate=st.sampled_from(["fetched", "failed", "retry", "back"]),
        relevance=scores,
        in_trouble=st.booleans(),
    )
    def finish(
        self, which: int, delay_s: float, fate: str, relevance: float, in_trouble: bool
    ) -> None:
        both = self.in_flight.pop(which % len(self.in_flight))
        pace = HostPace(self.now + delay_s, int(in_trouble))
        for frontier, offer in zip((self.disk, self.reference), both, strict=True):
            if fate == "fetched":
                frontier.hosts.count_fetched(offer.host)
                frontier.hosts.keep_robots(offer.host, "http", [self.now])
            if fate in ("fetched", "failed"):
                offer.host.asked += 1
                offer.host.unproductive = unproductive_after(offer.host.unproductive, relevance)
                frontier.settle(offer, pace, self.now)
            elif fate == "retry":
                frontier.retry(offer, pace, self.now)
            else:
                frontier.put_back(offer, pace, self.now)

    @precondition(lambda self: self.in_flight)
    @rule(priority=scores)
    def goes_back_for_less_or_more(self, priority: float) -> None:
        both = self.in_flight.pop()
        for frontier, offer in zip((self.disk, self.reference), both, strict=True):
            frontier.requeue(offer, replace(offer.link, priority=priority), self.now)

    # Hosts

    @rule(host=hosts, address=st.integers(0, 2))
    def is_found_at(self, host: str, address: int) -> None:
        self.shared = True
        for frontier in (self.disk, self.reference):
            frontier.hosts.assign_address(frontier.hosts.get(host), f"192.0.2.{address}")

    @rule(host=hosts, delay_s=delays_s)
    def is_asked_for_something_else(self, host: str, delay_s: float) -> None:
        for frontier in (self.disk, self.reference):
            asked = frontier.hosts.get(host)
            asked.pace = HostPace(max(asked.pace.due_at, self.now + delay_s))
            frontier.hosts.refresh(asked, self.now)

    # Time, and the end of it

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def sleep_until_told(self) -> None:
        offered = self._offer()
        if isinstance(offered, NotYet) and offered.until is not None:
            self.now = offered.until

    @rule(also_synced=st.booleans())
    def commit(self, also_synced: bool) -> None:
        self.process.commit()
        self.committed = self.reference.memory.after_a_crash()
        if also_synced:
            self.process.sync()

    @rule(in_order=st.booleans(), just_synced=st.booleans())
    def ends_and_begins_again(self, in_order: bool, just_synced: bool) -> None:
        if just_synced:
            for _ in range(MANY_SYNCS):
                self.process.sync()
        if in_order:
            self.process.close()
            self.committed = self.reference.memory
        else:
            self.process.crash()
        self._open_both()

    @invariant()
    def both_hold_the_same(self) -> None:
        assert (len(self.disk), self.disk.found) == (len(self.reference), self.reference.found)
        assert self._interrupted(self.disk) == self._interrupted(self.reference)
        known = [
            (str(host), link_key(f"http://{host}/{page}"))
            for host in range(HOSTS)
            for page in range(PAGES)
        ]
        assert self.disk.lookup_links(known) == self.reference.lookup_links(known)

        self._both_tell_the_same_of_hosts()

    def _both_tell_the_same_of_hosts(self) -> None:
        ours, theirs = self.disk.hosts, self.reference.hosts
        assert (len(ours), ours.busy) == (len(theirs), theirs.busy)
        assert ours.with_links == theirs.with_links
        assert {host.name for host in ours.full()} == {host.name for host in theirs.full()}
        for host in ours:
            twin = theirs.known(host.name)
            assert twin is not None
            assert [*self.disk.waiting(host)] == [*self.reference.waiting(twin)]
            assert self.disk.count(host) == self.reference.count(twin)
            assert ours.robots(host) == theirs.robots(twin)
            assert (host.address, host.pace) == (twin.address, twin.pace)
            assert (host.asked, host.fetched, host.unproductive) == (
                twin.asked,
                twin.fetched,
                twin.unproductive,
            )
            if host.in_turn:
                assert ours.worth(host) == theirs.worth(twin)

    def _interrupted(self, frontier: Frontier) -> set[tuple[str, float]]:
        return {(host.name, since) for host, since in frontier.interrupted}

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            try:
                self._all_that_may_be_asked_comes()
            finally:
                self.process.crash()
                for patch in self.patches:
                    patch.stop()
        shutil.rmtree(self.folder)

    def _all_that_may_be_asked_comes(self) -> None:
        """The crawl goes to its end, however it stands: nothing stalls."""
        for _ in range(10 * HOSTS * PAGES):
            offered = self._offer()
            if offered is None:
                return
            if isinstance(offered, Offer) or (offered.until is None and self.in_flight):
                self.finish(0, 1.0, "fetched", 1.0, False)
            else:
                assert offered.until is not None, "stalled: nobody is asked, and nobody falls due"
                self.now = offered.until
        raise AssertionError("the crawl does not end")


TestFrontierMachine = FrontierMachine.TestCase
TestFrontierMachine.settings = settings(
    max_examples=examples(250), stateful_step_count=40, deadline=None
)
