"""Crawls to be labelled: a folder with state and WARC, as a crawl leaves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from focused.archive import Archive, PageRow
from focused.archive_warc import WarcFiles
from focused.frontier.store import StateStore
from focused.labelling.choice import Choice, Pool
from focused.labelling.crawled import read_crawled
from focused.labelling.pool import teaching_pool
from focused.labelling.session import Session
from focused.labelling.subject import Category, Subject
from focused.labels.label_file import LabelFile
from focused.web.page import Fetched
from focused.web.url import host_of

CATEGORIES = (Category("Top/Animals/Whales", True), Category("Top/Other/Ships_and_Boats", False))

_WHALES = ["whale", "blubber", "krill", "fluke", "pod", "baleen", "ocean", "calf", "breach", "song"]
_OTHERS = ["ship", "engine", "harbour", "cargo", "deck", "anchor", "mast", "sail", "crew", "port"]


def body(number: int, good: bool) -> str:
    """A page's HTML; pages of different numbers share some words of their side."""
    words = _WHALES if good else _OTHERS
    own = " ".join(f"{words[(number * 3 + i) % 10]} term{number}x{i}" for i in range(30))
    return f"<title>Page {number}</title><h1>Page {number}</h1><p>{own}</p>"


def write_crawl(
    folder: Path, pages: int = 60, bodies: Mapping[str, str] | None = None, first: int = 0
) -> None:
    """Pages of four hosts, every other on topic, with relevance to match but for some.

    ``bodies`` are further pages by URL. ``first`` is the number of the first page: a later
    call adds to the crawl.
    """
    documents = {url_of(n): body(n, n % 2 == 0) for n in range(first, first + pages)}
    store = StateStore.open(folder / "state", {})
    archive = Archive(store, warc=WarcFiles(folder, store.tables, "responses"))
    for seq, (url, html) in enumerate({**documents, **(bodies or {})}.items(), start=first):
        good = seq % 2 == 0
        relevance = (0.6 + 0.4 * (seq % 7) / 7) if good else 0.5 * (seq % 5) / 5
        fetched = Fetched(url, 200, {"content-type": "text/html"}, html.encode())
        found = re.search("<title>(.+?)</title>", html)
        title = found[1] if found else f"Page {seq}"
        archive.append(
            PageRow(
                seq, url, host_of(url), "fetched", 0.5, {}, 1, None, "", 1.0, 2.0, "bfs",
                status=200, title=title, relevance=relevance, on_topic=relevance >= 0.5,
            ),
            capture=archive.capture_writer.capture(fetched),
        )  # fmt: skip
    archive.close()
    store.close()


def url_of(number: int) -> str:
    """The URL of the page of that number."""
    return f"https://h{number % 4}.example/{number}"


def subject(folder: Path, categories: tuple[Category, ...] = CATEGORIES) -> Subject:
    """What is labelled: the crawl in ``folder``, without a model."""
    labels = folder / "whales.labels.jsonl"
    return Subject("whales", "Whales & <others>.", folder, labels, None, "", categories, 0)


def session(
    folder: Path, file: LabelFile, categories: tuple[Category, ...] = CATEGORIES
) -> Session:
    """A session on the crawl in ``folder``, keeping no pages."""
    crawled = read_crawled(folder)
    return Session(subject(folder, categories), crawled, teaching_pool(crawled, None), file, None)


def choice(pool: Pool, relevance: list[float], threshold: float = 0.5, good: int = 0) -> Choice:
    """A choice among the pages of ``pool``."""
    return Choice(pool, np.array(relevance), threshold, good)
