"""Archive rows: written, read back, and left out."""

import os
from pathlib import Path

import pyarrow.parquet as pq

from focused.archive.archive import (
    HISTORY_COLUMNS,
    PAGE_COLUMNS,
    Archive,
    LinkRow,
    PageRow,
    page_rows,
    page_values,
)
from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA, write_parquet_files
from focused.archive.warc_files import WarcFiles
from focused.storage.arrow_columns import times_as_seconds
from focused.storage.state_store import StateStore
from focused.web.page import Fetched
from tests.support.archived_links import link_rows


def row(seq: int, **fields) -> PageRow:
    url = f"http://a.test/{seq}"
    known = {"features": {"anchor": 0.5}, "depth": 1, "parent": None, "anchor": "", **fields}
    return PageRow(
        seq, url, "a.test", "fetched", 0.5, found_at=1.0, fetched_at=2.0, policy="bfs", **known
    )


LINKS = (
    LinkRow("http://a.test/x", "to x", 0.0, False, 0.25),
    LinkRow("http://b.test/", "", 1.0, True, None),
)


def test_rows_come_back_in_the_order_of_settling_with_all_columns(store, tables):
    archive = Archive(store)
    for seq in (2, 0, 1, 300):
        archive.append(row(seq, title="Größe \u2028", relevance=0.75))
    rows = list(page_rows(tables))
    assert [each["seq"] for each in rows] == [0, 1, 2, 300]
    assert set(rows[0]) == set(PAGES_SCHEMA.names) - set(HISTORY_COLUMNS) == set(PAGE_COLUMNS)
    assert (rows[0]["title"], rows[0]["features"], rows[0]["relevance"], rows[0]["parent"]) == (
        "Größe \u2028",
        {"anchor": 0.5},
        0.75,
        None,
    )
    assert list(page_values(tables)) == [[*each.values(), {}] for each in rows]


def test_links_come_back_page_by_page_under_their_source(store, tables):
    Archive(store).append(row(1), LINKS)
    rows = list(link_rows(tables))
    assert [list(each) for each in rows] == [LINKS_SCHEMA.names] * 2
    assert [each["source"] for each in rows] == ["http://a.test/1"] * 2
    assert [(each["target"], each["nofollow"], each["score"]) for each in rows] == [
        ("http://a.test/x", False, 0.25),
        ("http://b.test/", True, None),
    ]


def test_an_archive_without_links_keeps_the_pages(store, tables):
    archive = Archive(store, links=False)
    archive.append(row(1), LINKS)
    assert (len(list(page_rows(tables))), list(link_rows(tables))) == (1, [])


def test_a_text_that_cannot_be_written_is_archived_with_question_marks(store, tables):
    Archive(store).append(row(1, title="a\ud800"), [LinkRow("u", "\udfff!", 0.5, False, None)])
    assert next(page_rows(tables))["title"] == "a?"
    assert next(link_rows(tables))["anchor"] == "?!"


def test_parquet_files_say_what_the_rows_say(store, tables, tmp_path):
    Archive(store).append(row(1), LINKS)
    write_parquet_files(tables, tmp_path)
    pages = times_as_seconds(pq.read_table(tmp_path / "pages.parquet")).to_pylist()
    links = pq.read_table(tmp_path / "links.parquet").to_pylist()
    assert pages == [
        {**each, "features": [("anchor", 0.5)], **dict.fromkeys(HISTORY_COLUMNS)}
        for each in page_rows(tables)
    ]
    assert links == list(link_rows(tables))


def test_what_rows_speak_of_is_on_the_disk_before_they_are(tmp_path, monkeypatch):
    forced: list[str] = []
    store = StateStore.open(tmp_path / "state", {})
    archive = Archive(store, warc=WarcFiles(tmp_path, store.tables))
    monkeypatch.setattr(
        os, "fsync", lambda fd: forced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
    )
    fetched = Fetched("http://a.test/", 200, {}, b"whales")
    archive.append(row(0), capture=archive.record_builder.capture(fetched))
    store.commit()
    assert forced == []
    store.close()
    assert forced == ["pages.warc.gz", "journal"]
    archive.close()
