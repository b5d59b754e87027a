"""Size of a search index over real pages, and known-item searches in it.

    python benchmarks/search.py SOURCE... [--pages 100000]

SOURCE is a recorded web or a folder of HTML files. Their pages, each text once, are indexed as
``focused search`` does. Texts are the visible ones (resiliparse's main content), because extraction
by trafilatura would take most of the time: docs/explanation/extraction.md has its speed. No page
has in-links or a relevance, which would help to find it.

A known-item search has the words of a page's title and should find the page among the first ten
hits. A title that several pages share names none of them: the sample is drawn from the pages whose
title no other page has. Each search, with snippets of ten hits, is timed in CPU time.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from focused.corpus.page_selection import SelectedPage
from focused.corpus.stored_documents import StoredDocument
from focused.search.index import CrawlSearch, SearchQuery, open_index, open_writer, page_document
from focused.web.decoding import decode
from focused.web.html.document import Document
from focused.web.html.text_structure import PARAGRAPH, TextBlock
from focused.web.urls import host_of
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.recorded_web.web_import import read_html

_WORD = re.compile(r"\w+")
_TOP = 10
_PAGES_PER_COMMIT = 1_000
_SEARCHES = 2_000


@dataclass(frozen=True, slots=True)
class Text:
    """Title and text of a page."""

    url: str
    title: str
    text: str


def main() -> None:
    """Index, search and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources", type=Path, nargs="+", help="recorded webs, folders of HTML")
    parser.add_argument("--pages", type=int, default=100_000, help="at most so many")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="search-") as name:
        folder = Path(name)
        titles = build(islice(distinct_pages(options.sources), options.pages), folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        print(f"index: {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
        search_known_items(folder, titles)


def build(pages: Iterator[Text], folder: Path) -> Mapping[str, str]:
    """Index pages; return their titles."""
    writer = open_writer(open_index(folder / "search" / "index"))
    titles: dict[str, str] = {}
    chars = 0
    for page in pages:
        titles[page.url] = page.title
        chars += len(page.text)
        writer.add_document(_document(page, len(titles)))
        if len(titles) % _PAGES_PER_COMMIT == 0:
            writer.commit()
    writer.commit()
    writer.wait_merging_threads()
    print(f"{len(titles):,} pages, {chars / 1e6:.1f} million characters")
    return titles


def distinct_pages(sources: Sequence[Path]) -> Iterator[Text]:
    """Yield the pages with text of all sources, each URL and each text once."""
    seen: set[object] = set()
    for page in (page for source in sources for page in read_pages(source)):
        text = f"{page.title}\0{page.text}".encode("utf-8", "replace")
        key = xxhash.xxh3_64_intdigest(text)
        if page.text.strip() and seen.isdisjoint((key, page.url)):
            seen.update((key, page.url))
            yield page


def read_pages(source: Path) -> Iterator[Text]:
    """Yield the pages of a recorded web, or of a folder of HTML files."""
    if (source / "web.json").exists():
        with RecordedWeb.open(source) as web:
            for url in web.page_urls:
                response = web.get(url)
                if response is not None and response.status == 200:
                    yield _text(url, response.body, dict(response.headers))
        return
    for path in sorted(source.rglob("*.html")):
        if path.is_file():
            url = f"https://{source.name}.test/{path.relative_to(source).as_posix()}"
            yield _text(url, read_html(path), {})


def _text(url: str, body: bytes, headers: dict[str, str]) -> Text:
    html, _ = decode(body, headers)
    tree = HTMLTree.parse(html)
    text = extract_plain_text(tree, main_content=True)
    return Text(url, " ".join((tree.title or "").split())[:300], text)


def _document(page: Text, number: int) -> Any:
    row = SelectedPage(
        url=page.url,
        host=host_of(page.url),
        title=page.title,
        relevance=0.0,
        on_topic=True,
        score=0.0,
        depth=0,
        parent=None,
        anchor="",
        language="en",
        duplicate_of=None,
        training=False,
        fetched_at=1.7e9,
        gone=False,
        model="",
        warc_file="",
        warc_offset=0,
        cluster="",
        cluster_size=1,
    )
    stored = StoredDocument(number, Document((TextBlock(PARAGRAPH, page.text),)))
    return page_document(row, stored, ())


def search_known_items(folder: Path, titles: Mapping[str, str]) -> None:
    """Search for pages by the words of their titles; print how many are found, and the times."""
    searching = CrawlSearch(folder)
    # In lower case AND, OR, NOT and IN are words.
    words = {url: " ".join(_WORD.findall(title)).casefold() for url, title in titles.items()}
    shared = Counter(words.values())
    unique = sorted(url for url, text in words.items() if text and shared[text] == 1)
    sample = random.Random(0).sample(unique, min(_SEARCHES, len(unique)))
    found = 0
    cpu_ms: list[float] = []
    for url in sample:
        began_s = time.process_time()
        hits = searching.search(SearchQuery(words[url], _TOP)).hits
        cpu_ms.append(1e3 * (time.process_time() - began_s))
        found += url in [hit.url for hit in hits]
    median, late = np.percentile(cpu_ms, [50, 99])
    print(f"{found / len(sample):.1%} of {len(sample):,} pages are among the first {_TOP} hits")
    print(f"a search: {median:.1f} ms of CPU in the median, {late:.1f} at the 99th percentile")


if __name__ == "__main__":
    main()
