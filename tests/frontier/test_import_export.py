"""Export and import of queued links: lossless, and invalid rows are reported."""

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.errors import ConfigurationError
from focused.frontier import import_export
from focused.frontier.import_export import export_links, read_links
from focused.frontier.queued_link import InvalidRow, QueuedLink, link_key

NOW = 1_000.0

finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 255)
unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text(
    st.sampled_from("=+-@';\t\r\n1"), max_size=20
)
some_text = st.none() | unicode.filter(bool)


@st.composite
def links(draw) -> QueuedLink:
    url = f"http://{draw(st.sampled_from('ab'))}.test/{draw(st.integers(0, 9))}?q=%22,%0A"
    return QueuedLink(
        key=draw(st.just(link_key(url)) | st.binary(min_size=16, max_size=16)),
        url=url,
        host=url.split("/")[2],
        priority=draw(finite),
        score=draw(st.floats(0.0, 1.0)),
        depth=draw(st.integers(0, 65_535)),
        parent=draw(some_text),
        anchor=draw(unicode),
        features=tuple(draw(st.lists(finite, max_size=4))),
        found_at=draw(st.integers(-(2**52), 2**52)) / 1e6,  # files keep microseconds
        tries=draw(counts),
        hops=draw(counts),
        payload=draw(some_text),
        tag_path_key=draw(st.integers(0, 2**64 - 1)),
    )


def read(path: Path) -> list[QueuedLink | InvalidRow]:
    return list(read_links(path, lambda score: 10.0 * score, NOW))


def write(path: Path, *rows: dict[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def problem(row: QueuedLink | InvalidRow) -> str:
    assert isinstance(row, InvalidRow), row
    return f"{row.where}: {row.problem}"


@settings(deadline=None)  # the first Parquet file loads a library
@given(queued=st.lists(links(), max_size=5))
def test_what_is_exported_and_read_is_what_was_queued(queued):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frontier.parquet"
        assert export_links(iter(queued), path) == len(queued)
        assert read(path) == queued


def test_more_links_than_a_batch_holds_are_all_there_in_order(tmp_path):
    urls = [f"http://a.test/{number}" for number in range(20_001)]
    path = tmp_path / "frontier.parquet"
    export_links((QueuedLink(link_key(url), url, "a.test", 0.0, 0.5) for url in urls), path)
    assert [row.url for row in read(path)] == urls


def test_an_export_has_the_columns_that_are_documented(tmp_path):
    url = "http://a.test/"
    link = QueuedLink(link_key(url), url, "a.test", 0.0, 0.5)
    export_links([link], tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet") == import_export.FRONTIER_SCHEMA


def test_a_list_of_urls_is_enough_and_the_score_gives_the_place(tmp_path):
    rows = {"url": "HTTP://A.test/x#y", "score": 0.25}, {"url": "http://b.test"}
    path = write(tmp_path / "urls.parquet", *rows)
    (first, second) = read(path)
    assert first == QueuedLink(
        link_key("http://a.test/x"), "http://a.test/x", "a.test", 2.5, 0.25, found_at=NOW
    )
    assert (second.url, second.priority, second.score) == ("http://b.test/", 10.0, 1.0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"score": 1.5}, "Expected `float` <= 1.0, in column `score`"),
        ({"score": "much"}, "Expected `float`, got `str`, in column `score`"),
        ({"score": math.nan}, "Expected `float` >= 0.0, in column `score`"),
        ({"url": "mailto:a@b.test"}, "'mailto:a@b.test' is no URL that can be crawled"),
        ({"url": None}, "Object missing required field `url`"),
        ({"host": "b.test"}, "the host of http://a.test/ is a.test, not b.test"),
        ({"depth": -1}, "Expected `int` >= 0, in column `depth`"),
        ({"depth": 65_536}, "Expected `int` <= 65535, in column `depth`"),
        ({"tries": 256}, "Expected `int` <= 255, in column `tries`"),
        ({"features": [1.0] * 256}, "Expected `array` of length <= 255, in column `features`"),
        ({"depth": 1.5}, "Expected `int`, got `float`, in column `depth`"),
        ({"priority": math.inf}, "a number is not finite"),
        ({"features": ["x"]}, "Expected `float`, got `str`, in column `features[0]`"),
        ({"key": "abc"}, "Expected `str` matching regex '^[0-9a-f]{32}$', in column `key`"),
        ({"tag_path_key": str(2**64)}, "tag_path_key has more than 64 bits"),
    ],
)
def test_a_row_that_is_no_link_is_reported_by_its_number_and_the_others_are_read(
    tmp_path, row, message
):
    path = write(
        tmp_path / "bad.parquet", {"url": "http://a.test/", **row}, {"url": "http://b.test"}
    )
    bad, good = read(path)
    assert problem(bad) == f"row 1: {message}"
    assert good.url == "http://b.test/"


def test_a_file_without_urls_is_refused_whole(tmp_path):
    with pytest.raises(ConfigurationError, match="the column url is missing"):
        read(write(tmp_path / "a.parquet", {"score": 0.5}))


def test_a_file_with_unknown_columns_is_refused_whole(tmp_path):
    pq.write_table(pa.table({"url": ["http://a.test/"], "rank": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ConfigurationError, match="unknown columns rank"):
        read(tmp_path / "a.parquet")


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.parquet cannot be read"):
        read(tmp_path / "none.parquet")


def test_a_file_that_is_no_parquet_is_reported(tmp_path):
    (tmp_path / "a.parquet").write_text("url")
    with pytest.raises(ConfigurationError, match=r"a\.parquet cannot be read"):
        read(tmp_path / "a.parquet")


def test_a_file_with_urls_that_are_no_utf8_is_reported(tmp_path):
    offsets = pa.py_buffer((0).to_bytes(4, "little") + (15).to_bytes(4, "little"))
    url = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"http://a.test/\xe9"))
    pq.write_table(pa.table({"url": url}), tmp_path / "a.parquet")
    with pytest.raises(ConfigurationError, match=r"a\.parquet cannot be read"):
        read(tmp_path / "a.parquet")


def test_a_file_of_another_kind_is_refused(tmp_path):
    for attempt in (lambda path: export_links([], path), read):
        with pytest.raises(ConfigurationError, match=r"name a \.parquet file"):
            attempt(tmp_path / "frontier.csv")


def test_an_export_that_cannot_be_written_is_reported(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be written"):
        export_links([], tmp_path / "missing" / "a.parquet")


def test_a_priority_that_follows_from_no_score_has_to_be_given(tmp_path):
    path = write(tmp_path / "a.parquet", {"url": "http://a.test/"})
    (bad,) = read_links(path, lambda score: None, NOW)
    assert "priority is missing" in problem(bad)
