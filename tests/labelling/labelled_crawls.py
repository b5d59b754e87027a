"""Crawls to be labelled: a folder with state and WARC, as a crawl leaves it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from focused.archive.archive import Archive, PageRow
from focused.archive.warc_files import WARC_FILE, WarcFiles
from focused.labelling.labelling_task import LabellingTask, TopicCategory, read_fetched_pages
from focused.labelling.page_selection import build_training_pool
from focused.labelling.session import LabellingSession
from focused.labels.label_file import LabelFile, evaluation_hash
from focused.storage.state_store import StateStore
from focused.web.page import Fetched
from focused.web.urls import host_of

CATEGORIES = (
    TopicCategory("Top/Animals/Whales", True),
    TopicCategory("Top/Other/Ships_and_Boats", False),
)

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
    archive = Archive(store, warc=WarcFiles(folder, store.tables, "pages"))
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
            capture=archive.record_builder.capture(fetched),
        )  # fmt: skip
    archive.close()
    store.close()


def url_of(number: int) -> str:
    """The URL of the page of that number."""
    return f"https://h{number % 4}.example/{number}"


def first_shown_url(host: str) -> str:
    """A page of the host that is shown before others."""
    urls = (f"https://{host}/{number}" for number in range(9_999))
    return next(url for url in urls if evaluation_hash(url) < 0.001)


def task(folder: Path, categories: tuple[TopicCategory, ...] = CATEGORIES) -> LabellingTask:
    """What is labelled: the crawl in ``folder``, without a model."""
    labels = folder / "whales.labels.jsonl"
    return LabellingTask("whales", "Whales & <others>.", folder, labels, None, "", categories, 0)


def session(
    folder: Path,
    file: LabelFile,
    categories: tuple[TopicCategory, ...] = CATEGORIES,
    make: type[LabellingSession] = LabellingSession,
) -> LabellingSession:
    """A session on the crawl in ``folder``, keeping no pages."""
    crawled = read_fetched_pages(folder)
    return make(task(folder, categories), crawled, build_training_pool(crawled, None), file, None)


def page_row(url: str, **columns: Any) -> PageRow:
    """The row of a fetched page."""
    known = {"relevance": 0.5, "on_topic": True, "warc_file": WARC_FILE, "warc_offset": 0}
    return PageRow(
        0, url, host_of(url), "fetched", 0.5, {}, 1, None, "", 1.0, 1.0, "bfs", **known | columns
    )
