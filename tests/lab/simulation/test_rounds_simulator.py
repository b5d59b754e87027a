"""The simulator drives the partitions and the driver of a crawl in rounds on one clock."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from focused.crawl.policy import Policy
from focused.link_scoring.apprentice import Apprentice
from focused.orderings import PolicyInputs, find_policy
from focused.rounds.partition import PartitionMap
from focused.rounds.process_supervision import Limits
from focused.topic import Budget, Topic
from focused.topic.topic_file import load_topic
from focused_lab.simulation.rounds_simulator import RoundsRun, simulate_rounds
from focused_lab.simulation.simulator import RecordedNetwork, hashed_latency, simulate
from tests.support.crawling import write_topic
from tests.support.recorded_web import MemoryWeb, html, page
from tests.support.whale_models import WhaleClassifier

HOSTS = 12
PAGES = 8
LATENCY = hashed_latency(0.2, seed=1)
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


def policy() -> Policy:
    classifier = WhaleClassifier()
    return find_policy("focused")(PolicyInputs(classifier, Apprentice(classifier), 1))


@pytest.fixture
def subject(tmp_path: Path) -> Topic:
    topic = load_topic(write_topic(tmp_path, FIRST, delay_s=0.5))
    return replace(topic, budget=Budget(), scope=replace(topic.scope, near_duplicates=False))


def rounds(
    subject: Topic,
    partitions: int,
    *,
    pages: int | None = None,
    recorded: MemoryWeb | None = None,
    seeds: Sequence[str] | None = None,
    unit: str = "domain",
) -> RoundsRun:
    return simulate_rounds(
        replace(subject, budget=Budget(pages=pages)),
        WhaleClassifier(),
        RecordedNetwork(web() if recorded is None else recorded),
        policy,
        partitions,
        latency=LATENCY,
        seeds=seeds,
        unit=unit,
        limits=Limits(round_s=5.0),
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


def fetched(pages: pd.DataFrame) -> list[str]:
    urls: list[str] = pages.loc[pages["outcome"] == "fetched", "url"].tolist()
    return urls


@pytest.mark.parametrize("unit", ["domain", "host"])
@pytest.mark.parametrize("partitions", [1, 4, 9])
def test_partitions_fetch_what_a_single_crawl_does_each_page_once_in_its_own(
    subject, unit, partitions
):
    run = rounds(subject, partitions, unit=unit)
    urls = fetched(run.pages)
    assert len(urls) == len(set(urls))
    assert set(urls) == set(single(subject))
    owner_of = PartitionMap(partitions, unit).of_url
    assert run.pages["partition"].tolist() == [owner_of(url) for url in run.pages["url"]]
    assert run.end_reason == "no link is left"
    assert (run.sent > 0) == (partitions > 1)


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_the_budget_of_all_partitions_is_kept_exactly(subject, partitions):
    run = rounds(subject, partitions, pages=30)
    assert len(fetched(run.pages)) == 30
    assert run.end_reason == "page budget spent"


def test_the_same_arguments_give_the_same_run(subject):
    one, other = (rounds(subject, 4, pages=40) for _ in range(2))
    assert fetched(one.pages) == fetched(other.pages)
    assert (one.sent, one.simulated_s) == (other.sent, other.simulated_s)


def test_partitions_prefer_the_best_links_of_all(subject):
    def whales(urls: list[str]) -> int:
        return sum(int(url.split(".")[0][8:]) % 3 == 0 for url in urls)

    patient = fetched(rounds(subject, 8, pages=40).pages)
    hasty = replace(subject, politeness=replace(subject.politeness, patience=0.0))
    assert whales(patient) > whales(fetched(rounds(hasty, 8, pages=40).pages))


def test_a_copy_that_another_partition_fetched_before_is_a_duplicate(subject):
    near, far = FIRST, "http://h3.test/"
    assert PartitionMap(4).of_url(near) != PartitionMap(4).of_url(far)
    same = html("Same", text="whale and calf " * 30)
    way = "http://h1.test/"
    recorded = MemoryWeb(page(near, same), page(way, html("Way", far)), page(far, same))
    run = rounds(subject, 4, recorded=recorded, seeds=[near, way])
    duplicates = run.pages[run.pages["duplicate_of"].notna()]
    assert duplicates["url"].tolist() == [far]
