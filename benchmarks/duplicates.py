"""Precision, recall and cost of near-duplicate detection on a recorded web.

``python benchmarks/duplicates.py webs/docweb-medium`` makes copies of its pages by known edits
(duplicates_edits.py), on another host and on the page's own, looks each up in the crawl's own
index, and writes tables into ``benchmarks/results/duplicates/``. Hosts are split into validation
and test; thresholds are chosen on validation only. All original pages are looked up as in a crawl,
and those called duplicates are written to ``calls.csv`` for reading.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from duplicates_edits import EDITS
from numpy.typing import NDArray
from resiliparse.extract.html2text import extract_plain_text

from focused.crawl.dedup.duplicates import MIN_RESEMBLANCE, NearDuplicateIndex
from focused.recorded_web.recorded_web import RecordedWeb
from focused.storage.state_store import StateStore
from focused.text.content_signatures import (
    ShingleHashes,
    estimate_resemblance,
    hashes_not_in,
    make_sketch,
    shingles,
)
from focused.text.hash_sampling import hash_fraction
from focused.web.content_hash import content_fingerprint
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused.web.urls import host_of

RESULTS = Path(__file__).parent / "results" / "duplicates"
THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
MOST_FALSE = 0.001
_MIN_WORDS = 150
_HOSTS_TO_SPLIT = 20
_TIMED = 300
_NEIGHBOURS = 10
# The same document in several versions, and on several hosts.
VARIANTS = (
    ("https://nipy.org/nipy/devel/guidelines/gitwash/", "https://dipy.org/documentation/latest/devel/gitwash/"),
    ("https://docs.python.org/3/distutils/", "https://setuptools.pypa.io/en/latest/deprecated/distutils/"),
    ("https://flask.palletsprojects.com/en/2.2.x/deploying/", "https://werkzeug.palletsprojects.com/en/2.2.x/deployment/"),
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """The index, and all its pages in the order of indexing."""

    index: NearDuplicateIndex
    pages: Sequence[Page]
    calls: pd.DataFrame
    cost: pd.DataFrame


def main() -> None:
    """Index, look up, compare, write."""
    options = _options()
    rng = random.Random(options.draw)
    with RecordedWeb.open(options.web) as web, tempfile.TemporaryDirectory() as folder:
        pages = list(parsed(web, options.pages_a_host, rng))
        store = StateStore.open(Path(folder), {"benchmark": "duplicates"}, commit_every=1_000)
        asked = feed(store, pages)
        asked.cost["ms main text"] = main_text_ms(web, pages)
        tables = {"calls": asked.calls, "cost": asked.cost}
        if len(web.hosts) >= _HOSTS_TO_SPLIT:
            made = made_copies(asked, options.edited_a_host, rng)
            tables |= {
                "edits": recall_by_edit(made),
                "thresholds": by_threshold(made, asked.calls),
                "methods": recall_by_method(by_method(asked, options.edited_a_host, rng)),
                "variants": variants(web),
            }
        write(tables, options.web.name)
        store.close()


def write(tables: Mapping[str, pd.DataFrame], web: str) -> None:
    """Write each table as CSV, and print all but the long one."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(RESULTS / f"{web}-{name}.csv", index=False)
        if name != "calls":
            print(f"\n{name}\n{table.to_string(index=False)}")


def parsed(web: RecordedWeb, pages_a_host: int, rng: random.Random) -> Iterator[Page]:
    """Pages of the web in random order, limited per host, each content once."""
    urls = list(web.page_urls)
    rng.shuffle(urls)
    count: dict[str, int] = {}
    seen = set()
    for url in urls:
        host = host_of(url)
        if count.get(host, 0) >= pages_a_host:
            continue
        page = page_of(web, url)
        if page is not None and (key := content_fingerprint(page)) not in seen:
            seen.add(key)
            count[host] = count.get(host, 0) + 1
            yield page


def page_of(web: RecordedWeb, url: str) -> Page | None:
    """The recorded page of the URL, or None."""
    response = web.get(url)
    if response is None or response.status != 200:
        return None
    page = parse_page(Fetched(url, response.status, response.headers, response.body))
    return page if isinstance(page, Page) else None


def feed(store: StateStore, pages: Sequence[Page]) -> Asked:
    """Add the pages to the index one after the other, as a crawl does."""
    index = NearDuplicateIndex(store.tables)
    calls = []
    spent_s = np.zeros(2)
    for page in pages:
        began_s = time.process_time()
        page_sketch = index.page_sketch(page, shingles(page.text))
        share, like, _ = index.nearest(page_sketch)
        asked_s = time.process_time()
        if share < MIN_RESEMBLANCE:
            index.add(page_sketch)
        spent_s += asked_s - began_s, time.process_time() - asked_s
        store.commit()
        if share >= min(THRESHOLDS):
            calls.append((page.url, like, round(share, 3), share >= MIN_RESEMBLANCE))
    rows = [
        row
        for table in ("sketches", "shingles", "host_shingles")
        for row in store.tables.scan(table)
    ]
    cost = {
        "pages": len(pages),
        "characters a page": float(np.mean([len(page.text) for page in pages])),
        "ms to ask": spent_s[0] / len(pages) * 1e3,
        "ms to file": spent_s[1] / len(pages) * 1e3,
        "bytes a page": sum(len(key) + len(row) for key, row in rows) / len(pages),
        "called copies": sum(called for *_, called in calls),
    }
    frame = pd.DataFrame(calls, columns=["url", "like", "resemblance", "called"])
    return Asked(index, pages, frame, pd.DataFrame([cost]).round(3))


def main_text_ms(web: RecordedWeb, pages: Sequence[Page]) -> float:
    """Cost per page of extracting its main text with resiliparse, in ms."""
    bodies = [found.body for page in pages[:_TIMED] if (found := web.get(page.url)) is not None]
    texts = [body.decode("utf-8", "replace") for body in bodies]
    began_s = time.process_time()
    for text in texts:
        extract_plain_text(text, main_content=True)
    return round((time.process_time() - began_s) / max(1, len(texts)) * 1e3, 3)


def edited_pages(
    pages: Sequence[Page], a_host: int, rng: random.Random
) -> Iterator[tuple[Page, list[str], list[str]]]:
    """Pages that are long enough, a number per host; their words, and those of a foreign page."""
    long = [page for page in pages if len(page.text.split()) >= _MIN_WORDS]
    count: dict[str, int] = {}
    for page in long:
        host = host_of(page.url)
        count[host] = count.get(host, 0) + 1
        other = rng.choice(long)
        if count[host] <= a_host and host_of(other.url) != host:
            yield page, page.text.split(), other.text.split()


def made_copies(asked: Asked, a_host: int, rng: random.Random) -> pd.DataFrame:
    """A row per copy: edit, position, split, estimated share, and whether its page was found."""
    rows = []
    for page, words, other in edited_pages(asked.pages, a_host, rng):
        host = host_of(page.url)
        places = {"another host": f"http://copies.{host}/", "same host": f"{page.url}?copy"}
        for kind, edit in EDITS.items():
            text = " ".join(edit(words, other, rng))
            for place, url in places.items():
                copy = asked.index.page_sketch(replace(page, url=url, text=text), shingles(text))
                share, like, _ = asked.index.nearest(copy)
                rows.append((kind, place, split_of(host), share, like == page.url))
    return pd.DataFrame(rows, columns=["edit", "place", "split", "share", "right"])


def recall_by_edit(made: pd.DataFrame) -> pd.DataFrame:
    """The share of test copies that are called duplicates, and of calls that name another page."""
    test = made[made["split"] == "test"].assign(
        called=lambda rows: rows["share"] >= MIN_RESEMBLANCE
    )
    test["misnamed"] = test["called"] & ~test["right"]
    grouped = test.groupby(["edit", "place"], sort=False)
    table = grouped.agg(
        copies=("called", "size"), recall=("called", "mean"), misnamed=("misnamed", "mean")
    )
    return table.round(3).reset_index()


def by_threshold(made: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """Recall of validation copies, and validation pages called duplicates, by threshold."""
    valid = made[made["split"] == "validation"]
    natural = calls[calls["url"].map(host_of).map(split_of) == "validation"]
    return pd.DataFrame(
        {
            "threshold": threshold,
            "recall": round(float((valid["share"] >= threshold).mean()), 3),
            "other pages called": int((natural["resemblance"] >= threshold).sum()),
        }
        for threshold in THRESHOLDS
    )


def by_method(asked: Asked, a_host: int, rng: random.Random) -> pd.DataFrame:
    """Similarities of copies on another host, and of pages of one host, by each method."""
    by_host: dict[str, list[Page]] = {}
    for page in asked.pages:
        by_host.setdefault(host_of(page.url), []).append(page)
    rows = []
    for page, words, other in edited_pages(asked.pages, a_host, rng):
        host = host_of(page.url)
        boilerplate = asked.index.page_sketch(page, shingles(page.text)).boilerplate
        mine = shingles(page.text)
        for kind, edit in EDITS.items():
            copy = shingles(" ".join(edit(words, other, rng)))
            rows.append((kind, split_of(host), *scores(mine, copy, boilerplate)))
        for neighbour in rng.sample(by_host[host], min(_NEIGHBOURS, len(by_host[host]))):
            if neighbour.url != page.url:
                found = scores(mine, shingles(neighbour.text), boilerplate)
                rows.append(("", split_of(host), *found))
    return pd.DataFrame(rows, columns=["edit", "split", *METHODS])


METHODS = ("sketch", "sketch, whole text", "SimHash", "SimHash, whole text")


def scores(
    one: ShingleHashes, other: ShingleHashes, boilerplate: ShingleHashes
) -> tuple[float, float, float, float]:
    """The similarity of two pages in [0, 1] by each of :data:`METHODS`."""
    one_own, other_own = hashes_not_in(one, boilerplate), hashes_not_in(other, boilerplate)
    return (
        estimate_resemblance(make_sketch(one_own), make_sketch(other_own))[0],
        estimate_resemblance(make_sketch(one), make_sketch(other))[0],
        1 - int((simhash(one_own) != simhash(other_own)).sum()) / 64,
        1 - int((simhash(one) != simhash(other)).sum()) / 64,
    )


def simhash(hashes: ShingleHashes) -> NDArray[np.bool_]:
    """Charikar's (2002) fingerprint of 64 bits, shape (64,): the majority of all hashes' bits."""
    bits = np.unpackbits(hashes.view(np.uint8).reshape(len(hashes), 8), axis=1)
    return np.asarray(bits.sum(axis=0) * 2 > len(hashes))


def recall_by_method(pairs: pd.DataFrame) -> pd.DataFrame:
    """Recall on test hosts, each method at its lowest threshold with few false calls in
    validation.
    """
    negative = pairs["edit"] == ""
    valid, test = pairs["split"] == "validation", pairs["split"] == "test"
    rows = []
    for method in METHODS:
        limit = float(pairs.loc[negative & valid, method].quantile(1 - MOST_FALSE))
        called = pairs[method] > limit
        recall = called[test & ~negative].groupby(pairs["edit"], sort=False).mean()
        false = float(called[test & negative].mean())
        rows.append(
            {
                "method": method,
                "above": limit,
                "false calls": false,
                "all edits": called[test & ~negative].mean(),
                **recall,
            }
        )
    return pd.DataFrame(rows).round(4)


def variants(web: RecordedWeb) -> pd.DataFrame:
    """How similar documents on two hosts are, in one version or two."""
    rows = []
    urls = set(web.page_urls)
    for here, there in VARIANTS:
        twins = [(url, there + url.removeprefix(here)) for url in urls if url.startswith(here)]
        pages = [(page_of(web, one), page_of(web, two)) for one, two in twins if two in urls]
        both = [(one, two) for one, two in pages if one is not None and two is not None]
        exact = sum(content_fingerprint(one) == content_fingerprint(two) for one, two in both)
        shares = [
            estimate_resemblance(make_sketch(shingles(one.text)), make_sketch(shingles(two.text)))[
                0
            ]
            for one, two in both
        ]
        alike = sum(share >= MIN_RESEMBLANCE for share in shares)
        rows.append((here, there, len(both), exact, alike, float(np.median(shares or [0.0]))))
    columns = ["here", "there", "pairs", "exact", "alike in whole text", "median resemblance"]
    return pd.DataFrame(rows, columns=columns).round(3)


def split_of(host: str) -> str:
    """Validation or test, by hash; subdomains of a site together."""
    site = ".".join(re.sub(r":\d+$", "", host).split(".")[-2:])
    return "test" if hash_fraction(site) < 0.5 else "validation"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("web", type=Path, help="folder of a recorded web")
    parser.add_argument("--pages-a-host", type=int, default=100)
    parser.add_argument("--edited-a-host", type=int, default=5)
    parser.add_argument("--draw", type=int, default=1, help="the seed of all random choices")
    return parser.parse_args()


if __name__ == "__main__":
    main()
