"""Benefit and loss of mirror detection: whole crawls with and without it, on real variants.

``python benchmarks/duplicates_mirrors.py webs/variants`` crawls the web of variants_web.py
breadth-first to the end, with and without ``scope.mirrors``: from all manuals' first pages, and
from all URLs in random order, as if other sites linked to each. A page that only the crawl without
mirrors has is lost unless the other fetched a similar one. Similarity is the share of all shingles,
as words instead of sketches, among pages of one manual whose paths end alike. Pages with the label
of ``--topic`` are on topic. A found pair is right when both prefixes hold the same pages (mirrors
and old names of the web); other pairs are versions.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from duplicates import RESULTS
from duplicates_similarity import Truth
from variants_web import MIDDLE, Standing, standings

from focused.classifier.topic_classifier import ConstantClassifier
from focused.link_scoring.protocols import ConstantLinkScorer
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.topic import Output, Politeness, Scope, Seeds, Topic, Training
from focused.web.urls import host_of
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import SimulatedRun, hashed_latency, simulate

LEVELS = (0.95, 0.85, 0.7)
SAME = frozenset({MIDDLE, "mirror", "old name"})
_LATENCY_S = 0.2


def main() -> None:
    """Crawl, compare, write."""
    options = _options()
    with RecordedWeb.open(options.web) as web, ParsedWeb(web) as network:
        placed = [
            each
            for each in standings(web.labels)
            if not options.manuals or each.manual in options.manuals
        ]
        on_topic = frozenset(url for url, names in web.labels.items() if options.topic in names)
        truth = Truth(web, bases_of(placed))
        rows: list[dict[str, object]] = []
        pairs: list[dict[str, str]] = []
        for start, seeds in starts(web, placed, random.Random(options.draw)).items():
            runs = {on: crawl(network, seeds, placed, mirrors=on) for on in (False, True)}
            rows += compared(start, runs, truth, on_topic)
            pairs += found_pairs(start, runs[True].mirrors, placed)
    RESULTS.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    table.to_csv(RESULTS / f"{options.web.name}-mirrors.csv", index=False)
    listed = pd.DataFrame(pairs)
    listed.to_csv(RESULTS / f"{options.web.name}-pairs.csv", index=False)
    print(table.T.to_string(header=False))
    print(listed.groupby(["start", "kind"]).size().to_string() if pairs else "no pairs")


def starts(
    web: RecordedWeb, placed: Sequence[Standing], rng: random.Random
) -> Mapping[str, Sequence[str]]:
    """The seeds of each crawl, by the name in the table."""
    bases = [each.base for each in placed]
    anywhere = sorted(url for url in web.page_urls if url.startswith(tuple(bases)))
    rng.shuffle(anywhere)
    return {"first pages": bases, "links from anywhere": anywhere}


def bases_of(placed: Sequence[Standing]) -> Mapping[str, Sequence[str]]:
    """All base URLs of the manual that has this one."""
    by_manual: dict[str, list[str]] = {}
    for each in placed:
        by_manual.setdefault(each.manual, []).append(each.base)
    return {each.base: by_manual[each.manual] for each in placed}


def crawl(
    network: ParsedWeb, seeds: Sequence[str], placed: Sequence[Standing], *, mirrors: bool
) -> SimulatedRun:
    """Crawl all that can be reached on the hosts of these base URLs, by the crawl's own objects."""
    # Traps count duplicates of their own; mirrors alone shall make a difference.
    hosts = tuple(sorted({host_of(each.base) for each in placed}))
    scope = Scope(mirrors=mirrors, traps=False, allow_hosts=hosts)
    politeness = Politeness("Benchmark/1 (+http://benchmark.test/)", delay_s=1.0)
    folder = Path()
    topic = Topic(
        "mirrors",
        folder / "mirrors.toml",
        Seeds(tuple(seeds[:1])),
        Training((), (), folder / "none"),
        scope=scope,
        politeness=politeness,
        output=Output(folder),
    )
    classifier = ConstantClassifier()
    policy = find_policy("bfs")(PolicyInputs(classifier, ConstantLinkScorer()))
    latency = hashed_latency(_LATENCY_S, 0)
    return simulate(topic, classifier, network, policy, latency=latency, seeds=seeds)


def compared(
    start: str, runs: Mapping[bool, SimulatedRun], truth: Truth, on_topic: frozenset[str]
) -> Iterator[dict[str, object]]:
    """A row per crawl; losses are those of the crawl with mirrors."""
    all_unique = unique_pages(runs[False])
    for on, run in runs.items():
        fetched = frozenset(run.pages.loc[run.pages["outcome"] == "fetched", "url"])
        unique = unique_pages(run)
        gone = [truth.likeness(url, fetched) for url in sorted(all_unique - fetched)]
        yield {
            "start": start,
            "mirrors": on,
            "fetched": len(fetched),
            "pages of their own": len(unique),
            "on topic": len(unique & on_topic),
            "not fetched again": len(gone),
            **{
                f"of these, {level:.0%} alike nowhere": sum(x < level for x in gone)
                for level in LEVELS
            },
            "pairs": len(run.mirrors),
            "cpu_s": round(run.cpu_s),
        }


def unique_pages(run: SimulatedRun) -> frozenset[str]:
    """The fetched pages that were not called duplicates."""
    own = (run.pages["outcome"] == "fetched") & run.pages["duplicate_of"].isna()
    return frozenset(run.pages.loc[own, "url"])


def found_pairs(
    start: str, pairs: Mapping[str, str], placed: Sequence[Standing]
) -> Iterator[dict[str, str]]:
    """The pairs, and whether both prefixes hold the same pages of the same manual."""
    by_base = {each.base.rstrip("/"): each for each in placed}
    for lesser, preferred in pairs.items():
        one, other = by_base.get(lesser), by_base.get(preferred)
        roles = {each.role for each in (one, other) if each is not None}
        kind = "other"
        if one is not None and other is not None and one.manual == other.manual:
            kind = "same" if roles <= SAME else "versions"
        yield {"start": start, "kind": kind, "lesser": lesser, "preferred": preferred}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("web", type=Path, help="folder of the web that variants_web.py makes")
    parser.add_argument("--manuals", nargs="*", default=[], help="these alone, by package")
    parser.add_argument("--topic", default="Top/Computers/Databases")
    parser.add_argument("--draw", type=int, default=1, help="the seed of the order of links")
    return parser.parse_args()


if __name__ == "__main__":
    main()
