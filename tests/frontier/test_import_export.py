"""Export and import of queued links: lossless, and invalid rows are reported."""

from __future__ import annotations

import csv
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
KINDS = ("csv", "parquet")

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


def write_csv(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def problem(row: QueuedLink | InvalidRow) -> str:
    assert isinstance(row, InvalidRow), row
    return f"{row.where}: {row.problem}"


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)  # the first Parquet file loads a library
@given(queued=st.lists(links(), max_size=5))
def test_what_is_exported_and_read_is_what_was_queued(kind: str, queued: list[QueuedLink]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"frontier.{kind}"
        assert export_links(iter(queued), path) == len(queued)
        assert read(path) == queued


@pytest.mark.parametrize("kind", KINDS)
def test_more_links_than_a_batch_holds_are_all_there_in_order(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(import_export, "_ROWS_PER_BATCH", 3)
    urls = [f"http://a.test/{number}" for number in range(10)]
    path = tmp_path / f"frontier.{kind}"
    export_links((QueuedLink(link_key(url), url, "a.test", 0.0, 0.5) for url in urls), path)
    assert [row.url for row in read(path)] == urls


def test_an_export_has_the_columns_that_are_documented(tmp_path):
    url = "http://a.test/"
    link = QueuedLink(link_key(url), url, "a.test", 0.0, 0.5)
    export_links([link], tmp_path / "a.parquet")
    export_links([link], tmp_path / "a.csv")
    assert pq.read_schema(tmp_path / "a.parquet") == import_export.FRONTIER_SCHEMA
    with (tmp_path / "a.csv").open(newline="") as file:
        assert next(csv.reader(file)) == import_export.FRONTIER_SCHEMA.names


@pytest.mark.parametrize("anchor", ['=HYPERLINK("http://x.test","y")', "+1", "-1", "@A1", "a;=1"])
def test_an_anchor_in_a_csv_file_is_no_formula_and_is_read_back(tmp_path, anchor):
    url = "http://a.test/"
    link = QueuedLink(link_key(url), url, "a.test", 0.0, 0.5, anchor=anchor, found_at=NOW)
    export_links([link], tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert not any(cell[:1] in "=+-@" for cell in row["anchor"].split(";"))
    assert read(tmp_path / "a.csv") == [link]


def test_a_list_of_urls_is_enough_and_the_score_gives_the_place(tmp_path):
    path = write_csv(tmp_path / "urls.csv", "url,score", "HTTP://A.test/x#y,0.25", "http://b.test,")
    (first, second) = read(path)
    assert first == QueuedLink(
        link_key("http://a.test/x"), "http://a.test/x", "a.test", 2.5, 0.25, found_at=NOW
    )
    assert (second.url, second.priority, second.score) == ("http://b.test/", 10.0, 1.0)


def test_what_a_spreadsheet_writes_is_read(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_bytes(b'\xef\xbb\xbfanchor,url\r\n"two\nlines",http://a.test/\r\n\r\n')
    (link,) = read(path)
    assert (link.url, link.anchor) == ("http://a.test/", "two\nlines")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("http://a.test/,1.5", "line 2: Expected `float` <= 1.0, in column `score`"),
        ("http://a.test/,much", "line 2: Expected `float`, got `str`, in column `score`"),
        ("http://a.test/,nan", "line 2: Expected `float` >= 0.0, in column `score`"),
        ("mailto:a@b.test,0.5", "line 2: 'mailto:a@b.test' is no URL that can be crawled"),
        (",0.5", "line 2: Object missing required field `url`"),
        ("http://a.test/", "line 2: 1 cells, not 2"),
        ("http://a.test/,0.5,", "line 2: 3 cells, not 2"),
        ('"http://a.test/"x,0.5', "line 2: ',' expected after '\"'"),
    ],
)
def test_a_row_that_is_no_link_is_reported_by_its_line_and_the_others_are_read(
    tmp_path, row, message
):
    path = write_csv(tmp_path / "bad.csv", "url,score", row, "http://good.test/,0.5")
    bad, good = read(path)
    assert problem(bad) == message
    assert good.url == "http://good.test/"


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("host", "b.test", "the host of http://a.test/ is a.test, not b.test"),
        ("depth", "-1", "Expected `int` >= 0, in column `depth`"),
        ("depth", "65536", "Expected `int` <= 65535, in column `depth`"),
        ("tries", "256", "Expected `int` <= 255, in column `tries`"),
        ("features", "1 " * 256, "Expected `array` of length <= 255, in column `features`"),
        ("depth", "1.5", "Expected `int`, got `str`, in column `depth`"),
        ("priority", "inf", "a number is not finite"),
        ("features", "0.5 x", "Expected `float`, got `str`, in column `features[1]`"),
        ("key", "abc", "Expected `str` matching regex '^[0-9a-f]{32}$', in column `key`"),
        ("tag_path_key", str(2**64), "tag_path_key has more than 64 bits"),
    ],
)
def test_each_column_is_checked(tmp_path, column, cell, message):
    path = write_csv(tmp_path / "bad.csv", f"url,{column}", f"http://a.test/,{cell}")
    (bad,) = read(path)
    assert problem(bad) == f"line 2: {message}"


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = write_csv(tmp_path / "bad.csv", "url,anchor", 'http://a.test/,"1', '2"', "none,", "")
    assert problem(read(path)[1]).startswith("line 4: ")


def test_bytes_that_are_no_utf_8_spoil_their_row_alone(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(b"url,anchor\nhttp://a.test/,caf\xe9\nhttp://b.test/\xe9,\nhttp://c.test/,x\n")
    first, second, third = read(path)
    assert problem(first) == "line 2: a text is not UTF-8"
    assert problem(second).startswith("line 3: ")
    assert third.url == "http://c.test/"


def test_a_quote_that_is_never_closed_is_reported(tmp_path):
    path = write_csv(tmp_path / "open.csv", "url,anchor", 'http://a.test/,"never', "closed")
    assert problem(read(path)[0]) == "line 2: unexpected end of data"


def test_bad_rows_of_a_data_frame_are_reported_by_their_number(tmp_path):
    rows: list[dict[str, Any]] = [{"url": "http://a.test/", "depth": 2.0}, {"url": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "frame.parquet")
    good, bad = read(tmp_path / "frame.parquet")
    assert good.depth == 2
    assert problem(bad) == "row 2: Object missing required field `url`"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("url,rank,colour", "unknown columns colour, rank; known are url, host, priority"),
        ("score", "the column url is missing"),
        ("", "the column url is missing"),
        ("url,score,score", "a column occurs twice"),
        ('url,"sco', "the first line is not a list of column names"),
    ],
)
def test_a_file_with_wrong_columns_is_refused_whole(tmp_path, header, message):
    path = tmp_path / "wrong.csv"
    path.write_text(header)
    with pytest.raises(ConfigurationError, match=r"wrong\.csv: ") as caught:
        read(path)
    assert message in str(caught.value)


def test_a_parquet_file_with_unknown_columns_is_refused_whole(tmp_path):
    pq.write_table(pa.table({"url": ["http://a.test/"], "rank": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ConfigurationError, match="unknown columns rank"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_there_is_reported(tmp_path, kind):
    with pytest.raises(ConfigurationError, match=f"none.{kind} cannot be read"):
        read(tmp_path / f"none.{kind}")


def test_a_file_that_is_no_parquet_is_reported(tmp_path):
    (tmp_path / "a.parquet").write_text("url")
    with pytest.raises(ConfigurationError, match=r"a\.parquet cannot be read"):
        read(tmp_path / "a.parquet")


def test_a_file_of_another_kind_is_refused(tmp_path):
    for attempt in (lambda path: export_links([], path), read):
        with pytest.raises(ConfigurationError, match=r"name a \.csv or a \.parquet file"):
            attempt(tmp_path / "frontier.xlsx")


def test_an_export_that_cannot_be_written_is_reported(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        export_links([], tmp_path / "missing" / "a.csv")


def test_a_priority_that_follows_from_no_score_has_to_be_given(tmp_path):
    path = write_csv(tmp_path / "a.csv", "url", "http://a.test/")
    (bad,) = read_links(path, lambda score: None, NOW)
    assert "priority is missing" in problem(bad)
