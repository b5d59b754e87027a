"""Are versions of a page called copies when they are, and only then? On true variants.

``python benchmarks/duplicates_variants.py webs/variants`` shows the crawl's own index the manuals
of three releases, in the order of their age, each release in any order (variants_web.py makes
the web). Truth is told by all shingles of both texts, as words, without hashes, sketches or
boilerplate: a page's likeness is the largest that it has to an older page at its path. Recall by
likeness; precision by the likeness of a page that is called a copy to the page it is said to
repeat, wherever that stands.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from duplicates import RESULTS, page_of
from duplicates_truth import Truth
from variants_web import RELEASES, standings

from focused.crawl.dedup.duplicates import DuplicateDetector
from focused.crawl.page_parser import MAX_SHINGLES, ParsedPage
from focused.recorded_web.recorded_web import RecordedWeb
from focused.storage.state_store import StateStore
from focused.text.content_signatures import shingles
from focused.web.content_hash import content_fingerprint
from focused.web.page import Classification, Page

LEVELS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)


def main() -> None:
    """Show, ask, compare, write."""
    options = _options()
    rng = random.Random(options.draw)
    with RecordedWeb.open(options.web) as web:
        placed = standings(web.labels)
        truth = Truth(web, {})
        rows: list[dict[str, object]] = []
        by_manual: dict[str, dict[str, str]] = {}
        for each in placed:
            by_manual.setdefault(each.manual, {})[each.role] = each.base
        for manual, bases in sorted(by_manual.items()):
            versions = [bases[release] for release in RELEASES if release in bases]
            rows += asked(web, manual, versions, truth, options.pages, rng)
            truth.forget()
    calls = pd.DataFrame(rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    tables = {"recall": recall(calls), "precision": precision(calls), "manuals": manuals(calls)}
    for name, table in tables.items():
        table.to_csv(RESULTS / f"{options.web.name}-{name}.csv", index=False)
        print(f"\n{name}\n{table.to_string(index=False)}")


def asked(
    web: RecordedWeb,
    manual: str,
    versions: Sequence[str],
    truth: Truth,
    most: int,
    rng: random.Random,
) -> Iterator[dict[str, object]]:
    """One row for each page of a later version: how it was called, and what is true."""
    paths = [
        sorted(url.removeprefix(base) for url in web.page_urls if url.startswith(base))
        for base in versions
    ]
    chosen = set(rng.sample(sorted(set().union(*paths)), min(most, len(set().union(*paths)))))
    with tempfile.TemporaryDirectory() as folder:
        store = StateStore.open(Path(folder), {"benchmark": "variants"}, commit_every=1_000)
        copies = DuplicateDetector(store.tables, near=True)
        older: dict[str, list[str]] = {}
        for base, found in zip(versions, paths, strict=True):
            ours = [path for path in found if path in chosen]
            rng.shuffle(ours)
            for path in ours:
                page = page_of(web, base + path)
                if page is None:
                    continue
                before = older.setdefault(path, [])
                looked = copies.find_duplicate(_read(page))
                copies.keep(page, looked)
                yield {
                    "manual": manual,
                    "url": page.url,
                    "first": base == versions[0],
                    "likeness": max((truth.share(page.url, x) for x in before), default=-1.0),
                    "called": looked.of is not None,
                    "named": truth.share(page.url, looked.of) if looked.of else -1.0,
                    "at its path": looked.of in before,
                }
                before.append(page.url)
        store.close()


def _read(page: Page) -> ParsedPage:
    hashes = shingles(page.text)[:MAX_SHINGLES]
    return ParsedPage(
        page, Classification(0.0, on_topic=False), "", content_fingerprint(page), hashes
    )


def recall(calls: pd.DataFrame) -> pd.DataFrame:
    """Of pages that have an older one at their path: the share called, by likeness."""
    level = pd.cut(calls["likeness"], [*LEVELS, 1.01], right=False)
    found = calls[calls["likeness"] >= 0].groupby(level, observed=True)["called"]
    return found.agg(pages="size", called="mean").round(3).reset_index()


def precision(calls: pd.DataFrame) -> pd.DataFrame:
    """Of pages that are called copies: how alike the named page is."""
    called = calls[calls["called"]]
    level = pd.cut(called["named"], [*LEVELS, 1.01], right=False)
    found = called.groupby(level, observed=True)["at its path"]
    return found.agg(calls="size", at_its_path="mean").round(3).reset_index()


def manuals(calls: pd.DataFrame) -> pd.DataFrame:
    """By manual: pages with an older one at their path, how alike, and how many are called."""
    later = calls[calls["likeness"] >= 0]
    found = later.assign(alike=later["likeness"] >= 0.85).groupby("manual")
    table = found.agg(pages=("url", "size"), alike=("alike", "mean"), called=("called", "mean"))
    return table.round(2).reset_index()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("web", type=Path, help="folder of the web that variants_web.py makes")
    parser.add_argument("--pages", type=int, default=400, help="paths of each manual, at most")
    parser.add_argument("--draw", type=int, default=1, help="the seed of all lots")
    return parser.parse_args()


if __name__ == "__main__":
    main()
