"""A concurrent crawl and its simulation have the same harvest, within a tolerance."""

import random

import pandas as pd
import pytest

from focused.orderings import PolicyInputs, find_policy
from focused.topic.topic_file import load_topic
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from focused_lab.simulation.simulator import RecordedNetwork, constant_latency, simulate
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served
from tests.support.whale_models import WhaleClassifier, WhaleScorer

TOLERANCE = 0.05
"""Of harvest, as a share of pages; docs/how-to/compare.md states it."""

LATENCY_S = 0.3  # long against what the spider itself needs for a page
HOSTS, PAGES_PER_HOST, BUDGET = 12, 40, 150


def archipelago() -> MemoryWeb:
    """Hosts with more or fewer pages on whales, which link to their like more often than not."""
    rng = random.Random(5)
    urls = {True: list[str](), False: list[str]()}
    for host in range(HOSTS):
        for n in range(PAGES_PER_HOST):
            on_topic = rng.random() < host / HOSTS
            urls[on_topic].append(f"http://h{host}.test/{n}")
    pages = []
    for on_topic, own in urls.items():
        for url in own:
            links = rng.sample(own, 5) + rng.sample(urls[not on_topic], 4)
            text = f"{'whale' if on_topic else 'trade'} {url}"
            pages.append(page(url, html("A page", *links, text=text)))
    return MemoryWeb(page("http://h0.test/start", html("Start", *urls[False][:20])), *pages)


def harvest(pages: pd.DataFrame) -> float:
    fetched = pages[pages["outcome"] == "fetched"].head(BUDGET)
    assert len(fetched) == BUDGET
    return float(fetched["on_topic"].mean())


@pytest.mark.parametrize("policy", ["focused", "best-first", "bfs"])
def test_spider_and_simulator_bring_the_same_harvest_concurrently(tmp_path, policy):
    topic = write_topic(
        tmp_path,
        "http://h0.test/start",
        delay_s=0.05,
        politeness="concurrency = 8",
        budget=f"pages = {BUDGET}",
    )
    slow = FaultPlan((parse_fault(f"*:kind=latency,latency_s={LATENCY_S}"),))
    with served(archipelago(), slow) as site:
        live = crawl(topic, site.address, FOCUSED_POLICY=policy, FOCUSED_FOLDER=tmp_path / "out")
    assert live.status == 0, live.output
    simulated = simulate(
        load_topic(topic),
        WhaleClassifier(),
        RecordedNetwork(archipelago()),
        find_policy(policy)(PolicyInputs(WhaleClassifier(), WhaleScorer())),
        latency=constant_latency(LATENCY_S),
    )
    difference = harvest(live.pages) - harvest(simulated.pages)
    assert abs(difference) <= TOLERANCE
