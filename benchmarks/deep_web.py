"""Coverage of a database behind a search form, by number of queries and by way of selecting them.

    python benchmarks/deep_web.py webs/foldoc --records 5000

The database holds pages of a recorded web with labels. A query of one word returns the records with
that word, those with most occurrences first, at most 100 in pages of 20. ``adaptive`` selects by
:class:`focused.crawl.deep_web.QuerySelector`, ``frequent`` takes the word that most
found records have, ``random`` takes random words of the shipped English vocabulary, which knows
nothing of the database. Relevance is the label, known for records that were found. Prints the share
of all records and of those of the topic, mean and range over samples of records.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from focused.crawl.deep_web import QuerySelector
from focused.recorded_web.recorded_web import RecordedWeb, page_reader
from focused.text.static_embedding import load_embedding
from focused.text.tokens import tokenize

MOST_RESULTS, RESULTS_A_PAGE = 100, 20
STEPS = (10, 25, 50, 100, 200, 400)


@dataclass(frozen=True)
class Record:
    """A record's words with their occurrences."""

    words: Counter[str]
    is_relevant: bool


class Database:
    """Records behind a search form."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        index: dict[str, list[int]] = defaultdict(list)
        for number, record in enumerate(records):
            for word in record.words:
                index[word].append(number)
        self._index = {
            word: sorted(found, key=lambda n: (-records[n].words[word], n))[:MOST_RESULTS]
            for word, found in index.items()
        }

    def search(self, word: str) -> Sequence[int]:
        """Return the numbers of the records that a query returns, best first."""
        return self._index.get(word, ())


@dataclass
class Progress:
    """Shares found after each of :data:`STEPS` queries, and the result pages fetched by then."""

    of_all: list[float]
    of_topic: list[float]
    result_pages: list[int]


def probe(
    database: Database,
    next_query: Callable[[], str | None],
    found_page: Callable[[str, Record], None],
) -> Progress:
    """Send queries; ``found_page`` gets each new record with its query."""
    found: set[int] = set()
    relevant = sum(each.is_relevant for each in database.records)
    progress, pages = Progress([], [], []), 0
    for number in range(1, max(STEPS) + 1):
        query = next_query()
        results = database.search(query) if query is not None else ()
        pages += max(1, -(-len(results) // RESULTS_A_PAGE))
        for each in results:
            if each not in found:
                found.add(each)
                found_page(query or "", database.records[each])
        if number in STEPS:
            progress.of_all.append(len(found) / len(database.records))
            of_topic = sum(database.records[each].is_relevant for each in found)
            progress.of_topic.append(of_topic / relevant)
            progress.result_pages.append(pages)
    return progress


def adaptive(database: Database, keywords: Sequence[str], *, for_topic: bool) -> Progress:
    """Select by expected yield; without ``for_topic`` every record is relevant."""
    selector = QuerySelector(keywords)

    def found_page(query: str, record: Record) -> None:
        relevance = float(record.is_relevant) if for_topic else 1.0
        selector.observe(record.words, relevance)
        selector.credit(query, relevance)

    return probe(database, selector.next_query, found_page)


def frequent(database: Database, keywords: Sequence[str]) -> Progress:
    """Ask for the word that most found records have (Barbosa and Freire 2004)."""
    counts: Counter[str] = Counter()
    asked: set[str] = set()

    def next_query() -> str | None:
        waiting = [each for each in keywords if each not in asked]
        ranked = (word for word, _ in counts.most_common() if word not in asked and len(word) > 2)
        query = waiting[0] if waiting else next(ranked, None)
        asked.add(query or "")
        return query

    return probe(database, next_query, lambda query, record: counts.update(set(record.words)))


def randomly(database: Database, vocabulary: Sequence[str], seed: int) -> Progress:
    """Ask for random words."""
    words = iter(random.Random(seed).sample(vocabulary, max(STEPS)))
    return probe(database, lambda: next(words), lambda query, record: None)


def read_records(web_folder: Path, category: str) -> Sequence[Record]:
    """Read all pages with labels of a recorded web."""
    records = []
    with RecordedWeb.open(web_folder) as web:
        read = page_reader(web)
        for url in web.page_urls:
            categories = web.categories(url)
            page = read(url) if categories else None
            if page is not None:
                words = Counter(tokenize(f"{page.title} {page.text}"))
                records.append(Record(words, any(each.startswith(category) for each in categories)))
    return records


def english_words() -> Sequence[str]:
    """Return the words of the shipped embedding."""
    embedding = load_embedding()
    assert embedding is not None  # it is part of the package
    pieces = embedding.pieces
    return sorted({each for each in pieces if each.isascii() and each.isalpha() and len(each) > 2})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("web", type=Path)
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--category", default="Top/Computers/Networking")
    parser.add_argument("--keywords", default="network protocol internet")
    parser.add_argument("--samples", type=int, default=5, help="samples of records")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    every = read_records(options.web, options.category)
    vocabulary, keywords = english_words(), options.keywords.split()
    runs: dict[str, list[Progress]] = defaultdict(list)
    for seed in range(options.samples):
        database = Database(random.Random(seed).sample(every, options.records))
        runs["adaptive, all records"].append(adaptive(database, keywords, for_topic=False))
        runs["adaptive, topic"].append(adaptive(database, keywords, for_topic=True))
        runs["frequent"].append(frequent(database, keywords))
        runs["random"].append(randomly(database, vocabulary, seed))
    print(f"{len(every)} pages with labels, {options.records} records, {len(vocabulary)} words")
    for name, progress in runs.items():
        for measure, values in _summary(progress).items():
            print(f"{name:22} {measure:13}", *(f"{each:>16}" for each in values))
    print(f"{'queries':36}", *(f"{each:>16}" for each in STEPS))
    if options.json:
        raw = {name: [asdict(each) for each in progress] for name, progress in runs.items()}
        text = json.dumps({"queries": STEPS, "samples": raw}, indent=1)
        options.json.write_text(text + "\n")


def _summary(runs: Sequence[Progress]) -> Mapping[str, Sequence[str]]:
    return {
        "all": [_spread([run.of_all[i] for run in runs]) for i in range(len(STEPS))],
        "topic": [_spread([run.of_topic[i] for run in runs]) for i in range(len(STEPS))],
        "result pages": [
            f"{statistics.mean(run.result_pages[i] for run in runs):.0f}" for i in range(len(STEPS))
        ],
    }


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.3f} ({min(values):.2f}-{max(values):.2f})"


if __name__ == "__main__":
    main()
