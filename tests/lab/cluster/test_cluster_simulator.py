"""The simulator drives the partitions of a cluster on one clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from focused.cluster.assignment import PartitionMap, SiteUnit
from focused.cluster.routing import LinkMode
from focused.link_scoring.apprentice import Apprentice
from focused.orderings import Policy, PolicyInputs, find_policy
from focused.topic import Budget, Topic
from focused.topic.topic_file import load_topic
from focused_lab.cluster.cluster_simulator import (
    ClusterRun,
    ClusterSettings,
    simulate_cluster,
)
from focused_lab.simulation.simulator import RecordedNetwork, hashed_latency, simulate
from tests.support.crawling import write_topic
from tests.support.keyword_guide import WhaleClassifier
from tests.support.recorded_web import MemoryWeb, html, page

HOSTS = 12
PAGES = 8
LATENCY = hashed_latency(0.2, seed=1)
INDEPENDENT = {"shares_learning": False, "shares_budget": False, "shares_contents": False}
FIRST = "http://h0.test/"


def web() -> MemoryWeb:
    """Twelve hosts; each page links to the next of its host and to one of another host."""
    pages = []
    for host in range(HOSTS):
        for n in range(PAGES):
            text = f"whale {host} {n} " * 20 if host % 3 == 0 else f"trade {host} {n} " * 20
            links = (f"/{n + 1}", f"http://h{(host * 5 + n + 1) % HOSTS}.test/{(n * 3) % PAGES}")
            pages.append(page(url_of(host, n), html(f"{host} {n}", *links, text=text)))
    return MemoryWeb(*pages)


def url_of(host: int, number: int) -> str:
    return f"http://h{host}.test/{number or ''}"


def policy(name: str = "focused") -> Policy:
    classifier = WhaleClassifier()
    return find_policy(name)(PolicyInputs(classifier, Apprentice(classifier), 1))


@pytest.fixture
def subject(tmp_path: Path) -> Topic:
    topic = load_topic(write_topic(tmp_path, FIRST, delay_s=0.5))
    return replace(topic, budget=Budget(), scope=replace(topic.scope, near_duplicates=False))


def cluster(subject: Topic, partitions: int, pages: int | None = None, **options) -> ClusterRun:
    return simulate_cluster(
        replace(subject, budget=Budget(pages=pages)),
        WhaleClassifier(),
        RecordedNetwork(web()),
        policy,
        ClusterSettings(partitions, **{"workers": partitions, **options}),
        latency=LATENCY,
    )


def single(subject: Topic, pages: int | None = None) -> list[str]:
    run = simulate(
        replace(subject, budget=Budget(pages=pages)),
        WhaleClassifier(),
        RecordedNetwork(web()),
        policy(),
        latency=LATENCY,
    )
    return fetched(run.pages)


def fetched(pages) -> list[str]:
    return pages.loc[pages["outcome"] == "fetched", "url"].tolist()


@pytest.mark.parametrize("unit", list(SiteUnit))
@pytest.mark.parametrize(("partitions", "workers"), [(1, 1), (3, 1), (4, 4), (9, 2)])
def test_by_exchange_a_cluster_fetches_what_a_single_crawl_does_each_page_once(
    subject: Topic, unit: SiteUnit, partitions: int, workers: int
) -> None:
    run = cluster(subject, partitions, workers=workers, unit=unit)
    urls = fetched(run.pages)
    assert len(urls) == len(set(urls))
    assert set(urls) == set(single(subject))


def test_each_page_is_fetched_by_the_partition_that_it_belongs_to(subject: Topic) -> None:
    run = cluster(subject, 4)
    owner_of = PartitionMap(4).of_url
    assert run.fetched["partition"].tolist() == [owner_of(url) for url in run.fetched["url"]]


def reached_over_own_links() -> set[str]:
    """The pages that links within the first page's partition lead to."""
    owner_of = PartitionMap(4).of_url
    recorded = {url_of(host, n) for host in range(HOSTS) for n in range(PAGES)}
    reached, left = {FIRST}, [(0, 0)]
    while left:
        host, n = left.pop()
        for target in ((host, n + 1), ((host * 5 + n + 1) % HOSTS, n * 3 % PAGES)):
            url = url_of(*target)
            if url in recorded - reached and owner_of(url) == owner_of(FIRST):
                reached.add(url)
                left.append(target)
    return reached


def test_a_firewall_loses_what_only_links_of_other_partitions_lead_to(subject: Topic) -> None:
    run = cluster(subject, 4, mode=LinkMode.FIREWALL, **INDEPENDENT)
    assert set(fetched(run.pages)) == reached_over_own_links() != set(single(subject))
    assert run.sent == 0
    assert run.dropped > 0


def test_crossing_over_a_partition_fetches_pages_of_others_after_its_own(subject: Topic) -> None:
    run = cluster(subject, 4, mode=LinkMode.CROSSOVER, **INDEPENDENT)
    assert set(fetched(run.pages)) == set(single(subject))
    own, owner_of = PartitionMap(4).of_url(FIRST), PartitionMap(4).of_url
    assert set(run.fetched["partition"]) == {own}
    first = next(i for i, url in enumerate(run.fetched["url"]) if owner_of(url) != own)
    firewall = cluster(subject, 4, mode=LinkMode.FIREWALL, **INDEPENDENT)
    assert first == len(firewall.fetched)


@pytest.mark.parametrize("mode", list(LinkMode))
@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_the_budget_of_all_partitions_is_never_exceeded(
    subject: Topic, mode: LinkMode, partitions: int
) -> None:
    options = {} if mode is LinkMode.EXCHANGE else INDEPENDENT
    run = cluster(subject, partitions, pages=30, mode=mode, **options)
    assert len(run.fetched) <= 30
    if mode is LinkMode.EXCHANGE:
        assert len(run.fetched) == 30


def test_the_same_arguments_give_the_same_run(subject: Topic) -> None:
    one, other = (cluster(subject, 4, pages=40) for _ in range(2))
    assert fetched(one.pages) == fetched(other.pages)
    assert (one.sent, one.suppressed, one.simulated_s) == (
        other.sent,
        other.suppressed,
        other.simulated_s,
    )


def test_without_exchanged_priorities_a_cluster_fetches_more_at_once_but_worse_pages(
    subject: Topic,
) -> None:
    """A cluster that shares its budget waits for the best links, as a single crawl does."""

    def whales(urls: list[str]) -> int:
        return sum(int(url.split(".")[0][8:]) % 3 == 0 for url in urls)

    together = cluster(subject, 8, pages=50)
    apart = cluster(subject, 8, pages=50, shares_budget=False)
    assert whales(fetched(together.pages)) > whales(fetched(apart.pages))


def test_replicated_urls_are_never_sent(subject: Topic) -> None:
    urls = sorted(single(subject))
    run = cluster(subject, 4, replicated=urls)
    missing = cluster(subject, 4).sent - run.sent
    assert set(fetched(run.pages)) == set(urls)
    assert run.replicated > 0
    assert missing > 0


def test_links_wait_for_the_next_batch(subject: Topic) -> None:
    quick, slow = (cluster(subject, 4, batch_s=batch_s) for batch_s in (0.1, 60.0))
    assert set(fetched(quick.pages)) == set(fetched(slow.pages))
    assert slow.simulated_s > quick.simulated_s + 60


@pytest.mark.parametrize(("shares_contents", "duplicates"), [(True, 1), (False, 0)])
def test_a_copy_on_the_host_of_another_partition_is_a_duplicate(
    subject: Topic, shares_contents: bool, duplicates: int
) -> None:
    near, far = FIRST, "http://h3.test/"
    assert PartitionMap(4).of_url(near) != PartitionMap(4).of_url(far)
    same = html("Same", text="whale and calf " * 30)
    run = simulate_cluster(
        subject,
        WhaleClassifier(),
        RecordedNetwork(MemoryWeb(page(near, same), page(far, same))),
        policy,
        ClusterSettings(4, shares_contents=shares_contents),
        latency=LATENCY,
        seeds=[near, far],
    )
    assert run.fetched["duplicate_of"].notna().sum() == duplicates
