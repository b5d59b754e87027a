r"""Measure how well the main text of pages is extracted whose source text is known.

    pip install docutils
    python benchmarks/extraction.py --web webs/docweb-medium --debs webs/packages/debs
    python benchmarks/extraction.py --articles article-extraction-benchmark

Pages of the documentation web are compared with their reStructuredText sources; ``--articles`` is a
clone of https://github.com/scrapinghub/article-extraction-benchmark, whose 181 news articles and
posts have texts made by people. Of each page, the words of the extracted text and of the source
are compared as bags: precision, recall and F1, with 95% intervals by a bootstrap over packages (or
articles). Pages whose visible text lacks more than 5% of their source's words are left out: they
show something else. ``structure`` is the share of the source's headings that are headings of the
extraction, and of its code blocks that come back to the letter, for extractions with structure.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import lxml.html
import numpy as np
from extraction_sources import SourcePage, read_sphinx_markup, source_pages
from resiliparse.extract.html2text import extract_plain_text

from focused.web.html.document import extract_document
from focused.web.html.text_structure import CODE, HEADING, render_text
from focused.web.page import Fetched
from focused_lab.analysis.inference import bootstrap_weights
from focused_lab.recorded_web.recorded_web import RecordedWeb

MIN_SOURCE_SHARE = 0.95
_WORD = re.compile(r"\w+")
_NO_WORD = re.compile(r"\W+")
_BAD_F1 = 0.5


class Extraction(NamedTuple):
    """An extracted text; headings and code are None without structure."""

    text: str
    headings: Sequence[str] | None = None
    code: Sequence[str] | None = None


Extractor = Callable[[str], Extraction]


def _fetched(html: str) -> Fetched:
    headers = {"content-type": "text/html; charset=utf-8"}
    return Fetched("http://page.test/", 200, headers, html.encode())


def focused(html: str) -> Extraction:
    """Extract as ``focused export`` does."""
    blocks = extract_document(_fetched(html)).blocks
    headings = [block.text for block in blocks if block.kind == HEADING]
    return Extraction(
        render_text(blocks), headings, [block.text for block in blocks if block.kind == CODE]
    )


def resiliparse(html: str) -> Extraction:
    """Extract with resiliparse, main content as reduced HTML."""
    reduced = extract_plain_text(html, preserve_formatting="minimal_html", main_content=True)
    if not reduced.strip():
        return Extraction("", (), ())
    tree = lxml.html.fromstring(f"<div>{reduced}</div>")
    headings = [each.text_content() for each in tree.iter(*(f"h{n}" for n in range(1, 7)))]
    return Extraction(
        tree.text_content(), headings, [each.text_content() for each in tree.iter("pre")]
    )


def all_text(html: str) -> Extraction:
    """Take all visible text."""
    return Extraction(extract_plain_text(html))


EXTRACTORS: dict[str, Extractor] = {
    "focused export": focused,
    "resiliparse": resiliparse,
    "all visible text": all_text,
}


def word_counts(text: str) -> Counter[str]:
    """Return the words of a text with their counts, in lower case."""
    return Counter(_WORD.findall(text.lower()))


def compare_words(found: Counter[str], source: Counter[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of bags of words."""
    common = (found & source).total()
    precision = common / max(found.total(), 1)
    recall = common / max(source.total(), 1)
    return precision, recall, 2 * common / max(found.total() + source.total(), 1)


def structure_found(page: SourcePage, found: Extraction) -> tuple[int, int]:
    """Return how many headings and code blocks of the source the extraction has.

    Generated numbers before a heading are ignored, and so is white space at the ends of lines.
    """
    headings = [_NO_WORD.sub("", each.lower()) for each in found.headings or ()]
    wanted = [_NO_WORD.sub("", each.lower()) for each in page.headings]
    code = {_trimmed(each) for each in found.code or ()}
    return (
        sum(any(each.endswith(want) for each in headings) for want in wanted),
        sum(_trimmed(each) in code for each in page.code),
    )


def _trimmed(code: str) -> str:
    return "\n".join(map(str.rstrip, code.split("\n"))).strip("\n")


def shown(page: SourcePage) -> bool:
    """Whether a page shows its source."""
    recall = compare_words(word_counts(all_text(page.html).text), word_counts(page.text))[1]
    return recall >= MIN_SOURCE_SHARE


def articles(folder: Path) -> list[SourcePage]:
    """Return the articles of a clone of article-extraction-benchmark, each its own package."""
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    pages = []
    for name, known in sorted(truth.items()):
        html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        text = html.decode("utf-8", "replace")
        pages.append(SourcePage(known["url"], name, text, known["articleBody"], (), ()))
    return pages


def rows(pages: Sequence[SourcePage]) -> Iterator[list[str]]:
    """Yield a row of the table for each extractor."""
    weights = bootstrap_weights([page.package for page in pages], np.random.default_rng(1))
    sources = [word_counts(page.text) for page in pages]
    n_headings = sum(len(page.headings) for page in pages)
    n_code = sum(len(page.code) for page in pages)
    for name, extract in EXTRACTORS.items():
        began_s = time.process_time()
        found = [extract(page.html) for page in pages]
        seconds = time.process_time() - began_s
        scores = np.array(
            [
                compare_words(word_counts(each.text), source)
                for each, source in zip(found, sources, strict=True)
            ]
        )
        resampled = weights @ scores[:, 2] / weights.sum(axis=1)
        low, high = np.quantile(resampled, (0.025, 0.975))
        precision, recall, f1 = scores.mean(axis=0)
        structure = ["", ""]
        if found[0].headings is not None and n_headings:
            counts = [structure_found(page, each) for page, each in zip(pages, found, strict=True)]
            headings, code = np.sum(counts, axis=0)
            structure = [f"{headings / n_headings:.0%}", f"{code / max(n_code, 1):.0%}"]
        yield [
            name,
            f"{f1:.3f} ({low:.3f} to {high:.3f})",
            f"{precision:.3f}",
            f"{recall:.3f}",
            f"{np.mean(scores[:, 2] < _BAD_F1):.1%}",
            *structure,
            f"{len(pages) / seconds:,.0f}",
        ]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--web", type=Path, help="the documentation web")
    options.add_argument("--debs", type=Path, help="the packages that it was built from")
    options.add_argument("--per-package", type=int, default=8, help="pages of a package at most")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--articles", type=Path, help="a clone of article-extraction-benchmark")
    chosen = options.parse_args()
    logging.disable(logging.WARNING)
    if chosen.articles:
        pages = articles(chosen.articles)
    else:
        read_sphinx_markup()
        with RecordedWeb.open(chosen.web) as web:
            found = source_pages(web, chosen.debs, chosen.per_package, chosen.seed)
        pages = [page for page in found if shown(page)]
    print(f"{len(pages)} pages of {len({page.package for page in pages})} packages or articles\n")
    print("| extractor | F1 | precision | recall | F1 < 0.5 | headings | code | pages per second |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows(pages):
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
