"""Harvest beside web spam: focused crawls with and without the spam filter.

``python benchmarks/spam.py`` crawls four recorded webs, first as they are and then with the sites
of one spammer at a time (:mod:`spam_sites`): families that the spam classifier is trained on, and
others. It prints for each crawl the relevant pages by ground truth, the requests for spam pages,
how many of those the crawl called on topic, and how many good pages it called spam. Missing webs
are built.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import pandas as pd
from harvest import PARTS, ROOT, Part, build, collect, parts_of, plan_topic
from spam_sites import FAMILIES, UNSEEN_FAMILIES, SpamNetwork

from focused.crawl.spam_filter import SPAM_THRESHOLD
from focused.web.page import Fetched, Page
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, simulate_trial, topic_for_run
from focused_lab.simulation.simulator import Network

CLEAN = "none"
ACTIONS = ("ignore", "avoid")
_SOURCE_PAGES = 300


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl: ``relevant`` pages by ground truth; ``called_*`` by the crawl itself."""

    web: str
    topic: str
    family: str
    action: str
    requests: int
    relevant: int
    spam_requests: int
    spam_on_topic: int
    good_pages: int
    good_called_spam: int


def main() -> int:
    """Crawl and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=int, default=300, help="pages per crawl (default: 300)")
    parser.add_argument(
        "--topics", type=int, default=1, help="topics of each web, the last ones (default: 1)"
    )
    parser.add_argument("--webs", default=",".join(part.web.name for part in PARTS))
    parser.add_argument("--families", default=",".join((CLEAN, *FAMILIES)))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="write the rows into this JSON file")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()
    os.chdir(ROOT)
    parts = parts_of(options.webs)
    build(*parts)
    tasks = [(part, topic) for part in parts for topic in part.topics[-options.topics :]]
    crawl = partial(
        crawl_topic,
        budget=options.budget,
        families=tuple(options.families.split(",")),
    )
    # A web's cache of parsed pages is open in one process at a time.
    with ProcessPoolExecutor(options.jobs) as pool:
        print_summary(collect(chain.from_iterable(pool.map(crawl, tasks)), options.out))
    return 0


def print_summary(rows: pd.DataFrame) -> None:
    """Print means over topics, by family and action."""
    rows = rows.assign(
        spam_share=rows["spam_requests"] / rows["requests"],
        wrongly=rows["good_called_spam"] / rows["good_pages"],
        unseen=rows["family"].isin(UNSEEN_FAMILIES),
    )
    columns = ["relevant", "spam_share", "spam_on_topic", "wrongly"]
    print(rows.groupby(["unseen", "family", "action"])[columns].mean().round(4).to_string())


def crawl_topic(task: tuple[Part, str], budget: int, families: tuple[str, ...]) -> list[Row]:
    """Crawl one topic on one web, once for each family and action."""
    with plan_topic(*task, budget) as planned:
        return list(_crawl_each(planned.context, planned.trials[0], families))


def _crawl_each(context: WebContext, trial: Trial, families: tuple[str, ...]) -> Iterator[Row]:
    source = good_source(context)
    for family in families:
        for action in ACTIONS:
            network: Network = context.network
            spam = None
            if family != CLEAN:
                network = spam = SpamNetwork(context.network, family, source, trial.repeat)
            yield _crawl(context, trial, network, spam, family, action)


def good_source(context: WebContext, count: int = _SOURCE_PAGES) -> list[Page]:
    """Return the relevant pages that a spammer copies from: the first ones by URL."""
    return good_pages(context, sorted(context.ground_truth.relevant)[:count])


def good_pages(context: WebContext, urls: Iterable[str]) -> list[Page]:
    """Return the pages at ``urls`` that have 30 words or more."""
    pages = []
    for url in urls:
        answer = context.network.answer(url, 0.0, 0.0)
        page = context.network.parse(answer) if isinstance(answer, Fetched) else None
        if isinstance(page, Page) and len(page.text.split()) >= 30:
            pages.append(page)
    return pages


def _crawl(
    context: WebContext,
    trial: Trial,
    network: Network,
    spam: SpamNetwork | None,
    family: str,
    action: str,
) -> Row:
    topic = topic_for_run(context.prepared_topic.topic, trial)
    run = simulate_trial(
        context,
        trial,
        topic=replace(topic, scope=replace(topic.scope, spam=action)),
        # Not the experiments' cache of classified URLs: a spammer's pages differ by crawl.
        classifier=context.prepared_topic.classifier,
        network=network,
    )
    pages = run.pages[run.pages["outcome"] == "fetched"]
    is_spam = pages["url"].map(spam.is_spam if spam else lambda url: False).astype(bool)
    good = pages[~is_spam]
    return Row(
        web=trial.web,
        topic=trial.topic,
        family=family,
        action=action,
        requests=len(run.asked),
        relevant=int(context.ground_truth.relevance_of(good).sum()),
        spam_requests=sum(spam.is_spam(url) for url in run.asked) if spam else 0,
        spam_on_topic=int(pages.loc[is_spam, "on_topic"].sum()),
        good_pages=len(good),
        good_called_spam=sum(good.get("spam", pd.Series()) >= SPAM_THRESHOLD),
    )


if __name__ == "__main__":
    sys.exit(main())
