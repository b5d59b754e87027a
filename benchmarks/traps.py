"""Cost of the trap defences on good webs: links refused of recorded webs.

``python benchmarks/traps.py WEB...`` checks all pages of recorded webs and their links, none of
which is a trap. First: which links do the URL rules refuse? Then: which pages would the learned
rules refuse, if the pages came in random order (a crawl takes the promising ones first) and one
category of the labels were the topic? The category is the first with ``--share`` of the pages or
less, or each of ``--category``. Of the refused aliases, pages that came under another URL, it
counts those that had come word for word.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from focused.crawl.dedup.url_aliases import (
    CANONICAL,
    IGNORABLE_PARAMETER,
    SESSION_ID,
    SPELLING_VARIANT,
)
from focused.crawl.steps import SettledFetch
from focused.crawl.traps import trap_detector
from focused.crawl.traps.trap_filter import TrapFilter
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.state_store import StateStore
from focused.text.content_signatures import content_fingerprint
from focused.web.html.parse import parse_page
from focused.web.http_response import outcome_from_response
from focused.web.page import Classification, Fetched, Page
from focused.web.scope_filter import find_url_trap
from focused.web.url_patterns import UrlPatternKind
from focused.web.urls import host_of, normalize_url
from focused_lab.recorded_web.recorded_web import RecordedWeb

_SEEDS = 5


def main() -> None:
    """Print both counts for each web."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("web", nargs="+", type=Path)
    parser.add_argument("--category", nargs="*", default=[])
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0, help="of the order of the pages")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="times what scripts and wider places have"
    )
    args = parser.parse_args()
    _scale_patience(args.patience)
    for folder in args.web:
        with RecordedWeb.open(folder) as web:
            labels = web.labels
            _print_rules(folder, web)
            for category in args.category or [_rare(labels, args.share)]:
                good = {url for url, found in labels.items() if category in found}
                _print_learned(folder, web, category, good, random.Random(args.seed))


def _scale_patience(times: float) -> None:
    wide = (
        UrlPatternKind.SCRIPT,
        UrlPatternKind.DIRECTORY,
        UrlPatternKind.HOST,
        UrlPatternKind.DOMAIN,
    )
    scaled = dict(trap_detector.PATTERN_BUDGETS)
    for kind in wide:
        had = scaled[kind]
        scaled[kind] = replace(had, unproductive=round(had.unproductive * times))
    trap_detector.PATTERN_BUDGETS = scaled


def _print_rules(folder: Path, web: RecordedWeb) -> None:
    urls = {url for each in web.page_urls if (url := normalize_url(each)) is not None}
    for _, page in _pages(web, sorted(urls)):
        urls.update(link.url for link in page.links)
    refused = {url: reason for url in urls if (reason := find_url_trap(url)) is not None}
    print(f"{folder.name}: rules refuse {len(refused)} of {len(urls):,} URLs and links")
    for url, reason in sorted(refused.items()):
        print(f"  {reason}: {url}")


def _print_learned(
    folder: Path, web: RecordedWeb, category: str, good: Collection[str], rng: random.Random
) -> None:
    urls = sorted(web.page_urls)
    rng.shuffle(urls)
    first: dict[bytes, str] = {}
    refused, pages = [], 0
    aliases: Counter[str] = Counter()
    unseen = []
    with tempfile.TemporaryDirectory() as state:
        store = StateStore.open(Path(state) / "state", {}, commit_every=1_000)
        traps = TrapFilter(store.tables)
        traps.choose([url for url in urls if url in good][:_SEEDS])
        for fetched, page in _pages(web, urls):
            pages += 1
            reason, content = traps.refusal_reason(page.url), content_fingerprint(page)
            if reason is not None and reason in (
                SPELLING_VARIANT,
                CANONICAL,
                IGNORABLE_PARAMETER,
                SESSION_ID,
            ):
                aliases[reason] += 1
                if content not in first:
                    unseen.append(page.url)
                    refused.append(page.url)
                continue
            if reason is not None:
                refused.append(page.url)
                continue
            earlier = first.setdefault(content, page.url)
            classification = Classification(float(page.url in good), page.url in good)
            copy_of = None if earlier == page.url else earlier
            link = QueuedLink(link_key(page.url), page.url, host_of(page.url), 0.0, 0.0)
            traps.settled(
                link, fetched,
                SettledFetch(
                    link, "fetched", page=page, classification=classification,
                    duplicate_of=copy_of,
                ),
            )  # fmt: skip
        lines = traps.stats.lines()
        store.close()
    lost = Counter(url in good for url in refused)[True]
    print(
        f"{folder.name}, {category}: what is learned refuses {len(refused):,} of {pages:,} pages, "
        f"{lost} of {len(good)} on topic"
    )
    told = ", ".join(f"{reason}: {n}" for reason, n in aliases.most_common()) or "none"
    print(f"  aliases refused: {told}; {len(unseen)} of them had not come word for word")
    for url in unseen[:10]:
        print(f"    {url}")
    for line in lines:
        print(f"  {line.kind}: {line.site}: {line.pages} pages lost, {line.links} links refused")


def _pages(web: RecordedWeb, urls: Collection[str]) -> Iterator[tuple[Fetched, Page]]:
    for url in urls:
        found = web.get(url)
        if found is None:
            continue
        outcome = outcome_from_response(
            found.status, found.headers, url, found.body, elapsed_s=0.0, now=0.0
        )
        if isinstance(outcome, Fetched) and isinstance(page := parse_page(outcome), Page):
            yield outcome, page


def _rare(labels: Mapping[str, frozenset[str]], share: float) -> str:
    counts = Counter(category for found in labels.values() for category in found)
    return next(name for name, n in counts.most_common() if n <= share * len(labels))


if __name__ == "__main__":
    main()
