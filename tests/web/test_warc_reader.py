"""Reading WARC files with damage at any place."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st

from focused.web import warc_reader
from focused.web.page import Fetched, HttpExchange
from focused.web.warc_reader import DamagedRecord, WarcResponse, read_response, read_responses
from focused.web.warc_records import response_record

MEMBERS = [
    response_record(Fetched(f"http://a.example/{n}", 200, {}, bytes([65 + n]) * 300))
    for n in range(4)
]
WHOLE = b"".join(MEMBERS)
STARTS = [sum(map(len, MEMBERS[:n])) for n in range(5)]


def read(folder: Path, content: bytes) -> Sequence[WarcResponse | DamagedRecord]:
    (folder / "x.warc.gz").write_bytes(content)
    return list(read_responses(folder / "x.warc.gz"))


def urls(found: Sequence[WarcResponse | DamagedRecord]) -> list[str]:
    return [record.url for record in found if isinstance(record, WarcResponse)]


def damages(found: Sequence[WarcResponse | DamagedRecord]) -> int:
    return sum(isinstance(record, DamagedRecord) for record in found)


@given(cut=st.integers(min_value=0, max_value=len(WHOLE)))
def test_a_cut_file_gives_all_records_before_the_cut_and_tells_of_it(tmp_path_factory, cut):
    found = read(tmp_path_factory.mktemp("cut"), WHOLE[:cut])
    before = sum(end <= cut for end in STARTS[1:])
    # One more when nothing but the end of its gzip member is missing.
    assert before <= len(urls(found)) <= before + 1
    assert all(len(record.body) == 300 for record in found if isinstance(record, WarcResponse))
    lost = cut - STARTS[before] >= 3 and len(urls(found)) == before
    assert damages(found) == lost or cut < 3


@given(
    at=st.integers(min_value=0, max_value=len(WHOLE) - 1), noise=st.binary(min_size=1, max_size=200)
)
def test_noise_in_one_place_costs_the_records_it_lies_in_alone(tmp_path_factory, at, noise):
    content = WHOLE[:at] + noise + WHOLE[at + len(noise) :]
    untouched = {
        f"http://a.example/{n}"
        for n in range(4)
        if STARTS[n + 1] <= at or STARTS[n] >= at + len(noise)
    }
    assert untouched <= set(urls(read(tmp_path_factory.mktemp("noise"), content)))


def test_an_uncompressed_file_is_read_on_behind_damage_too(tmp_path):
    records = [gzip.decompress(member) for member in MEMBERS]
    content = records[0] + b"no record\r\n\r\n" + records[1][50:] + records[2]
    found = read(tmp_path, content)
    assert urls(found) == ["http://a.example/0", "http://a.example/2"]
    assert damages(found) == 1


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x1f\x8b\x08", gzip.compress(b"hello", mtime=0)]
)
def test_files_that_are_no_warc_have_no_records(tmp_path, content):
    assert urls(read(tmp_path, content)) == []


def test_a_body_made_to_fill_the_memory_is_damage_and_reading_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(warc_reader, "MAX_BODY_BYTES", 10_000)
    bomb = Fetched("http://bomb.example/", 200, {}, b"a" * 10_001)
    found = read(tmp_path, MEMBERS[0] + response_record(bomb) + MEMBERS[1])
    assert urls(found) == ["http://a.example/0", "http://a.example/1"]
    assert damages(found) == 1


def test_beginnings_of_gzip_that_are_no_records_are_not_read_as_such(tmp_path, monkeypatch):
    path = tmp_path / "magic.warc.gz"
    path.write_bytes(b"\x1f\x8b\x08" * 10_000)
    readers = 0

    def counted(*given: object, **named: object) -> ArchiveIterator:
        nonlocal readers
        readers += 1
        return ArchiveIterator(*given, **named)

    monkeypatch.setattr(warc_reader, "ArchiveIterator", counted)
    assert all(isinstance(each, DamagedRecord) for each in read_responses(path))
    assert readers < 400


def test_a_fifo_in_place_of_a_file_is_an_error_and_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / "x.warc.gz")
    assert read_response(tmp_path / "x.warc.gz", 0) is None
    with pytest.raises(OSError, match="no regular file"):
        list(read_responses(tmp_path / "x.warc.gz"))


def test_the_last_of_several_values_counts_where_a_header_has_one(tmp_path):
    head = b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nLink: <a>\r\nLink: <b>\r\n\r\n"
    exchange = HttpExchange(b"GET / HTTP/1.1\r\n\r\n", head, b"")
    content = response_record(Fetched("http://a.example/", 302, {}, b"", exchange=exchange))
    (found,) = read(tmp_path, content)
    assert isinstance(found, WarcResponse)
    assert (found.headers["location"], found.headers["link"]) == ("/b", "<a>, <b>")


def test_a_body_of_a_coding_that_is_none_is_read_as_it_is(tmp_path):
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\n\r\n"
    exchange = HttpExchange(b"GET / HTTP/1.1\r\n\r\n", head, b"a page")
    page = Fetched("http://a.example/", 200, {}, b"a page", exchange=exchange)
    (found,) = read(tmp_path, response_record(page))
    assert isinstance(found, WarcResponse)
    assert found.body == b"a page"
