"""The novelty of honest sites: does text that people wrote look like a generated site's?

``python benchmarks/site_novelty.py WEB...`` reads the pages of each site of recorded webs, and
those of each category of its labels, as a crawl of that topic would, in the order of their URLs and
in random order. After 50, 100, 200, ... pages it prints the shares of words and of pairs of words
that occur on one page only: least, first percentile, most; and how many sites and parts of sites
would wait longer (novelty below 1) or be closed (0). ``--html FOLDER...`` reads folders of HTML
files instead, each as a site, and prints one line for each after 50 pages: the package
installation-guide-amd64 of Debian has one for each of its languages.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from focused.recorded_web.recorded_web import RecordedWeb, page_reader
from focused.spam import site_novelty
from focused.spam.site_novelty import MIN_PAGES, MIN_WORDS, SiteNovelty
from focused.storage.state_store import StateStore
from focused.text.word_hashes import WordHashes, hash_texts
from focused.web.content_hash import content_fingerprint
from focused.web.host_names import registered_domain, site_key
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched
from focused.web.urls import host_of

_ORDERS = ("url", "random-1", "random-2")
Checkpoint = tuple[float, float, float]
"""Shares of words and of pairs on one page only, and the novelty."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("web", nargs="*", type=Path)
    parser.add_argument("--html", nargs="*", type=Path, default=[], metavar="FOLDER")
    options = parser.parse_args()
    for folder in options.html:
        words = _words_of_files(folder)
        for pages, (once, pairs, novelty) in _checkpoints(sorted(words), words):
            print(f"{folder.name:6} {pages:5} pages {once:6.2f} {pairs:6.2f} {novelty:6.2f}")
    if options.web:
        _print_webs(options.web)


def _print_webs(webs: Sequence[Path]) -> None:
    found: defaultdict[int, list[Checkpoint]] = defaultdict(list)
    closed: list[str] = []
    for folder in webs:
        with RecordedWeb.open(folder) as web:
            words = _words_of_pages(web)
            groups = _groups(web, words)
        for (site, category), urls in sorted(groups.items()):
            for order in _ORDERS:
                for pages, checkpoint in _checkpoints(_ordered(urls, order), words):
                    found[pages].append(checkpoint)
                    if checkpoint[2] == 0.0:
                        closed.append(f"{folder.name}: {site} {category} at {pages:,} pages")
    print("pages  runs   words: least  1%    most   pairs: least  1%    most   below 1  closed")
    for pages, checkpoints in sorted(found.items()):
        once, pairs, novelty = np.array(checkpoints).T
        print(
            f"{pages:5} {len(once):5} {once.min():13.2f} {np.quantile(once, 0.01):5.2f} "
            f"{once.max():6.2f} {pairs.min():14.2f} {np.quantile(pairs, 0.01):5.2f} "
            f"{pairs.max():6.2f} {(novelty < 1).sum():8} {(novelty == 0).sum():7}"
        )
    print(*closed, sep="\n")


def _words_of_pages(web: RecordedWeb) -> Mapping[str, WordHashes]:
    """Return the hashed words of all different pages that have enough."""
    read, seen = page_reader(web), set()
    words = {}
    for url in sorted(web.page_urls):
        page = read(url)
        if page is None or (content := content_fingerprint(page)) in seen:
            continue
        seen.add(content)
        hashes = hash_texts((page.text,)).hashes
        if len(hashes) >= MIN_WORDS:
            words[url] = hashes
    return words


def _words_of_files(folder: Path) -> Mapping[str, WordHashes]:
    words = {}
    for file in folder.glob("*.html"):
        url, headers = f"http://site.test/{file.name}", {"content-type": "text/html"}
        page = parse_page(Fetched(url, 200, headers, file.read_bytes()))
        if not isinstance(page, Failed):
            words[url] = hash_texts((page.text,)).hashes
    return {url: hashes for url, hashes in words.items() if len(hashes) >= MIN_WORDS}


def _groups(
    web: RecordedWeb, words: Mapping[str, WordHashes]
) -> Mapping[tuple[str, str], set[str]]:
    """Return the pages of each site, and of each category on it; those with enough pages."""
    groups: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for url in words:
        site = registered_domain(host_of(url))
        groups[site, ""].add(url)
        for category in web.categories(url):
            parts = category.split("/")
            for end in range(1, len(parts) + 1):
                groups[site, "/".join(parts[:end])].add(url)
    return {key: urls for key, urls in groups.items() if len(urls) >= MIN_PAGES}


def _ordered(urls: set[str], order: str) -> Sequence[str]:
    ordered = sorted(urls)
    if order != "url":
        random.Random(order).shuffle(ordered)
    return ordered


def _checkpoints(
    urls: Sequence[str], words: Mapping[str, WordHashes]
) -> Iterator[tuple[int, Checkpoint]]:
    with tempfile.TemporaryDirectory() as folder:
        store = StateStore.open(Path(folder) / "state", {}, commit_every=1_000)
        novelty = SiteNovelty(store.tables)
        pages = MIN_PAGES
        for count, url in enumerate(urls, start=1):
            found = novelty.learn("http://site.test/", words[url])
            if count == pages:
                raw = store.tables.get(site_novelty._TABLE, site_key("http://site.test/"))
                content = site_novelty._SiteContent.unpack(raw or b"")
                yield pages, (content.words.once, content.pairs.once, found)
                pages *= 2
        store.close()


if __name__ == "__main__":
    main()
