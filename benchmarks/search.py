"""Size, speed and known-item searches of a search index over real pages.

    python benchmarks/search.py SOURCE... --folder FOLDER [--json FILE]

SOURCE is a recorded web or a folder of HTML files. Their pages, each text once, are indexed in
``--folder`` as ``focused search`` does, unless they are there from an earlier run. Texts are the
visible ones (resiliparse's main content), because extraction by trafilatura would take most of the
time: docs/explanation/extraction.md has its speed. No page has in-links or a relevance, which
would help to find it.

A known-item search has the words of a page's title and should find the page among the first ten
hits. A title that several pages share names none of them: the sample is drawn from the pages whose
title no other page has. Each search, with snippets of ten hits, is timed by the clock and in CPU
time, which other work on the machine disturbs less; so are searches with two random words of a
title.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from machine import machine
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from focused.corpus.page_selection import SelectedPage
from focused.corpus.stored_documents import StoredDocument
from focused.files import write_json_atomically
from focused.recorded_web.recorded_web import RecordedWeb
from focused.recorded_web.web_import import read_html
from focused.search.index import CrawlSearch, SearchQuery, open_index, open_writer, page_document
from focused.web.decoding import decode
from focused.web.html.document import Document
from focused.web.html.text_structure import PARAGRAPH, TextBlock
from focused.web.urls import host_of

_WORD = re.compile(r"\w+")
_TOP = 10
_PER_COMMIT = 1_000
_TITLES_FILE = "titles.json"
_MEASURES_FILE = "measures.json"


@dataclass(frozen=True, slots=True)
class Text:
    """Title and text of a page."""

    url: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Latencies:
    """Percentiles in milliseconds."""

    p50: float
    p95: float
    p99: float


def main(arguments: Sequence[str]) -> None:
    """Index, search, print; write JSON if requested."""
    options = _options(arguments)
    if not (options.folder / _MEASURES_FILE).exists():
        build(options.sources, options.folder, options.documents)
    built = json.loads((options.folder / _MEASURES_FILE).read_text())
    result = {**built, **search_known_items(options.folder, options.queries, options.seed)}
    for name, value in result.items():
        print(f"{name}: {value}")
    if options.json:
        sources = [source.name for source in options.sources]
        write_json_atomically(options.json, {"machine": machine(), "sources": sources, **result})


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sources", type=Path, nargs="+", help="recorded webs, folders of HTML")
    parser.add_argument("--folder", type=Path, required=True, help="folder of the index")
    parser.add_argument("--documents", type=int, default=100_000, help="at most so many")
    parser.add_argument("--queries", type=int, default=2_000, help="known items")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--json", type=Path, help="write the result")
    return parser.parse_args(arguments)


def build(sources: Sequence[Path], folder: Path, at_most: int) -> None:
    """Index the pages of all sources; note titles and measures beside the index."""
    index = open_index(folder / "search" / "index")
    writer = open_writer(index)
    titles: dict[str, str] = {}
    seen: set[int] = set()
    chars = 0
    spent_s = 0.0
    for page in (page for source in sources for page in read_pages(source)):
        key = xxhash.xxh3_64_intdigest(f"{page.title}\0{page.text}".encode("utf-8", "replace"))
        if len(titles) == at_most:
            break
        if key in seen or page.url in titles or not page.text.strip():
            continue
        seen.add(key)
        titles[page.url] = page.title
        chars += len(page.text)
        began_s = time.perf_counter()
        writer.add_document(_document(page, len(titles)))
        if len(titles) % _PER_COMMIT == 0:
            writer.commit()
        spent_s += time.perf_counter() - began_s
        if len(titles) % 10_000 == 0:
            print(f"{len(titles):,} indexed in {spent_s:.0f} s", flush=True)
    began_s = time.perf_counter()
    writer.commit()
    writer.wait_merging_threads()
    spent_s += time.perf_counter() - began_s
    size = sum(path.stat().st_size for path in (folder / "search").rglob("*") if path.is_file())
    write_json_atomically(folder / _TITLES_FILE, dict(titles))
    measures = {
        "documents": len(titles),
        "million_chars": round(chars / 1e6, 1),
        "index_mb": round(size / 1e6, 1),
        "documents_per_s": round(len(titles) / spent_s),
    }
    write_json_atomically(folder / _MEASURES_FILE, measures)


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


def search_known_items(folder: Path, queries: int, seed: int) -> dict[str, Any]:
    """Search for pages by the words of their titles."""
    searching = CrawlSearch(folder)
    titles: dict[str, str] = json.loads((folder / _TITLES_FILE).read_text())
    # In lower case AND, OR, NOT and IN are words.
    words = {url: " ".join(_WORD.findall(title)).casefold() for url, title in titles.items()}
    shared = Counter(words.values())
    unique = sorted(url for url, text in words.items() if text and shared[text] == 1)
    rng = random.Random(seed)
    ranks: list[int | None] = []
    known: list[tuple[float, float]] = []
    two: list[tuple[float, float]] = []
    for url in rng.sample(unique, min(queries, len(unique))):
        found, took = _timed(searching, words[url])
        known.append(took)
        ranks.append(found.index(url) if url in found else None)
        every = words[url].split()
        two.append(_timed(searching, " ".join(rng.sample(every, min(2, len(every)))))[1])
    return {
        "unique_titles": len(unique),
        "queries": len(ranks),
        "found": round(sum(rank is not None for rank in ranks) / len(ranks), 4),
        "found_first": round(sum(rank == 0 for rank in ranks) / len(ranks), 4),
        "known_item_ms": asdict(_latencies([wall for wall, _ in known])),
        "known_item_cpu_ms": asdict(_latencies([cpu for _, cpu in known])),
        "two_words_ms": asdict(_latencies([wall for wall, _ in two])),
        "two_words_cpu_ms": asdict(_latencies([cpu for _, cpu in two])),
    }


def _timed(searching: CrawlSearch, text: str) -> tuple[list[str], tuple[float, float]]:
    """Return the URLs found, and the seconds by the clock and of the CPU."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    hits = searching.search(SearchQuery(text, _TOP)).hits
    took = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    return [hit.url for hit in hits], took


def _latencies(seconds: Sequence[float]) -> Latencies:
    p50, p95, p99 = (1e3 * np.percentile(seconds, [50, 95, 99])).tolist()
    return Latencies(round(p50, 2), round(p95, 2), round(p99, 2))


if __name__ == "__main__":
    main(sys.argv[1:])
