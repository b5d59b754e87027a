"""The simulator runs the live crawl with another driver."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from focused.crawl.policy import Policy
from focused.orderings import PolicyInputs, find_policy
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused_lab.simulation.simulator import (
    Latency,
    RecordedNetwork,
    SimulatedRun,
    constant_latency,
    hashed_latency,
    simulate,
)
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, answer, html, page, redirect, served
from tests.support.whale_models import WhaleClassifier, WhaleScorer

QUICK = constant_latency(0.01)
ONE_AT_A_TIME = "concurrency = 1\npatience = 0"


def sea() -> MemoryWeb:
    """Four hosts, robots.txt, redirects, duplicates, dead links, a missing host."""
    whales = [f"http://b.test/whale-{n}" for n in range(6)]
    plain = [f"http://a.test/trade-{n}" for n in range(6)]
    pages = [
        page("http://a.test/", html("Start", *plain, "/whales", "http://gone.test/", "/secret/x")),
        page("http://a.test/whales", html("Whales", *whales, "/missing", text="whale " * 40)),
        page("http://a.test/robots.txt", "User-agent: *\nDisallow: /secret/\n"),
        page("http://a.test/secret/x", html("Secret")),
        redirect("http://c.test/moved", "http://d.test/whale-moved"),
        page("http://d.test/whale-moved", html("Moved", "http://a.test/", text="whale, moved")),
        page("http://d.test/trained", html("Trained")),
        answer("http://d.test/broken-type", 200, b"\x89PNG\r\n\x1a\n", content_type="image/png"),
    ]
    for n, url in enumerate(whales):
        links = (f"http://c.test/whale-{n}", "http://c.test/moved", f"http://d.test/trade-{n}")
        pages.append(page(url, html(f"Whale {n}", *links, text=f"whale number {n}")))
        pages.append(page(links[0], html(f"Cove {n}", "http://d.test/broken-type", text="same")))
        pages.append(page(links[2], html(f"Dull {n}", f"/trade-{n + 1}", text=f"dull {n}")))
    for n, url in enumerate(plain):
        pages.append(page(url, html(f"Trade {n}", f"/deep-{n}", text=f"trade {n}")))
        pages.append(page(f"http://a.test/deep-{n}", html("Copy", text="the same text")))
    return MemoryWeb(*pages)


def inputs(seed: int = 0) -> PolicyInputs:
    return PolicyInputs(WhaleClassifier(), WhaleScorer(), seed)


def policy_named(name: str, seed: int = 0) -> Policy:
    return find_policy(name)(inputs(seed))


def topic_in(folder: Path, **sections: Any) -> Topic:
    return load_topic(write_topic(folder, "http://a.test/", **sections))


def simulated(topic: Topic, policy: str, latency: Latency = QUICK) -> SimulatedRun:
    return simulate(
        topic, WhaleClassifier(), RecordedNetwork(sea()), policy_named(policy), latency=latency
    )


@pytest.mark.parametrize("policy", ["focused", "bfs"])
def test_spider_and_simulator_fetch_in_the_same_order(tmp_path, policy):
    path = write_topic(tmp_path, "http://a.test/", politeness=ONE_AT_A_TIME)
    with served(sea()) as site:
        live = crawl(path, site.address, FOCUSED_POLICY=policy, FOCUSED_FOLDER=tmp_path / "out")
    assert live.status == 0, live.output
    ours = simulated(load_topic(path), policy).pages
    same = ["url", "outcome", "failure", "depth", "parent", "duplicate_of", "on_topic"]
    rows, live_rows = (pages[same].fillna("").to_dict("records") for pages in (ours, live.pages))
    assert rows == live_rows
    asked = [f"{x.scheme}://{x.host}{x.path}" for x in site.accesses if x.path != "/robots.txt"]
    in_web = [url for url in simulated(load_topic(path), policy).asked if "gone.test" not in url]
    assert in_web == [url for url in asked if "gone.test" not in url]


def test_the_same_arguments_give_the_same_crawl(tmp_path):
    topic = topic_in(tmp_path, delay_s=0.5, politeness="concurrency = 3")
    runs = [simulated(topic, "focused", hashed_latency(0.2, seed=7)) for _ in range(2)]
    assert runs[0].asked == runs[1].asked
    assert runs[0].pages.equals(runs[1].pages)
    assert runs[0].simulated_s == runs[1].simulated_s


def test_hosts_are_given_their_delay_on_the_simulated_clock(tmp_path):
    topic = topic_in(tmp_path, delay_s=2.0)
    pages = simulated(topic, "bfs", constant_latency(0.1)).pages
    answered = pages[pages["status"] > 0]
    gaps = answered.groupby("host")["fetched_at"].diff().dropna()
    assert gaps.min() >= 2.0 + 0.1 - 1e-9


def test_no_more_requests_are_under_way_than_the_topic_allows(tmp_path):
    one, three = (
        simulated(topic_in(tmp_path / n, politeness=f"concurrency = {n}"), "bfs").simulated_s
        for n in ("1", "3")
    )
    assert one / 3 <= three < one


def test_it_stops_at_the_requested_number_of_pages(tmp_path):
    topic = topic_in(tmp_path)
    run = simulate(
        topic,
        WhaleClassifier(),
        RecordedNetwork(sea()),
        policy_named("bfs"),
        latency=QUICK,
        pages=5,
        training_urls=frozenset({"http://a.test/"}),
    )
    fetched = run.pages[run.pages["outcome"] == "fetched"]
    assert (len(fetched), int(fetched["training"].sum())) == (6, 1)
    assert run.end_reason == "page budget spent"


def test_the_topics_folder_stays_untouched(tmp_path):
    topic = topic_in(tmp_path)
    simulated(topic, "bfs")
    assert not topic.output.folder.exists()


def test_a_host_cap_holds(tmp_path):
    topic = topic_in(tmp_path)
    capped = replace(topic, scope=replace(topic.scope, max_pages_per_host=2))
    pages = simulated(capped, "bfs").pages
    assert pages[pages["outcome"] == "fetched"].groupby("host").size().max() == 2


def whales_found_early(policy: str, folder: Path, seed: int = 0) -> float:
    topic = topic_in(folder, politeness=ONE_AT_A_TIME)
    run = simulate(
        topic, WhaleClassifier(), RecordedNetwork(sea()), policy_named(policy, seed), latency=QUICK
    )
    fetched = run.pages[run.pages["outcome"] == "fetched"]["url"].head(8)
    return float(fetched.str.contains("whale").mean())


def test_policies_that_look_for_whales_find_them_before_breadth_first(tmp_path):
    blind = whales_found_early("bfs", tmp_path / "bfs")
    for policy in ("focused", "anchor"):
        assert whales_found_early(policy, tmp_path / policy) > blind, policy


def test_depth_first_takes_what_was_found_last(tmp_path):
    topic = topic_in(tmp_path, politeness=ONE_AT_A_TIME, scope='allow_hosts = ["a.test"]')
    asked = simulated(topic, "dfs").asked
    assert asked[:3] == ["http://a.test/", "http://a.test/whales", "http://a.test/missing"]


def test_each_seed_draws_another_random_order(tmp_path):
    topic = topic_in(tmp_path, politeness=ONE_AT_A_TIME)
    orders = {
        tuple(
            simulate(
                topic,
                WhaleClassifier(),
                RecordedNetwork(sea()),
                policy_named("random", seed),
                latency=QUICK,
            ).asked
        )
        for seed in range(3)
    }
    assert len(orders) == 3
