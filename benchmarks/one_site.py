"""Harvest on the documentation of single projects, from a seed far from the topic.

``python benchmarks/one_site.py`` crawls single hosts of a recorded web that have pages of a topic.
Each crawl stays on its host and starts from one of the pages that are the most links away. With
``--narrow`` one way leads to the topic: of the pages off topic that link to it all but one are
missing, at their recorded URLs. It prints for each topic and host the relevant pages that each
ordering found, and the pages fetched until the fifth of them.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from harvest import PARTS, ROOT, Part, build, collect, parts_of
from numpy.typing import NDArray

from focused.topic import Budget
from focused.topic.topic_file import load_topic
from focused.web.http_response import outcome_from_response
from focused.web.page import Failed, Fetched, Outcome, Page
from focused.web.urls import host_of
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, simulate_trial
from focused_lab.simulation.simulator import Network
from focused_lab.trials import prepare_topic
from focused_lab.web_sources import ExperimentWeb

POLICIES = ("focused", "focused-without-meaning-discount", "focused-without-meaning")
_EARLY_PAGES = 5
_MIN_FAR_PAGES = 100
_MIN_REACHED = 10


@dataclass(frozen=True, slots=True)
class Start:
    """A seed of a topic on one host, ``distance`` links from the topic.

    ``missing`` are URLs of pages that the host does not have in this crawl.
    """

    topic: str
    host: str
    repeat: int
    relevant: int
    distance: int
    seeds: tuple[str, ...]
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl.

    ``relevant`` pages are on the host; the seed is ``distance`` links from the topic. ``harvest``
    is the share of the fetched pages that are relevant; ``to_fifth`` are the pages fetched until
    the fifth of these, or the budget.
    """

    topic: str
    host: str
    repeat: int
    relevant: int
    distance: int
    policy: str
    harvest: float
    to_fifth: int


def main() -> int:
    """Crawl and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", help="names, with commas between (default: all of the web)")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--budget", type=int, default=200, help="pages per crawl (default: 200)")
    parser.add_argument("--repeat", type=int, default=5, help="starts on a host (default: 5)")
    parser.add_argument("--hosts", type=int, default=5, help="hosts of a topic (default: 5)")
    parser.add_argument("--least", type=int, default=12, help="relevant pages of a host")
    parser.add_argument("--narrow", action="store_true", help="one way leads to the topic")
    parser.add_argument("--web", default=PARTS[0].web.name)
    parser.add_argument("--out", type=Path, help="write the rows into this JSON file")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()
    os.chdir(ROOT)
    (part,) = parts_of(options.web)
    build(part)
    print_summary(collect(crawl_hosts(part, options), options.out), options.policies.split(","))
    return 0


def crawl_hosts(part: Part, options: argparse.Namespace) -> Iterator[Row]:
    """Crawl all starts on the selected hosts of a web with all policies."""
    context = WebContext(ExperimentWeb(part.web.name, part.web))
    try:
        for name in options.topics.split(",") if options.topics else part.topics:
            topic = load_topic(Path(f"topics/{name}.toml"))
            context.select_topic(prepare_topic(topic, part.web))
            for host, relevant in hosts_of(context, options.least, options.hosts):
                draw = draw_narrow_starts if options.narrow else draw_starts
                for start in draw(context, host, relevant, options.repeat):
                    for policy in options.policies.split(","):
                        yield crawl(context, start, policy, options.budget)
    finally:
        context.close()


def hosts_of(context: WebContext, least: int, most: int) -> list[tuple[str, int]]:
    """Return up to ``most`` hosts with ``least`` relevant pages, and their number."""
    counts = Counter(map(host_of, context.ground_truth.relevant))
    found = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(host, relevant) for host, relevant in found[:most] if relevant >= least]


def draw_starts(context: WebContext, host: str, relevant: int, count: int) -> Iterator[Start]:
    """Draw seeds of the quarter of the host's pages that is farthest from the topic."""
    truth = context.ground_truth
    graph, topic = truth.graph, context.prepared_topic.topic
    on_host = pages_of(context, host)
    distances = graph.distances(truth.relevant_pages & on_host, on_host)
    places = possible_seeds(context, distances > 0)
    if len(places) < 4 * count:
        return
    least = np.quantile(distances[places], 0.75)
    farthest = [place for place in places if distances[place] >= least]
    drawn = random.Random(f"{topic.name} {host}").sample(farthest, min(count, len(farthest)))
    for repeat, place in enumerate(drawn):
        distance = int(distances[place])
        yield Start(topic.name, host, repeat, relevant, distance, (graph.urls[place],))


def draw_narrow_starts(
    context: WebContext, host: str, relevant: int, count: int
) -> Iterator[Start]:
    """Draw the page that leads to the topic, and a seed far from it, ``count`` times.

    At least 100 pages are two links or more away, and ten relevant pages can be reached.
    """
    truth = context.ground_truth
    graph, topic = truth.graph, context.prepared_topic.topic
    on_host = pages_of(context, host)
    targets = truth.relevant_pages & on_host
    leads_there = (graph.links @ targets.astype(np.int32)) > 0
    gates = np.flatnonzero(leads_there & on_host & ~targets)
    rng = random.Random(f"{topic.name} {host} narrow")
    repeat = 0
    for gate in rng.sample(gates.tolist(), len(gates)):
        if repeat == count:
            return
        passable, end = on_host.copy(), np.zeros(len(graph.urls), np.bool_)
        passable[gates] = False
        passable[gate] = end[gate] = True
        distances = graph.distances(end, passable & ~targets)
        far = possible_seeds(context, distances >= 2)
        reached = int(((graph.depths(end, passable) >= 0) & targets).sum())
        if len(far) < _MIN_FAR_PAGES or reached < _MIN_REACHED:
            continue
        least = np.quantile(distances[far], 0.5)
        seed = rng.choice([place for place in far if distances[place] >= least])
        missing = frozenset(graph.urls[place] for place in gates.tolist() if place != gate)
        distance = int(distances[seed]) + 1
        yield Start(topic.name, host, repeat, relevant, distance, (graph.urls[seed],), missing)
        repeat += 1


def pages_of(context: WebContext, host: str) -> NDArray[np.bool_]:
    """Return which pages of the graph a crawl of ``host`` may fetch, shape (n,)."""
    truth = context.ground_truth
    is_on_host = np.array([host_of(url) == host for url in truth.graph.urls], np.bool_)
    allowed: NDArray[np.bool_] = truth.allowed_pages & is_on_host
    return allowed


def possible_seeds(context: WebContext, is_far: NDArray[np.bool_]) -> list[int]:
    """Return the places of far pages that are neither relevant nor samples."""
    truth = context.ground_truth
    places = np.flatnonzero(is_far & ~truth.relevant_pages).tolist()
    return [place for place in places if truth.graph.urls[place] not in truth.training_urls]


class ReducedNetwork:
    """A network without the pages at ``missing``."""

    def __init__(self, network: Network, missing: frozenset[str]) -> None:
        self._network = network
        self._missing = missing

    def answer(self, url: str, now: float, elapsed_s: float) -> Outcome:
        """Answer a request for ``url``."""
        if url in self._missing:
            return outcome_from_response(404, {}, url, b"", elapsed_s, now)
        return self._network.answer(url, now, elapsed_s)

    def parse(self, fetched: Fetched) -> Page | Failed:
        """Parse the answer."""
        return self._network.parse(fetched)


def crawl(context: WebContext, start: Start, policy: str, pages: int) -> Row:
    """Crawl the start's host and count what was found."""
    topic = context.prepared_topic.topic
    scope = replace(topic.scope, allow_hosts=(start.host,))
    run = simulate_trial(
        context,
        Trial(context.name, topic.name, policy, "far", start.repeat, pages, None, start.seeds),
        topic=replace(topic, scope=scope, budget=Budget()),
        network=ReducedNetwork(context.network, start.missing),
    )
    is_relevant = context.ground_truth.relevance_of(run.pages)
    found = np.flatnonzero(is_relevant)
    return Row(
        start.topic,
        start.host,
        start.repeat,
        start.relevant,
        start.distance,
        policy,
        round(float(is_relevant.mean()), 4),
        int(found[_EARLY_PAGES - 1]) + 1 if len(found) >= _EARLY_PAGES else pages,
    )


def print_summary(rows: pd.DataFrame, policies: Sequence[str]) -> None:
    """Print each policy's figures by topic and host, and differences from the first."""
    for measure in ("harvest", "to_fifth"):
        keys = ["topic", "host", "relevant"]
        table = rows.pivot_table(index=keys, columns="policy", values=measure)
        table = table[list(policies)]
        print(f"{measure}\n{table.round(3).to_string()}")
        for policy in policies:
            change = table[policies[0]] - table[policy]
            error = change.std() / len(change) ** 0.5
            print(
                f"{policy}: mean {table[policy].mean():.4f}; {policies[0]} less it: "
                f"{change.mean():+.4f}, standard error {error:.4f}, n {len(change)}"
            )


if __name__ == "__main__":
    sys.exit(main())
