"""Crawls of a web of 40 real sites and 44 spam sites of five kinds, with and without the filter.

``python benchmarks/spam.py`` crawls 800 pages for each topic and each of ``--webs`` draws of the
spam. The real sites are the 40 hosts of the recorded web with the most pages on topic, then the
largest; :mod:`spam_sites` describes the spam. Each crawl is repeated by whose sites it trusts:
those of all samples (``samples``), which are nearly all sites with pages on topic, or of the five
seeds alone (``seeds``). It prints for each crawl the relevant pages by ground truth, the requests
by kind of spam, the spam pages that count as harvest, and the real pages on topic that were lost:
called spam, called a copy of a spam page, or on a site that was closed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import pandas as pd
from harvest import PARTS, ROOT, build, collect, plan_topic
from spam_sites import KINDS, SHOP, SPAM_SUFFIX, SpamWeb

from focused.crawl.spam_filter import SPAM_THRESHOLD
from focused.crawl.traps.trap_detector import NO_NEW_CONTENT, SPAM_SITE
from focused.web.page import Fetched, Page
from focused.web.urls import host_of
from focused_lab.experiment_plan import Trial
from focused_lab.runner import WebContext, simulate_trial, topic_for_run

HONEST_SITES = 40
ACTIONS = ("ignore", "avoid")
TRUST = ("samples", "seeds")
_SOURCE_PAGES = 600


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl.

    ``web`` is the draw of the spam. ``relevant`` pages by ground truth; ``spam_requests`` in all
    and by kind; ``spam_harvest`` are spam pages that count as harvest. Of real pages on topic,
    ``called_spam`` and ``called_copies`` were refused; ``closed`` are real sites that were closed.
    """

    topic: str
    web: int
    trust: str
    action: str
    requests: int
    relevant: int
    spam_requests: int
    by_kind: dict[str, int]
    spam_harvest: int
    called_spam: int
    called_copies: int
    closed: str


def main() -> int:
    """Crawl and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=int, default=800, help="pages per crawl (default: 800)")
    parser.add_argument("--topics", default="security,docweb/networking,docweb/text-processing")
    parser.add_argument("--webs", type=int, default=4, help="draws of the spam (default: 4)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the rows into this JSON file")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()
    os.chdir(ROOT)
    build(PARTS[0])
    crawl = partial(crawl_topic, budget=options.budget, webs=options.webs)
    with ProcessPoolExecutor(options.jobs) as pool:
        found = chain.from_iterable(pool.map(crawl, options.topics.split(",")))
        print_summary(collect(found, options.out))
    return 0


def print_summary(rows: pd.DataFrame) -> None:
    """Print means over topics and draws of the spam, by trust and action, and the worst crawls."""
    kinds = pd.DataFrame(list(rows["by_kind"])).add_prefix("n_")
    frame = rows.join(kinds)
    frame["spam_share"] = frame["spam_requests"] / frame["requests"]
    frame["closed"] = [len(sites.split()) for sites in frame["closed"]]
    columns = ["relevant", "spam_share", "spam_harvest", "called_spam", "called_copies", "closed"]
    columns += [name for name in frame.columns if name.startswith("n_")]
    groups = frame.groupby(["trust", "action"])[columns]
    print(groups.mean().round(3).to_string())
    print(groups.agg({"relevant": "min", "spam_share": "max", "spam_harvest": "max"}).round(3))


def crawl_topic(topic: str, budget: int, webs: int) -> list[Row]:
    """Crawl one topic, once for each draw of the spam, trust and action."""
    with plan_topic(PARTS[0], topic, budget) as planned:
        context, trial = planned.context, planned.trials[0]
        hosts = honest_hosts(context, trial)
        urls = sorted(url for url in context.ground_truth.relevant if host_of(url) in hosts)
        random.Random(0).shuffle(urls)
        source = list(pages_with_text(context, urls[:_SOURCE_PAGES]))
        return [
            _crawl(context, trial, SpamWeb(context.network, hosts, source, seed), trust, action)
            for seed in range(webs)
            for trust in TRUST
            for action in ACTIONS
        ]


def pages_with_text(context: WebContext, urls: Sequence[str]) -> Iterator[Page]:
    """Yield the pages at ``urls`` that have 30 words or more."""
    for url in urls:
        answer = context.network.answer(url, 0.0, 0.0)
        page = context.network.parse(answer) if isinstance(answer, Fetched) else None
        if isinstance(page, Page) and len(page.text.split()) >= 30:
            yield page


def honest_hosts(context: WebContext, trial: Trial) -> frozenset[str]:
    """Return the hosts of the seeds, those with the most pages on topic, and the largest."""
    sizes = Counter(map(host_of, context.ground_truth.graph.urls))
    relevant = Counter(map(host_of, context.ground_truth.relevant))
    seeds = {host_of(url) for url in trial.start}
    ranked = sorted(
        sizes, key=lambda host: (host not in seeds, -relevant[host], -sizes[host], host)
    )
    return frozenset(ranked[:HONEST_SITES])


def _crawl(context: WebContext, trial: Trial, web: SpamWeb, trust: str, action: str) -> Row:
    topic = topic_for_run(context.prepared_topic.topic, trial)
    run = simulate_trial(
        context,
        trial,
        topic=replace(topic, scope=replace(topic.scope, spam=action)),
        # Not the experiments' cache of classified URLs: the spam differs from draw to draw.
        classifier=context.prepared_topic.classifier,
        network=web,
        training_urls=context.ground_truth.training_urls if trust == "samples" else frozenset(),
    )
    pages = run.pages[run.pages["outcome"] == "fetched"]
    is_spam = pages["url"].map(web.is_spam).astype(bool)
    good = pages[~is_spam]
    on_topic = good[good["url"].map(context.ground_truth.is_relevant).astype(bool)]
    kinds = Counter(web.kind(url) for url in run.asked)
    closed = sorted(
        line.site
        for line in run.traps
        if line.kind in (SPAM_SITE, NO_NEW_CONTENT) and not _is_spam_site(line.site)
    )
    return Row(
        topic=trial.topic,
        web=web.seed,
        trust=trust,
        action=action,
        requests=len(run.asked),
        relevant=int(context.ground_truth.relevance_of(good).sum()),
        spam_requests=len(run.asked) - kinds[""],
        by_kind={kind.name: kinds[kind.name] for kind in KINDS},
        spam_harvest=int(pages.loc[is_spam, "on_topic"].sum()),
        called_spam=sum(on_topic.get("spam", pd.Series()) >= SPAM_THRESHOLD),
        called_copies=int(on_topic["duplicate_of"].map(_is_spam_url).sum()),
        closed=" ".join(closed),
    )


def _is_spam_url(url: object) -> bool:
    return isinstance(url, str) and _is_spam_site(host_of(url))


def _is_spam_site(site: str) -> bool:
    return site.endswith(SPAM_SUFFIX) or site == SHOP


if __name__ == "__main__":
    sys.exit(main())
