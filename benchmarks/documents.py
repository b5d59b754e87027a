r"""Measure how well libraries read PDF and office files whose text and links are known.

    apt-get install libreoffice-writer-nogui
    pip install pypdf python-docx odfpy python-pptx
    python benchmarks/documents.py --web webs/docweb-small --debs webs/packages/debs \
        --folder build/documents

Makes the documents first: a seeded sample of pages of the recorded web, in each format by
LibreOffice (pptx by python-pptx), and PDFs of Debian packages that hold the plain text of the same
work. Each library reads each format in a process of its own.

Of each document, the words of the extracted text and of the source are compared as bags:
``characters`` is the share of the source's characters in words that were extracted, ``precision``
that of the extraction's in words of the source; ``order`` is the share of the source's runs of five
words that were extracted. ``links`` is the share of the source's link targets that were found.
Means over documents, with 95% intervals by a bootstrap over documents. ``ms`` is the median of CPU
time, ``max`` the largest; ``MB`` is what the process needed beyond its size after the imports.

Then the resemblance of each document to the recorded page it was made from, with that page's
navigation, and to all other pages: whether the duplicate detector finds them. Last the cost of a
page of HTML. Prints Markdown. Libraries that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from documents_sources import Source, make_documents, read_sources

from focused.crawl.dedup.duplicates import MIN_RESEMBLANCE, MIN_RESEMBLANCE_OF_FORMATS
from focused.documents.convert import to_html
from focused.documents.formats import document_format, needs_process
from focused.documents.markup import find_urls
from focused.recorded_web.recorded_web import RecordedWeb
from focused.text.content_signatures import estimate_resemblance, make_sketch, shingles
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched, Page
from focused.web.urls import make_resolver
from focused_lab.analysis.inference import bootstrap_weights

_CHARACTERS = "\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CHARACTERS}]|[^\W{_CHARACTERS}]+")  # East Asian characters are words
_RUN_WORDS = 5
_FORMATS = ("pdf", "docx", "odt", "pptx", "epub")
_SHAPES = ("characters", "precision", "order", "links")


class Extraction(NamedTuple):
    """The text and link targets of a document."""

    text: str
    links: Sequence[str]


Reader = Callable[[Path], Extraction]


def _page(file: Path) -> Page:
    html = to_html(Fetched("http://document.test/", 200, {}, file.read_bytes()))
    if isinstance(html, Failed):
        raise ValueError(f"{html.kind}: {html.detail}")
    page = parse_page(html)
    if isinstance(page, Failed):
        raise ValueError(f"{page.kind}: {page.detail}")
    return page


def focused(file: Path) -> Extraction:
    """Read as a crawl does, up to the parsed page."""
    page = _page(file)
    return Extraction(page.text, [link.url for link in page.links])


def pdfium_text(file: Path) -> Extraction:
    """Read the plain text of pypdfium2."""
    with importlib.import_module("pypdfium2").PdfDocument(file) as document:
        text = "\n".join(page.get_textpage().get_text_range() for page in document)
    return Extraction(text, [url for _, _, url in find_urls(text)])


def pypdf(file: Path) -> Extraction:
    """Read text and link annotations with pypdf."""
    texts, links = [], []
    for page in importlib.import_module("pypdf").PdfReader(file).pages:
        texts.append(page.extract_text())
        for note in page.get("/Annots") or ():
            uri = (note.get_object().get("/A") or {}).get("/URI")
            if isinstance(uri, str):
                links.append(uri)
    text = "\n".join(texts)
    return Extraction(text, [*links, *(url for _, _, url in find_urls(text))])


def python_docx(file: Path) -> Extraction:
    """Read paragraphs, tables and hyperlinks with python-docx."""
    document = importlib.import_module("docx").Document(file)
    paragraphs = [
        *document.paragraphs,
        *(
            paragraph
            for table in document.tables
            for row in table.rows
            for cell in row.cells
            for paragraph in cell.paragraphs
        ),
    ]
    links = [link.address for each in paragraphs for link in each.hyperlinks if link.address]
    return Extraction("\n".join(each.text for each in paragraphs), links)


def odfpy(file: Path) -> Extraction:
    """Read paragraphs, headings and links with odfpy."""
    load = importlib.import_module("odf.opendocument").load
    text = importlib.import_module("odf.text")
    plain = importlib.import_module("odf.teletype").extractText
    document = load(file)
    found = [plain(each) for kind in (text.H, text.P) for each in document.getElementsByType(kind)]
    links = [str(each.getAttribute("href")) for each in document.getElementsByType(text.A)]
    return Extraction("\n".join(found), links)


def python_pptx(file: Path) -> Extraction:
    """Read text frames and links with python-pptx."""
    texts, links = [], []
    for slide in importlib.import_module("pptx").Presentation(file).slides:
        for shape in slide.shapes:
            for paragraph in shape.text_frame.paragraphs if shape.has_text_frame else ():
                texts.append(paragraph.text)
                links += [each.hyperlink.address for each in paragraph.runs]
    return Extraction("\n".join(texts), [link for link in links if link])


READERS: dict[str, tuple[str, tuple[str, ...], Reader]] = {
    "focused": ("pypdfium2", ("pdf", "docx", "odt", "pptx", "epub"), focused),
    "pypdfium2, text only": ("pypdfium2", ("pdf",), pdfium_text),
    "pypdf": ("pypdf", ("pdf",), pypdf),
    "python-docx": ("docx", ("docx",), python_docx),
    "odfpy": ("odf", ("odt",), odfpy),
    "python-pptx": ("pptx", ("pptx",), python_pptx),
}


class Measured(NamedTuple):
    """A document read by a library; a share is None where the source has nothing to find."""

    origin: str
    characters: float
    precision: float
    order: float
    links: float | None
    cpu_s: float
    error: str


def _share(found: Counter[str], wanted: Counter[str]) -> float:
    total = sum(len(word) * count for word, count in wanted.items())
    both = sum(len(word) * min(count, found[word]) for word, count in wanted.items())
    return both / total if total else 0.0


def _runs(words: Sequence[str]) -> Counter[str]:
    return Counter(
        " ".join(words[i : i + _RUN_WORDS]) for i in range(max(0, len(words) - _RUN_WORDS + 1))
    )


def _measure(source: Source, extraction: Extraction, cpu_s: float) -> Measured:
    found, wanted = _WORD.findall(extraction.text.lower()), _WORD.findall(source.text.lower())
    resolve = make_resolver("http://document.test/")
    targets = {_without_fragment(resolve(link) or link) for link in extraction.links}
    links = {_without_fragment(resolve(link) or link) for link in source.links}
    return Measured(
        source.origin,
        _share(Counter(found), Counter(wanted)),
        _share(Counter(wanted), Counter(found)),
        _share(_runs(found), _runs(wanted)),
        len(links & targets) / len(links) if links else None,
        cpu_s,
        "",
    )


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]


def read_all(folder: Path, library: str, kind: str) -> None:
    """Read all documents of a format with a library; print the results as JSON."""
    _, _, read = READERS[library]
    sources = [source for source in read_sources(folder) if source.format == kind]
    read(folder / sources[0].file)  # imports
    before = _peak_kilobytes()
    results = []
    for source in sources:
        began = time.process_time()
        try:
            extraction = read(folder / source.file)
        except Exception as error:
            print(f"{library}: {source.file}: {error!r}", file=sys.stderr)
            spent = time.process_time() - began
            results.append(Measured(source.origin, 0, 0, 0, 0, spent, repr(error)[:200]))
            continue
        results.append(_measure(source, extraction, time.process_time() - began))
    print(json.dumps({"megabytes": (_peak_kilobytes() - before) / 1_000, "results": results}))


def _peak_kilobytes() -> int:
    """Return the peak of this program's memory; getrusage counts that of the parent, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _interval(values: Sequence[float]) -> str:
    """Return the mean with its 95% interval by a bootstrap."""
    known = np.array(values)
    weights = bootstrap_weights(list(range(len(known))), np.random.default_rng(0))
    means = (weights @ known) / weights.sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{known.mean():.3f} ({low:.3f} to {high:.3f})"


def compare_libraries(folder: Path, formats: Sequence[str]) -> None:
    """Print a row for each format, origin and library."""
    print(
        "| format | documents | library | characters | precision | order | links | ms | max | MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind in formats:
        for library, (module, kinds, _) in READERS.items():
            if kind not in kinds or importlib.util.find_spec(module) is None:
                continue
            command = [sys.executable, __file__, "--folder", str(folder), "--read", library, kind]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            answer = json.loads(done.stdout)
            results = [Measured(*row) for row in answer["results"]]
            for origin in ("made", "Debian"):
                rows = [row for row in results if row.origin.startswith(origin)]
                if rows:
                    _print_row(kind, origin, library, rows, answer["megabytes"])


def _print_row(
    kind: str, origin: str, library: str, rows: Sequence[Measured], megabytes: float
) -> None:
    cells = []
    for shape in _SHAPES:
        values = [value for row in rows if (value := getattr(row, shape)) is not None]
        cells.append(_interval(values) if values else "")
    times = sorted(1_000 * row.cpu_s for row in rows)
    failed = sum(bool(row.error) for row in rows)
    count = f"{len(rows)} ({failed} failed)" if failed else str(len(rows))
    print(
        f"| {kind}, {origin} | {count} | {library} | {' | '.join(cells)} "
        f"| {times[len(times) // 2]:.1f} | {times[-1]:.0f} | {megabytes:.0f} |"
    )


def compare_formats(folder: Path, formats: Sequence[str]) -> None:
    """Print how alike documents and the pages are that they were made from, and other pages."""
    sources = [source for source in read_sources(folder) if source.page]
    pages = {}
    for name in sorted({source.page for source in sources}):
        body = (folder / f"{name}.original.html").read_bytes()
        headers = {"content-type": "text/html; charset=utf-8"}
        page = parse_page(Fetched("http://page.test/", 200, headers, body))
        if isinstance(page, Page):
            pages[name] = make_sketch(shingles(page.text))
    print("\n| format | documents | found | at 85% | median | lowest | other pages, highest |")
    print("|---|---|---|---|---|---|---|")
    for kind in formats:
        own: list[float] = []
        other: list[float] = []
        for source in sources:
            if source.format == kind and source.page in pages:
                sketch = make_sketch(shingles(_page(folder / source.file).text))
                for name, original in pages.items():
                    share, _ = estimate_resemblance(sketch, original)
                    (own if name == source.page else other).append(share)
        found, strict = (
            np.mean(np.array(own) >= least)
            for least in (MIN_RESEMBLANCE_OF_FORMATS, MIN_RESEMBLANCE)
        )
        print(
            f"| {kind} | {len(own)} | {found:.0%} | {strict:.0%} | {np.median(own):.2f} "
            f"| {min(own):.2f} | {max(other):.2f} |"
        )


def check_cost() -> None:
    """Print what a page of HTML pays: CPU time of the check whether it is a document."""
    page = Fetched("http://page.test/", 200, {"content-type": "text/html"}, b"<html>" * 5_000)
    timer = timeit.Timer(
        lambda: (to_html(page), needs_process(document_format(page))), timer=time.process_time
    )
    each_us = sorted(took / 20_000 * 1e6 for took in timer.repeat(number=20_000, repeat=9))
    print(f"\na page of HTML: {each_us[0]:.1f} to {each_us[-1]:.1f} µs")


def main() -> None:
    """Make the documents where they are missing, and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="of the documents")
    parser.add_argument("--web", type=Path, help="recorded web to make documents from")
    parser.add_argument("--debs", type=Path, help="folder of downloaded Debian packages")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--formats", nargs="+", choices=_FORMATS, default=_FORMATS)
    parser.add_argument("--read", nargs=2, metavar=("LIBRARY", "FORMAT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_all(options.folder, *options.read)
        return
    if not (options.folder / "sources.json").exists():
        with RecordedWeb.open(options.web) as web:
            make_documents(options.folder, web, options.debs, options.pages, options.seed)
    compare_libraries(options.folder, options.formats)
    compare_formats(options.folder, options.formats)
    check_cost()


if __name__ == "__main__":
    main()
