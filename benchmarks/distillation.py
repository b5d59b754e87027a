"""Hubs and authorities of ten topics, by the ground truth of recorded webs, beside in-degree.

``python benchmarks/distillation.py`` rates all pages of four recorded webs (``focused web build``)
by the topic classifiers, as a crawl without a budget would, and builds their link graphs. For each
topic it prints the precision at ten of each measure: the share of its ten best pages that the web's
labels call on topic, without training samples and pages that nobody labelled. The classifier gives
the relevance that distillation weighs links by; it never sees the labels of the pages that count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from link_graph import WORK, pages_of, web_as_crawl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from focused.link_graph.build import build_graph
from focused.link_graph.measures import distill_pages, pagerank
from focused.link_graph.page_graph import PageGraph
from focused.link_graph.stored_arrays import Nodes
from focused.recorded_web.recorded_web import RecordedWeb
from focused.reports.metrics import select_relevant_urls
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused_lab.simulation.parsed_web import ParsedWeb

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results/link-graph"
TOPICS = {
    "docweb-medium": ("databases", "security", "astronomy", "statistics", "docweb/networking"),
    "foldoc": ("foldoc/networking", "foldoc/mathematics"),
    "wordnet": ("wordnet/chemistry", "wordnet/music"),
    "debian": ("debian/games",),
}
BEST = 10
ON_TOPIC = 0.5

Scores = NDArray[np.float64]


def main() -> None:
    """Print and write the precision of all measures."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    rows: list[dict[str, object]] = []
    for name, names in TOPICS.items():
        graph = WORK / f"{name}-graph"
        build_graph([web_as_crawl(name)], graph)
        with ParsedWeb(RecordedWeb.open(ROOT / "webs" / name)) as web:
            topics = [load_topic(ROOT / f"topics/{topic}.toml") for topic in names]
            rated = rate_pages(web, topics)
            for label, topic, rating in zip(names, topics, rated, strict=True):
                relevant = select_relevant_urls(web.web.labels, topic.training.good)
                found = evaluate(graph, rating, relevant, web.web.labels)
                rows.append({"web": name, "topic": label, **found})
                print({k: v for k, v in rows[-1].items() if not isinstance(v, list)}, flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "distillation.json").write_text(json.dumps(rows, indent=1) + "\n")
    print_table(rows)


@dataclass(frozen=True, slots=True)
class RatedWeb:
    """The relevance of each page by URL, and the URLs of the training samples among them."""

    relevance: Mapping[str, float]
    samples: frozenset[str]


def rate_pages(web: ParsedWeb, topics: Sequence[Topic]) -> list[RatedWeb]:
    """Rate each page of a web for each topic; train the classifiers if needed."""
    folder = str(web.web.folder)
    models = [load_crawl_models(topic, web=folder, replay=None, say=print) for topic in topics]
    relevance: list[dict[str, float]] = [{} for _ in topics]
    for url, page in pages_of(web):
        for model, rated in zip(models, relevance, strict=True):
            rated[url] = model.classifier.classify(page).relevance
    return [
        RatedWeb(rated, frozenset(web.web.find(url) or url for url in model.training_urls))
        for model, rated in zip(models, relevance, strict=True)
    ]


def evaluate(
    folder: Path, rated: RatedWeb, relevant: Collection[str], labelled: Collection[str]
) -> dict[str, object]:
    """Return precision at ten by measure, and the share of all counted pages on topic."""
    graph = PageGraph(folder)
    urls = sorted(rated.relevance)
    nodes = np.array([graph.urls.node(url) for url in urls], np.int64)
    relevance = np.array([rated.relevance[url] for url in urls])
    counts = np.array([url in labelled and url not in rated.samples for url in urls])
    is_relevant = np.array([url in relevant for url in urls])
    found: dict[str, object] = {
        "pages": int(counts.sum()),
        "on topic": round(float(is_relevant[counts].mean()), 3),
    }
    for name, scores in measures(graph, nodes, relevance).items():
        order = np.argsort(-scores[nodes], kind="stable")
        best = order[counts[order] & (scores[nodes][order] > 0)][:BEST]
        # A web of one host has no links between hosts.
        found[name] = round(float(is_relevant[best].mean()), 2) if len(best) else None
        found[f"{name} urls"] = [urls[place] for place in best.tolist()]
    return found


def measures(graph: PageGraph, nodes: Nodes, relevance: Scores) -> Mapping[str, Scores]:
    """The scores of all nodes of a graph by measure, for the relevance of some."""
    degrees = graph.into.degrees.astype(np.float64)
    out_degrees = graph.out.degrees

    def of_all(scores: Scores) -> Scores:
        whole = np.zeros(len(graph))
        whole[nodes] = scores
        return whole

    found = distill_pages(graph, nodes, relevance)
    return {
        "in-degree": degrees,
        "PageRank": pagerank(graph.into, out_degrees),
        "topic PageRank": pagerank(graph.into, out_degrees, teleport=of_all(relevance)),
        "authority": of_all(found.authorities),
        "hub": of_all(found.hubs),
        "in-degree of pages on topic": degrees * (of_all(relevance) >= ON_TOPIC),
        "relevance": of_all(relevance),
    }


def print_table(rows: list[dict[str, object]]) -> None:
    """Print a row for each topic, and the means."""
    names = [name for name, value in rows[0].items() if not isinstance(value, list)]
    table = Table(title=f"precision at {BEST}")
    for name in names:
        table.add_column(name, justify="left" if name in {"web", "topic"} else "right")
    for row in rows:
        table.add_row(*(str(row[name]) for name in names))
    values = {name: [row[name] for row in rows if row[name] is not None] for name in names[4:]}
    means = [f"{np.mean(np.array(each, dtype=np.float64)):.2f}" for each in values.values()]
    table.add_row("", "mean", "", "", *means)
    Console(width=240).print(table)


if __name__ == "__main__":
    main()
