"""Recall and precision of near-duplicate detection on a recorded web.

``python benchmarks/duplicates.py webs/docweb-medium`` makes copies of its pages by known edits, on
another host and on the page's own, looks each up in the crawl's own index, and writes tables into
``benchmarks/results/duplicates/``. Hosts are split into validation and test; thresholds are chosen
on validation only. All original pages are looked up as in a crawl, and those called duplicates are
written to ``calls.csv`` for reading. A web of few hosts is only read, not edited.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from focused.crawl.dedup.duplicates import MIN_RESEMBLANCE, NearDuplicateIndex
from focused.storage.state_store import StateStore
from focused.text import hash_fraction
from focused.text.content_signatures import content_fingerprint
from focused.text.shingles import shingles
from focused.web.page import Page
from focused.web.urls import host_of
from focused_lab.recorded_web.recorded_web import RecordedWeb, page_reader

RESULTS = Path(__file__).parent / "results" / "duplicates"
THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_MIN_WORDS = 150
_MIN_HOSTS = 20
_NUMBER = re.compile(r"\d+")
_MENU_WORDS, _TEMPLATE_WORDS = 60, 300

Edit = Callable[[Sequence[str], Sequence[str], random.Random], list[str]]
"""Maps a page's words, and those of a page of another site, to the copy's words."""


def date_and_version(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Increment version numbers, and append the date of the visit."""
    incremented = [
        _NUMBER.sub(lambda found: str(int(found[0][:9]) + 1), word)
        if "." in word.strip(".") and _NUMBER.search(word)
        else word
        for word in words
    ]
    day, year = str(rng.randint(1, 28)), str(rng.randint(2001, 2030))
    return [*incremented, "Last", "updated", day, "May", year]


def menus(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Put sixty words of another site's page in front and thirty at the end."""
    return [*other[:_MENU_WORDS], *words, *other[-_MENU_WORDS // 2 :]]


def template(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Put three hundred words in front, and drop the page's first and last thirty."""
    return [*other[:_TEMPLATE_WORDS], *words[30:-30]]


def added(share: float) -> Edit:
    """Insert a passage, its length relative to the page's."""

    def edit(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
        length = max(1, round(share * len(words)))
        passage = [other[i % len(other)] for i in range(length)]
        place = rng.randint(0, len(words))
        return [*words[:place], *passage, *words[place:]]

    return edit


def removed(share: float) -> Edit:
    """Remove a passage, its length relative to the page's."""

    def edit(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
        length = max(1, round(share * len(words)))
        place = rng.randint(0, len(words) - length)
        return [*words[:place], *words[place + length :]]

    return edit


def replaced(share: float) -> Edit:
    """Replace single words all over the page."""

    def edit(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
        found = list(words)
        for place in rng.sample(range(len(words)), max(1, round(share * len(words)))):
            found[place] = f"{rng.choice(other)}x"
        return found

    return edit


def shuffled(words: Sequence[str], other: Sequence[str], rng: random.Random) -> list[str]:
    """Shuffle the sentences."""
    sentences: list[list[str]] = [[]]
    for word in words:
        sentences[-1].append(word)
        if word.endswith((".", "!", "?")):
            sentences.append([])
    rng.shuffle(sentences)
    return [word for sentence in sentences for word in sentence]


EDITS: Mapping[str, Edit] = {
    "date and version": date_and_version,
    "menus": menus,
    "template": template,
    **{f"passage added, {share:.0%}": added(share) for share in (0.01, 0.05, 0.1, 0.2, 0.3)},
    **{f"passage removed, {share:.0%}": removed(share) for share in (0.01, 0.05, 0.1, 0.2, 0.3)},
    **{f"single words, {share:.0%}": replaced(share) for share in (0.01, 0.05)},
    "sentences shuffled": shuffled,
}
"""The kinds of edit by the names in the tables."""


def main() -> None:
    """Index, look up, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("web", type=Path, help="folder of a recorded web")
    parser.add_argument("--pages-a-host", type=int, default=100)
    parser.add_argument("--edited-a-host", type=int, default=5)
    options = parser.parse_args()
    rng = random.Random(1)
    with RecordedWeb.open(options.web) as web, tempfile.TemporaryDirectory() as folder:
        pages = list(distinct_pages(web, options.pages_a_host, rng))
        store = StateStore.open(Path(folder), {"benchmark": "duplicates"}, commit_every=1_000)
        index = NearDuplicateIndex(store.tables)
        calls = index_pages(index, store, pages)
        tables = {"calls": calls}
        if len(web.hosts) >= _MIN_HOSTS:
            copies = look_up_copies(index, pages, options.edited_a_host, rng)
            tables |= {
                "edits": recall_by_edit(copies),
                "thresholds": recall_by_threshold(copies, calls),
            }
        store.close()
    print(f"{calls['called'].sum()} of {len(pages):,} unedited pages are called duplicates")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(RESULTS / f"{options.web.name}-{name}.csv", index=False)
        if name != "calls":
            print(f"\n{name}\n{table.to_string(index=False)}")


def distinct_pages(web: RecordedWeb, pages_a_host: int, rng: random.Random) -> Iterator[Page]:
    """Yield pages of the web in random order, limited per host, each content once."""
    read = page_reader(web)
    urls = list(web.page_urls)
    rng.shuffle(urls)
    count: Counter[str] = Counter()
    seen = set()
    for url in urls:
        page = read(url) if count[host_of(url)] < pages_a_host else None
        if page is not None and (content := content_fingerprint(page)) not in seen:
            seen.add(content)
            count[host_of(url)] += 1
            yield page


def index_pages(
    index: NearDuplicateIndex, store: StateStore, pages: Sequence[Page]
) -> pd.DataFrame:
    """Look up and add the pages one after the other, as a crawl does; return what they resemble."""
    calls = []
    for page in pages:
        sketch = index.page_sketch(page, shingles(page.text))
        share, like, _ = index.nearest(sketch)
        if share < MIN_RESEMBLANCE:
            index.add(sketch)
        store.commit()
        if share >= min(THRESHOLDS):
            calls.append((page.url, like, round(share, 3), share >= MIN_RESEMBLANCE))
    return pd.DataFrame(calls, columns=["url", "like", "resemblance", "called"])


def look_up_copies(
    index: NearDuplicateIndex, pages: Sequence[Page], edited_a_host: int, rng: random.Random
) -> pd.DataFrame:
    """Return a row per copy: edit, position, split, resemblance, and whether its page was found."""
    long = [page for page in pages if len(page.text.split()) >= _MIN_WORDS]
    count: Counter[str] = Counter()
    rows = []
    for page in long:
        host = host_of(page.url)
        other = rng.choice(long)
        count[host] += 1
        if count[host] > edited_a_host or host_of(other.url) == host:
            continue
        places = {"another host": f"http://copies.{host}/", "same host": f"{page.url}?copy"}
        for kind, edit in EDITS.items():
            text = " ".join(edit(page.text.split(), other.text.split(), rng))
            for place, url in places.items():
                copy = index.page_sketch(replace(page, url=url, text=text), shingles(text))
                share, like, _ = index.nearest(copy)
                rows.append((kind, place, split_of(host), share, like == page.url))
    return pd.DataFrame(rows, columns=["edit", "place", "split", "share", "right"])


def recall_by_edit(copies: pd.DataFrame) -> pd.DataFrame:
    """The share of test copies that are called duplicates, and of calls that name another page."""
    test = copies[copies["split"] == "test"].copy()
    test["called"] = test["share"] >= MIN_RESEMBLANCE
    test["misnamed"] = test["called"] & ~test["right"]
    grouped = test.groupby(["edit", "place"], sort=False)
    table = grouped.agg(
        copies=("called", "size"), recall=("called", "mean"), misnamed=("misnamed", "mean")
    )
    return table.round(3).reset_index()


def recall_by_threshold(copies: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """Recall of validation copies, and validation pages called duplicates, by threshold."""
    valid = copies[copies["split"] == "validation"]
    unedited = calls[calls["url"].map(host_of).map(split_of) == "validation"]
    return pd.DataFrame(
        {
            "threshold": threshold,
            "recall": round(float((valid["share"] >= threshold).mean()), 3),
            "other pages called": int((unedited["resemblance"] >= threshold).sum()),
        }
        for threshold in THRESHOLDS
    )


def split_of(host: str) -> str:
    """Validation or test, by hash; subdomains of a site together."""
    site = ".".join(re.sub(r":\d+$", "", host).split(".")[-2:])
    return "test" if hash_fraction(site) < 0.5 else "validation"


if __name__ == "__main__":
    main()
