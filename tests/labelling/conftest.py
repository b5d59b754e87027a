"""A served label page over its own crawl."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.labels.label_file import LabelFile
from tests.labelling.labelled_crawls import session, write_crawl
from tests.support.label_pages import PAGES, Served, served


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return tmp_path / "l.labels.jsonl"


@pytest.fixture
def page(tmp_path: Path, labels: Path) -> Iterator[Served]:
    write_crawl(tmp_path, pages=PAGES)
    with LabelFile(labels) as file, served(session(tmp_path, file)) as at:
        yield at
