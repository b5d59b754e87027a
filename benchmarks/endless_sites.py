"""What a generated site without end costs a crawl, with and without the defences.

``python benchmarks/endless_sites.py`` crawls a topic on a recorded web in which one site makes
pages without end (:mod:`spam_sites`), each of the words of up to ``--sources`` good pages. Each
crawl runs with no defence (``none``), with the topic's spam classifier and site novelty (``all``),
and with site novelty alone (``novelty``), as for a topic without a spam classifier. It prints the
pages fetched from the generated site, the relevant pages of the real web, and the real sites that
were closed. With ``--real`` there is no generated site: paired crawls of all topics of the web, in
which only the sites of seeds are trusted, because samples are of nearly all sites of these webs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harvest import ROOT, Part, build, collect, parts_of, plan_topic
from spam import CLEAN, good_source
from spam_sites import DOORWAY, ENDLESS_FAMILIES, SPAM_SUFFIX, SpamNetwork

from focused.classifier.topic_classifier import LinearTopicClassifier, SwappableClassifier
from focused.crawl.traps.trap_detector import NO_NEW_CONTENT, SPAM_SITE
from focused.web.urls import host_of
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, simulate_trial, topic_for_run
from focused_lab.simulation.simulator import Network

DEFENCES = ("none", "all", "novelty")
_ENDLESS = 10**9
_FAMILIES = [name for name in ENDLESS_FAMILIES if name != DOORWAY]


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl; ``closed`` are real sites that were closed as spam or without new content."""

    web: str
    topic: str
    family: str
    sources: int
    defence: str
    requests: int
    relevant: int
    generated: int
    closed: str


def main() -> int:
    """Crawl and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--web", default="docweb-medium")
    parser.add_argument("--topic", help="default: the last of the web's")
    parser.add_argument("--budget", type=int, default=2_000, help="pages per crawl (default: 2000)")
    parser.add_argument("--sources", default="50", help="pages copied from, with commas between")
    parser.add_argument("--families", default=",".join(_FAMILIES))
    parser.add_argument("--defences", default=",".join(DEFENCES))
    parser.add_argument("--real", action="store_true", help="no generated site, all topics")
    parser.add_argument("--out", type=Path, help="write the rows into this JSON file")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()
    os.chdir(ROOT)
    (part,) = parts_of(options.web)
    build(part)
    crawl = _crawl_real if options.real else _crawl_endless
    frame = collect(crawl(part, options), options.out)
    columns = ["requests", "relevant", "generated"]
    print(frame.groupby(["family", "sources", "defence"])[columns].mean().round(1).to_string())
    return 0


def _crawl_endless(part: Part, options: argparse.Namespace) -> Iterator[Row]:
    topic = options.topic or part.topics[-1]
    with plan_topic(part, topic, options.budget) as planned:
        context, trial = planned.context, planned.trials[0]
        for sources in map(int, options.sources.split(",")):
            source = good_source(context, sources)
            for family in options.families.split(","):
                network = SpamNetwork(
                    context.network, family, source, trial.repeat, sites=1, pages_per_site=_ENDLESS
                )
                for defence in options.defences.split(","):
                    yield _crawl(context, trial, network, family, len(source), defence)


def _crawl_real(part: Part, options: argparse.Namespace) -> Iterator[Row]:
    topics: Sequence[str] = [options.topic] if options.topic else part.topics
    for topic in topics:
        with plan_topic(part, topic, options.budget) as planned:
            context, trial = planned.context, planned.trials[0]
            for defence in options.defences.split(","):
                yield _crawl(context, trial, context.network, CLEAN, 0, defence)


def _crawl(
    context: WebContext, trial: Trial, network: Network, family: str, sources: int, defence: str
) -> Row:
    topic = topic_for_run(context.prepared_topic.topic, trial)
    action = "ignore" if defence == "none" else "avoid"
    topic = replace(topic, scope=replace(topic.scope, spam=action))
    # Not the experiments' cache of classified URLs: generated pages differ from crawl to crawl.
    classifier = context.prepared_topic.classifier
    if defence == "novelty" and isinstance(classifier, SwappableClassifier):
        classifier = classifier.current
    if defence == "novelty" and isinstance(classifier, LinearTopicClassifier):
        classifier = replace(classifier, make_spam=None)
    run = simulate_trial(
        context,
        trial,
        topic=topic,
        classifier=classifier,
        network=network,
        # Sites of samples are trusted: without a generated site there would be nothing to decide.
        training_urls=None if sources else frozenset(),
    )
    pages = run.pages[run.pages["outcome"] == "fetched"]
    good = pages[~pages["host"].str.endswith(SPAM_SUFFIX)]
    closed = sorted(
        line.site
        for line in run.traps
        if line.kind in (SPAM_SITE, NO_NEW_CONTENT) and not line.site.endswith(SPAM_SUFFIX)
    )
    return Row(
        web=trial.web,
        topic=trial.topic,
        family=family,
        sources=sources,
        defence=defence,
        requests=len(run.asked),
        relevant=int(context.ground_truth.relevance_of(good).sum()),
        generated=sum(host_of(url).endswith(SPAM_SUFFIX) for url in run.asked),
        closed=" ".join(closed),
    )


if __name__ == "__main__":
    sys.exit(main())
