r"""Measure main texts and dates on the evaluation sets of trafilatura and htmldate.

    git clone https://github.com/adbar/trafilatura && git clone https://github.com/adbar/htmldate
    python benchmarks/extraction_external.py trafilatura trafilatura
    python benchmarks/extraction_external.py htmldate htmldate

The first argument is the set, the second its clone. Scores are counted as the sets' own programs
(``tests/evaluate.py``, ``tests/comparison.py``) do: of a text, each annotated passage that should
be in it and is, or should not be and is; of a date, whether it is the annotated day, another one,
or none. Prints a Markdown table, and with ``--worst`` the pages with most errors.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import trafilatura
from htmldate import find_date

from focused.web.decoding import decode
from focused.web.html.document import extract_document
from focused.web.html.text_structure import render_text
from focused.web.page import Fetched

URL = "http://page.test/"
HEADERS = {"content-type": "text/html"}
FOLDERS = ("test_set", "cache", "eval")
DATE_FILES = ("eval_mediacloud_2020.json", "eval_default.json")


class Counts(NamedTuple):
    """Right and wrong decisions on a page."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int = 0

    @property
    def errors(self) -> int:
        """How many decisions are wrong."""
        return self.false_positives + self.false_negatives


def our_text(body: bytes) -> str:
    """Extract as ``focused export`` does."""
    return render_text(extract_document(Fetched(URL, 200, HEADERS, body)).blocks)


def _their_text(*, fast: bool) -> Callable[[bytes], str]:
    def extract(body: bytes) -> str:
        return trafilatura.extract(body, fast=fast, include_comments=False) or ""

    return extract


TEXTS: Mapping[str, Callable[[bytes], str]] = {
    "focused export": our_text,
    "trafilatura": _their_text(fast=False),
    "trafilatura, fast": _their_text(fast=True),
}


def our_date(body: bytes, *, guess: bool = False) -> str:
    """Return the day of publication as ``focused export`` does."""
    fetched = Fetched(URL, 200, HEADERS, body)
    return extract_document(fetched, guess_dates=guess).metadata.published


def _their_date(*, extensive: bool) -> Callable[[bytes], str]:
    def extract(body: bytes) -> str:
        html, _ = decode(body, HEADERS)
        return find_date(html, original_date=True, extensive_search=extensive) or ""

    return extract


DATES: Mapping[str, Callable[[bytes], str]] = {
    "focused export": our_date,
    "focused export --guess-dates": lambda body: our_date(body, guess=True),
    "htmldate": _their_date(extensive=True),
    "htmldate, fast": _their_date(extensive=False),
}


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def count_passages(text: str, known: Mapping[str, Any]) -> Counts:
    """Count the passages that should be in a text, and those that should not."""
    text = _collapsed(text)
    wanted = sum(_collapsed(each) in text for each in known["with"])
    unwanted = sum(_collapsed(each) in text for each in known["without"])
    return Counts(wanted, unwanted, len(known["with"]) - wanted, len(known["without"]) - unwanted)


def count_date(day: str, known: Mapping[str, Any]) -> Counts:
    """Count a date as right, wrong or missing."""
    is_right = day == known["date"]
    return Counts(int(is_right), int(bool(day) and not is_right), int(not day))


def pages_of(folder: Path, annotations: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    """Return the bodies of the annotated pages by URL."""
    bodies = {}
    for url, known in annotations.items():
        paths = [folder / each / known["file"] for each in FOLDERS]
        bodies[url] = next(path for path in paths if path.is_file()).read_bytes()
    return bodies


def row(name: str, counts: list[Counts], seconds: float) -> Iterator[str]:
    """Yield the cells of an extractor's row."""
    right, extra, missing, _ = map(sum, zip(*counts, strict=True))
    yield name
    yield f"{2 * right / (2 * right + extra + missing):.4f}"
    yield f"{right / (right + extra):.3f}"
    yield f"{right / (right + missing):.3f}"
    yield f"{right:,}"
    yield f"{len(counts) / seconds:,.0f}"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("set", choices=("trafilatura", "htmldate"))
    options.add_argument("clone", type=Path, help="a clone of the library's repository")
    options.add_argument("--worst", type=int, default=0, help="pages with most errors to name")
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    folder = chosen.clone / "tests"
    of_texts = chosen.set == "trafilatura"
    annotations: dict[str, dict[str, Any]] = {}
    for file in ("evaldata.json",) if of_texts else DATE_FILES:
        annotations |= json.loads((folder / file).read_text("utf-8"))
    bodies = pages_of(folder, annotations)
    print(f"{len(bodies)} pages\n")
    print("| extractor | F1 | precision | recall | right | pages per second |")
    print("|---|---|---|---|---|---|")
    worst: list[tuple[int, str, Counts]] = []
    for name, extract in (TEXTS if of_texts else DATES).items():
        count = count_passages if of_texts else count_date
        extract(b"<html><body><p>whale</p></body></html>")  # imports
        began_s = time.process_time()
        found = {url: extract(body) for url, body in bodies.items()}
        seconds = time.process_time() - began_s
        counts = {url: count(each, annotations[url]) for url, each in found.items()}
        print("|", " | ".join(row(name, list(counts.values()), seconds)), "|", flush=True)
        if not worst:
            worst = [(each.errors, url, each) for url, each in counts.items()]
    for _, url, each in sorted(worst, reverse=True)[: chosen.worst]:
        print(f"{url}: {each._asdict()}")


if __name__ == "__main__":
    main()
