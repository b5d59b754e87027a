"""Precision and recall of near-duplicate detection on real versions of manuals.

``python benchmarks/duplicates_variants.py webs/variants`` adds the manuals of three releases to the
crawl's own index, in the order of their age, each release in random order (variants_web.py builds
the web). The ground truth is the share of all shingles of both texts, as words, without hashes,
sketches or boilerplate: a page's similarity is the largest to an older page at its path. Recall by
similarity; precision by the similarity of a called duplicate to the page it is said to repeat.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from duplicates import RESULTS, page_of
from duplicates_similarity import Truth
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
    """Index, look up, compare, write."""
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
    """A row per page of a later version: what it was called, and the ground truth."""
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
    """The share of pages with an older one at their path that are called duplicates, by
    similarity.
    """
    level = pd.cut(calls["likeness"], [*LEVELS, 1.01], right=False)
    found = calls[calls["likeness"] >= 0].groupby(level, observed=True)["called"]
    return found.agg(pages="size", called="mean").round(3).reset_index()


def precision(calls: pd.DataFrame) -> pd.DataFrame:
    """How similar the named page is, for pages called duplicates."""
    called = calls[calls["called"]]
    level = pd.cut(called["named"], [*LEVELS, 1.01], right=False)
    found = called.groupby(level, observed=True)["at its path"]
    return found.agg(calls="size", at_its_path="mean").round(3).reset_index()


def manuals(calls: pd.DataFrame) -> pd.DataFrame:
    """By manual: pages with an older one at their path, their similarity, and how many are
    called.
    """
    later = calls[calls["likeness"] >= 0]
    found = later.assign(alike=later["likeness"] >= 0.85).groupby("manual")
    table = found.agg(pages=("url", "size"), alike=("alike", "mean"), called=("called", "mean"))
    return table.round(2).reset_index()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("web", type=Path, help="folder of the web that variants_web.py makes")
    parser.add_argument("--pages", type=int, default=400, help="paths of each manual, at most")
    parser.add_argument("--draw", type=int, default=1, help="the seed of all random choices")
    return parser.parse_args()


if __name__ == "__main__":
    main()
