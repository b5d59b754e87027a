"""A driver's own requests that are refused: the driver is told of each."""

from dataclasses import replace
from pathlib import Path

import pytest

from focused.crawl import Done, RefusedRequest
from focused.frontier.queued_link import link_key
from focused.topic import Scope
from focused.web.page import FailureKind
from tests.support.simulated import Simulation, failed, moved, page, site, topic, with_politeness

A, B = "http://a.test/", "http://b.test/"


def own(simulation: Simulation, *urls: str, payload: str = "reported") -> Simulation:
    for url in urls:
        key = link_key(f"{url} {payload}")
        simulation.crawl.enqueue_url(url, 1.0, simulation.now, key=key, payload=payload)
    return simulation


def refused(simulation: Simulation, most_steps: int = 50) -> list[tuple[str, str]]:
    """What is refused until the crawl is done, or waits for hours."""
    found = []
    for _ in range(most_steps):
        suspended = simulation.crawl.refuse_suspended(lambda payload: payload == "reported", 0.0)
        began, step = simulation.now, simulation.step()
        found += [*suspended, *([step] if isinstance(step, RefusedRequest) else [])]
        if isinstance(step, Done) or simulation.now - began > 3_000:
            break
    return [(each.link.url, each.failure) for each in found]


def dead(kind: FailureKind) -> dict:
    return site(failed(f"{B}robots.txt", kind), failed(B, kind))


@pytest.fixture
def begun(simulate, tmp_path: Path):
    return lambda web, **options: simulate(with_politeness(topic(tmp_path), **options), web)


@pytest.mark.parametrize("kind", [FailureKind.CONNECT, FailureKind.NO_HOST, FailureKind.DNS])
def test_they_are_refused_when_their_host_is_suspended(begun, kind):
    simulation = own(begun(dead(kind)), B, f"{B}2")
    assert sorted(refused(simulation)) == [(B, kind), (f"{B}2", kind)]
    assert len(simulation.crawl.frontier) == 0
    assert simulation.rows[f"{B}2"]["failure"] == kind
    assert simulation.crawl.counters.failures == {kind: 2}


def test_those_that_nobody_asks_about_wait_for_the_host(begun):
    simulation = own(begun(dead(FailureKind.CONNECT)), B, payload="silent")
    assert refused(simulation) == []
    assert len(simulation.crawl.frontier) == 1


def test_one_that_comes_while_its_host_is_suspended_is_refused_at_once(begun):
    simulation = own(begun(dead(FailureKind.CONNECT)), B)
    refused(simulation)
    asked = len(simulation.asked)
    simulation.now = simulation.asked[-1][0] + 60.0
    assert refused(own(simulation, f"{B}late")) == [(f"{B}late", FailureKind.CONNECT)]
    assert len(simulation.asked) == asked


def test_one_that_comes_when_its_host_is_back_is_requested(begun):
    down = failed(f"{B}robots.txt", FailureKind.CONNECT)
    up = page(f"{B}robots.txt")
    web = site(page(f"{B}late")) | {f"{B}robots.txt": [down] * 3 + [up]}
    simulation = own(begun(web), B)
    refused(simulation)
    simulation.now += 4_000.0
    assert refused(own(simulation, f"{B}late", f"{B}later")) == []
    assert simulation.urls == [f"{B}late", f"{B}later"]


def test_they_are_refused_at_a_host_that_is_dead(begun):
    simulation = own(begun(dead(FailureKind.CONNECT), suspend_s=0.0), B, payload="silent")
    assert refused(simulation) == [(B, FailureKind.CONNECT)]


def test_a_redirect_to_what_is_out_of_scope_tells_why(simulate, tmp_path):
    mine = replace(topic(tmp_path), scope=Scope(deny_hosts=("b.test",)))
    simulation = own(simulate(mine, site(moved(A, B))), A).run()
    (settled,) = simulation.settled
    assert (settled.outcome, bool(settled.redirect_refusal)) == ("redirected", True)


def test_a_page_that_is_requested_again_does_not_make_its_host_seem_unproductive(
    simulate, tmp_path
):
    words = " ".join(f"word{number}" for number in range(50))
    simulation = simulate(topic(tmp_path), site(page(A, text=f"whale {words}")))
    for number in range(30):
        own(simulation, A, payload=str(number)).run()
    assert len(simulation.settled) == 30
    assert simulation.crawl.frontier.hosts.get("a.test").unproductive == pytest.approx(0.1)
    assert simulation.crawl.enqueuer.refusal_reason(f"{A}other", simulation.settled[-1]) is None
