"""Check that simulated crawls fetch the same URLs in the same order as before.

``python benchmarks/crawl_order.py`` simulates three topics on two webs with four orderings and
compares the order with ``benchmarks/results/crawl-order.json``; ``--record`` writes that file. It
holds one digest per hundred URLs, so that a difference can be located.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from focused.experiments.simulation.parsed_web import ParsedWeb
from focused.experiments.simulation.simulator import hashed_latency, simulate
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.topic import Budget
from focused.topic.topic_file import load_topic

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "benchmarks/results/crawl-order.json"
RUNS = {
    "docweb-small": ("parallel-computing", "statistics"),
    "foldoc": ("foldoc/networking",),
}
ORDERINGS = ("focused", "bfs", "shark", "tag-path")
PAGES = 1_000
LATENCY_S = 0.2


def main(arguments: Sequence[str]) -> int:
    """Simulate, then record or compare; return 1 when an order differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--record", action="store_true", help="write the file of digests")
    parser.add_argument("--urls", type=Path, help="folder to write the URLs to")
    options = parser.parse_args(arguments)
    orders: dict[str, Sequence[str]] = {}
    for web, topics in RUNS.items():
        for topic in topics:
            orders |= orders_of(web, topic)
    if options.urls:
        options.urls.mkdir(parents=True, exist_ok=True)
        for name, urls in orders.items():
            path = options.urls / f"{name.replace('/', '-').replace(' ', '_')}.txt"
            path.write_text("\n".join(urls))
    digests = {name: digests_of(urls) for name, urls in orders.items()}
    if options.record:
        RECORDED.write_text(json.dumps(digests, indent=1) + "\n")
        return 0
    recorded = json.loads(RECORDED.read_text())
    for name, found in digests.items():
        same = found == recorded[name]
        print(f"{name}: {'same' if same else 'DIFFERS'}, {len(orders[name])} URLs")
        if not same:
            pairs = zip(found, recorded[name], strict=False)
            print(f"  first in hundred {next((n for n, (a, b) in enumerate(pairs) if a != b), -1)}")
    return int(digests != recorded)


def orders_of(web_name: str, topic_name: str) -> dict[str, Sequence[str]]:
    """Return the URLs in the order of fetching, by run."""
    folder = ROOT / "webs" / web_name
    topic = replace(load_topic(ROOT / "topics" / f"{topic_name}.toml"), budget=Budget())
    orders: dict[str, Sequence[str]] = {}
    with ParsedWeb(RecordedWeb.open(folder)) as network:
        for ordering in ORDERINGS:
            guide = load_crawl_models(topic, web=str(folder), replay=None, say=print)
            run = simulate(
                topic,
                guide.classifier,
                network,
                find_policy(ordering)(PolicyInputs(guide.classifier, guide.scorer)),
                latency=hashed_latency(LATENCY_S, 0),
                training_urls=guide.training_urls,
                pages=PAGES,
            )
            orders[f"{topic_name} on {web_name}, {ordering}"] = run.asked
    return orders


def digests_of(urls: Sequence[str]) -> list[str]:
    """Return a digest for each hundred URLs."""
    return [
        hashlib.sha256("\n".join(urls[at : at + 100]).encode()).hexdigest()[:16]
        for at in range(0, len(urls), 100)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
