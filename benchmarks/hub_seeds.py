"""Whether a topic's hubs are better seeds: crawls from the hubs of an earlier crawl.

``python benchmarks/hub_seeds.py`` crawls the last topics of four recorded webs (``focused web
build``) from five pages on topic, builds the link graph of what it fetched, and crawls again from
ten pages of it: the best hubs, the best authorities, the most relevant pages, or any that it called
on topic, drawn at random. It prints the relevant pages of the second crawls by ground truth.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from harvest import PARTS, ROOT, Part, build, collect, plan_topic
from link_graph import write_tables

from focused.link_graph.build import build_graph
from focused.link_graph.measures import distill_pages
from focused.link_graph.page_graph import PageGraph
from focused.web.page import Fetched, Link, Page
from focused_lab.analysis.inference import cluster_t_estimate
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, simulate_trial

SEEDS = 10


@dataclass(frozen=True, slots=True)
class Row:
    """A second crawl; ``relevant`` pages by ground truth, ``new``: not in the first crawl."""

    web: str
    topic: str
    draw: int
    seeds: str
    pages: int
    relevant: int
    new: int


def main() -> int:
    """Crawl and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=int, default=300, help="pages per crawl (default: 300)")
    parser.add_argument("--topics", type=int, default=3, help="topics of each web (default: 3)")
    parser.add_argument("--draws", type=int, default=3, help="crawls of each topic (default: 3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    os.chdir(ROOT)
    build(*PARTS)
    tasks = [(part, topic) for part in PARTS for topic in part.topics[-options.topics :]]
    crawl = partial(crawl_topic, budget=options.budget, draws=options.draws)
    with ProcessPoolExecutor(options.jobs) as pool:
        print_summary(collect(chain.from_iterable(pool.map(crawl, tasks))))
    return 0


def print_summary(rows: pd.DataFrame) -> None:
    """Print means, and the difference from random pages on topic with 95% intervals by topic."""
    for measure in ("relevant", "new"):
        wide = rows.pivot_table(index=["web", "topic", "draw"], columns="seeds", values=measure)
        topics = [f"{web} {topic}" for web, topic, _ in wide.index]
        for name in wide.columns:
            found = cluster_t_estimate(topics, (wide[name] - wide["any"]).to_numpy())
            print(measure, name, f"{wide[name].mean():.1f}", found)


def crawl_topic(task: tuple[Part, str], budget: int, draws: int) -> list[Row]:
    """Crawl one topic on one web, ``draws`` times and again from each kind of seeds."""
    with plan_topic(*task, budget, draws) as planned:
        return [row for trial in planned.trials for row in _crawl_twice(planned.context, trial)]


def _crawl_twice(context: WebContext, trial: Trial) -> Iterator[Row]:
    first = _crawl(context, trial, trial.start)
    known = set(first["url"])
    for name, seeds in seeds_from(context, first, trial.repeat).items():
        second = _crawl(context, trial, seeds)
        relevant = set(second["url"]) & context.ground_truth.relevant
        counts = len(second), len(relevant), len(relevant - known)
        yield Row(trial.web, trial.topic, trial.repeat, name, *counts)


def _crawl(context: WebContext, trial: Trial, seeds: Sequence[str]) -> pd.DataFrame:
    run = simulate_trial(context, trial, start=seeds)
    return run.pages[run.pages["outcome"] == "fetched"].reset_index(drop=True)


def seeds_from(
    context: WebContext, pages: pd.DataFrame, seed: int
) -> Mapping[str, tuple[str, ...]]:
    """Choose seeds among the pages that a crawl fetched."""
    rated = pages[pages["relevance"].notna()].drop_duplicates("url").sort_values("url")
    relevance = rated["relevance"].to_numpy(float)
    with tempfile.TemporaryDirectory() as scratch:
        links = [
            (url, link.url) for url in rated["url"] for link in _links_of(context, url)
        ]  # all links: the graph keeps those among the fetched pages
        table = pa.table([*map(list, zip(*links, strict=True))], names=["source", "target"])
        write_tables(Path(scratch) / "crawl", list(rated["url"]), iter([table]))
        build_graph([Path(scratch) / "crawl"], Path(scratch) / "graph")
        graph = PageGraph(Path(scratch) / "graph")
        nodes = np.array([graph.urls.node(url) for url in rated["url"]])
        found = distill_pages(graph, nodes, relevance)

    def best(scores: np.ndarray) -> tuple[str, ...]:
        return tuple(rated["url"].to_numpy()[np.argsort(-scores, kind="stable")[:SEEDS]])

    on_topic = list(rated.loc[rated["on_topic"].astype(bool), "url"])
    return {
        "hubs": best(found.hubs),
        "authorities": best(found.authorities),
        "relevance": best(relevance),
        "any": tuple(random.Random(seed).sample(on_topic, min(SEEDS, len(on_topic)))),
    }


def _links_of(context: WebContext, url: str) -> Sequence[Link]:
    answer = context.network.answer(url, 0.0, 0.0)
    page = context.network.parse(answer) if isinstance(answer, Fetched) else None
    return page.links if isinstance(page, Page) else ()


if __name__ == "__main__":
    sys.exit(main())
