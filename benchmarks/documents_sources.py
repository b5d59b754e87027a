"""Documents with known text: made from pages of a recorded web, and those of Debian packages."""

from __future__ import annotations

import gzip
import html
import importlib
import json
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import lxml.html

from focused.recorded_web.recorded_web import RecordedWeb
from focused.web.decoding import decode, limit_markup
from focused.web.urls import make_resolver
from focused_lab.builders.debian_packages import fetch_packages, unpacked

PACKAGES = (
    "claws-mail-doc",
    "cvs",
    "dbconfig-common",
    "debian-history",
    "debmake-doc",
    "installation-guide-amd64",
    "xorg-docs",
)
"""Packages with a PDF and the plain text of the same work."""

OFFICE_FORMATS = {"docx": "docx", "odt": "odt", "pdf": "pdf", "epub": "epub"}
_BLOCKS = ("h1", "h2", "h3", "h4", "p", "li", "pre", "dt", "dd")
_MIN_CHARS, _MAX_CHARS, _MIN_LINKS = 2_000, 60_000, 3


class Source(NamedTuple):
    """A document: its file, the text and links that it was made from, and the page or ``""``."""

    file: str
    format: str
    origin: str
    text: str
    links: Sequence[str]
    page: str = ""


Blocks = list[tuple[str, list[tuple[str, str | None]]]]


def read_sources(folder: Path) -> list[Source]:
    """Return the documents that :func:`make_documents` made."""
    return [Source(*row) for row in json.loads((folder / "sources.json").read_text())]


def make_documents(folder: Path, web: RecordedWeb, debs: Path, pages: int, seed: int) -> None:
    """Make documents of ``pages`` pages in each format, and unpack those of Debian."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: list[Source] = []
    chosen = list(_choose_pages(web, pages, seed))
    originals = []
    for number, (url, raw, blocks) in enumerate(chosen):
        name = f"page-{number:03}"
        (folder / f"{name}.original.html").write_text(raw)
        (folder / f"{name}.html").write_text(_markup(blocks))
        originals.append(folder / f"{name}.html")
        text = "\n".join("".join(piece for piece, _ in runs) for _, runs in blocks)
        links = sorted({target for _, runs in blocks for _, target in runs if target})
        for kind in (*OFFICE_FORMATS, "pptx"):
            sources.append(Source(f"{name}.{kind}", kind, f"made {url}", text, links, name))
        _make_slides(folder / f"{name}.pptx", blocks)
    for kind in OFFICE_FORMATS.values():
        _convert(originals, kind, folder)
    sources = [source for source in sources if (folder / source.file).exists()]
    sources += _debian_sources(folder, debs)
    (folder / "sources.json").write_text(json.dumps(sources))


def _choose_pages(web: RecordedWeb, pages: int, seed: int) -> Iterator[tuple[str, str, Blocks]]:
    urls = sorted(web.page_urls)
    random.Random(seed).shuffle(urls)
    found = 0
    for url in urls:
        response = web.get(url)
        if response is None or response.status != 200:
            continue
        if "html" not in response.headers.get("content-type", ""):
            continue
        raw, _ = decode(response.body, response.headers)
        blocks = _blocks(url, limit_markup(raw))
        chars = sum(len(text) for _, runs in blocks for text, _ in runs)
        links = {target for _, runs in blocks for _, target in runs if target}
        if _MIN_CHARS <= chars <= _MAX_CHARS and len(links) >= _MIN_LINKS:
            yield url, raw, blocks
            found += 1
            if found == pages:
                return


def _blocks(url: str, markup: str) -> Blocks:
    """Return the innermost text blocks of a page, with absolute links."""
    try:
        tree = lxml.html.document_fromstring(markup.encode(), lxml.html.HTMLParser(encoding="utf8"))
    except (lxml.etree.ParserError, ValueError):
        return []
    resolve = make_resolver(url)
    found: Blocks = []
    for element in tree.iter(*_BLOCKS):
        if next(element.iterdescendants(*_BLOCKS), None) is not None:
            continue
        runs: list[tuple[str, str | None]] = []
        _add_runs(element, None, runs, resolve)
        text = "".join(text for text, _ in runs)
        if text.strip():
            tag = element.tag if element.tag in ("h1", "h2", "h3", "li", "pre") else "p"
            found.append((tag, runs))
    return found


def _add_runs(element, link, runs, resolve) -> None:  # type: ignore[no-untyped-def]
    runs.append((_one_line(element.text), link))
    for child in element:
        if isinstance(child.tag, str) and child.tag not in ("script", "style"):
            href = child.get("href") if child.tag == "a" else None
            # No fragment: links of a page to itself are none, and LibreOffice keeps them apart.
            target = resolve(href) if href and not href.startswith("#") else None
            is_web = target is not None and target.startswith(("http://", "https://"))
            _add_runs(child, target if is_web else link, runs, resolve)
        runs.append((_one_line(child.tail), link))


def _one_line(text: str | None) -> str:
    return re.sub(r"\s+", " ", re.sub("[\x00-\x08\x0b-\x1f]", "", text or ""))


def _markup(blocks: Blocks) -> str:
    lines = ["<!doctype html><html><head><meta charset=utf-8><title>A page</title></head><body>"]
    for tag, runs in blocks:
        inner = "".join(
            f'<a href="{html.escape(target)}">{html.escape(text)}</a>'
            if target and text.strip()
            else html.escape(text)
            for text, target in runs
        )
        lines.append(f"<ul><li>{inner}</li></ul>" if tag == "li" else f"<{tag}>{inner}</{tag}>")
    return "\n".join([*lines, "</body></html>"])


def _convert(files: Sequence[Path], kind: str, folder: Path) -> None:
    """Convert by LibreOffice, with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "soffice",
                f"-env:UserInstallation=file://{profile}",
                "--headless",
                "--writer",
                "--convert-to",
                kind,
                "--outdir",
                str(folder),
                *map(str, files),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _make_slides(file: Path, blocks: Blocks) -> None:
    """Write slides of twelve blocks with python-pptx."""
    presentation = importlib.import_module("pptx").Presentation()
    layout = presentation.slide_layouts[1]
    for start in range(0, len(blocks), 12):
        frame = presentation.slides.add_slide(layout).placeholders[1].text_frame
        for number, (_, runs) in enumerate(blocks[start : start + 12]):
            paragraph = frame.add_paragraph() if number else frame.paragraphs[0]
            for text, target in runs:
                if text:
                    run = paragraph.add_run()
                    run.text = text
                    if target and text.strip():
                        run.hyperlink.address = target
    presentation.save(file)


def _debian_sources(folder: Path, debs: Path) -> Iterator[Source]:
    """Copy the PDFs of packages that hold the plain text of the same name."""
    for name, deb in sorted(fetch_packages(PACKAGES, debs, print).items()):
        with unpacked(deb, folder / f"{name}.unpacked") as files:
            for pdf in sorted([*files.rglob("*.pdf"), *files.rglob("*.pdf.gz")]):
                stem = pdf.name.partition(".pdf")[0]
                texts = [pdf.with_name(f"{stem}.txt"), pdf.with_name(f"{stem}.txt.gz")]
                text = next((each for each in texts if each.is_file()), None)
                if text is None or pdf.is_symlink():
                    continue
                file = f"{name}-{pdf.parent.name}-{stem}.pdf"
                (folder / file).write_bytes(_unpacked_bytes(pdf))
                content, _ = decode(_unpacked_bytes(text), {})
                yield Source(file, "pdf", f"Debian {name}", content, [])


def _unpacked_bytes(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
