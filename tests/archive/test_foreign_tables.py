"""Parquet files that no crawl wrote: all who read them name the file and its column."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from focused.archive.crawl_tables import read_page_rows
from focused.corpus.page_selection import PageFilter, select_pages
from focused.errors import StateError
from focused.link_graph.build import build_graph
from focused.reports.crawl_folder import read_crawl
from tests.support.crawl_folders import good_page, write_crawl

READERS: dict[str, Callable[[Path, Path], object]] = {
    "report": lambda crawl, out: read_crawl(crawl),
    "console and label page": lambda crawl, out: list(read_page_rows(crawl)),
    "corpus": lambda crawl, out: select_pages(crawl, out, PageFilter(), 0.0),
    "link graph": lambda crawl, out: build_graph([crawl], out),
}


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    pages = [good_page("http://a.test/"), good_page("http://a.test/b")]
    links = [{"source": "http://a.test/", "target": "http://a.test/b", "score": 0.5}]
    return write_crawl(tmp_path / "crawl", pages, links=links)


def replace_column(path: Path, name: str, values: pa.Array | None) -> None:
    table = pq.read_table(path)
    at = table.column_names.index(name)
    table = table.remove_column(at)
    pq.write_table(table if values is None else table.add_column(at, name, values), path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("url", None, "lacks the columns url"),
        ("url", pa.array([1, 2]), "its column url has the type int64, not string"),
        ("url", pa.array([b"\xff", b"x"]), "its column url has the type binary, not string"),
        ("relevance", pa.array(["x", "y"]), "its column relevance has the type string, not double"),
    ],
)
def test_a_foreign_column_is_named(crawl, tmp_path, reader, column, values, problem):
    replace_column(crawl / "pages.parquet", column, values)
    with pytest.raises(StateError, match=rf"pages\.parquet: {problem}; it was written by another"):
        READERS[reader](crawl, tmp_path / "out")


@pytest.mark.parametrize("reader", ["report", "console and label page", "corpus"])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("url", pa.array([None, "http://a.test/b"])),
        ("fetched_at", pa.array([1.0, float("nan")])),
        ("relevance", pa.array([0.9, float("nan")])),
    ],
)
def test_a_row_without_what_each_row_has_is_an_error(crawl, tmp_path, reader, column, values):
    replace_column(crawl / "pages.parquet", column, values)
    with pytest.raises(StateError, match=rf"pages\.parquet: has rows without {column}"):
        READERS[reader](crawl, tmp_path / "out")


def test_pages_with_one_number_are_an_error(crawl):
    replace_column(crawl / "pages.parquet", "seq", pa.array([7, 7]))
    with pytest.raises(StateError, match="several pages have one number"):
        read_crawl(crawl)


def test_what_a_row_does_not_tell_has_its_default(crawl):
    for column, kind in (("title", pa.string()), ("score", pa.float64()), ("on_topic", pa.bool_())):
        replace_column(crawl / "pages.parquet", column, pa.nulls(2, kind))
    first, _ = read_page_rows(crawl)
    assert (first.title, first.score, first.on_topic) == ("", 0.0, False)
