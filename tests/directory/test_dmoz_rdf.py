"""DMOZ dumps are streamed and read despite broken records."""

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.directory import DirectoryEntry, SkippedRecords
from focused.directory.dmoz import (
    MAX_RECORD_BYTES,
    NOT_FETCHABLE,
    REPAIRED,
    TRUNCATED,
    UNREADABLE,
    read_dmoz_content,
    split_records,
    symbolic_links,
)
from tests.support.examples import examples

HEAD = b"""<?xml version="1.0" encoding="UTF-8"?>
<RDF xmlns:r="http://www.w3.org/TR/RDF/" xmlns:d="http://purl.org/dc/elements/1.0/"
     xmlns="http://dmoz.org/rdf/">
<!-- Generated at 2017-03-12 00:01:18 EST from DMOZ 2.0 -->
"""
TOPIC = b"""<Topic r:id="Top/Arts/Animation">
  <catid>423945</catid>
  <link1 r:resource="http://www.awn.example/"></link1>
  <link r:resource="http://animation.example/"></link>
</Topic>
"""
PAGE = b"""<ExternalPage about="http://www.awn.example/?a=1&amp;b=2">
  <d:Title>Animation World &amp;amp; Network</d:Title>
  <d:Description>Resources for the &lt;i&gt;animation&lt;/i&gt; community.</d:Description>
  <priority>1</priority>
  <mediadate>2004-01-01</mediadate>
  <ages>kids</ages>
  <topic>Top/Arts/Animation</topic>
</ExternalPage>
"""
END = b"</RDF>\n"
READ = DirectoryEntry(
    "Top/Arts/Animation",
    "http://www.awn.example/?a=1&b=2",
    "Animation World & Network",
    "Resources for the animation community.",
)


def page(number, extra=b""):
    return (
        b'<ExternalPage about="http://page%d.example/">\n<d:Title>Page %d</d:Title>%b\n'
        b"<topic>Top/Test</topic>\n</ExternalPage>\n" % (number, number, extra)
    )


def read(tmp_path, *parts, name="content.rdf.u8"):
    path = tmp_path / name
    path.write_bytes(b"".join(parts))
    passed_over = SkippedRecords()
    entries = list(read_dmoz_content(path, passed_over))
    return entries, {reason: count for (_, reason), count in passed_over.counts.items()}


def test_a_page_has_category_address_title_and_description_without_markup(tmp_path):
    assert read(tmp_path, HEAD, TOPIC, PAGE, END) == ([READ], {})


def test_a_compressed_dump_is_the_same(tmp_path):
    content = gzip.compress(HEAD + TOPIC + PAGE + END)
    assert read(tmp_path, content, name="content.rdf.u8.gz") == ([READ], {})


def test_a_page_of_an_old_dump_is_of_the_topic_before_it(tmp_path):
    old = PAGE.replace(b"<topic>Top/Arts/Animation</topic>", b"")
    assert read(tmp_path, HEAD, TOPIC, old, END) == ([READ], {})


def test_a_page_that_is_not_on_the_web_is_counted(tmp_path):
    odd = PAGE.replace(b"http://www", b"ftp://www")
    assert read(tmp_path, HEAD, odd, PAGE, END) == ([READ], {NOT_FETCHABLE: 1})


def test_a_page_without_category_or_address_is_counted(tmp_path):
    lost = [page(1).replace(b"<topic>Top/Test</topic>", b""), page(2).replace(b" about=", b" x=")]
    assert read(tmp_path, HEAD, *lost, PAGE, END) == ([READ], {UNREADABLE: 2})


@pytest.mark.parametrize(
    "harm",
    [
        b"<d:Description>no end",
        b"<d:Description>one & two</d:Description>",
        b"<d:Description>\x01\x02 controls</d:Description>",
        b"<d:Description>&#x1; a control</d:Description>",
        b"<d:Description>caf\xe9 in Latin-1</d:Description>",
        b"<d:Description>a < b</d:Description>",
        b"</d:Description>",
    ],
)
def test_an_invalid_page_is_repaired_and_counted(tmp_path, harm):
    entries, counts = read(tmp_path, HEAD, page(1), page(2, harm), page(3), END)
    assert [entry.title for entry in entries] == ["Page 1", "Page 2", "Page 3"]
    assert {entry.category for entry in entries} == {"Top/Test"}
    assert counts == {REPAIRED: 1}


def test_a_page_without_an_end_costs_no_other(tmp_path):
    cut = page(2).replace(b"</ExternalPage>", b"")
    entries, counts = read(tmp_path, HEAD, page(1), cut, page(3), END)
    assert [entry.title for entry in entries] == ["Page 1", "Page 2", "Page 3"]
    assert counts == {REPAIRED: 1}


def test_an_end_cut_off_inside_an_address_is_counted(tmp_path):
    entries, counts = read(tmp_path, HEAD, page(1), b'<ExternalPage about="http://pa')
    assert [entry.title for entry in entries] == ["Page 1"]
    assert counts == {UNREADABLE: 1}


def test_a_compressed_dump_that_is_cut_off_gives_what_came_before(tmp_path):
    whole = gzip.compress(HEAD + b"".join(page(n) for n in range(1_000)) + END)
    entries, counts = read(tmp_path, whole[: len(whole) // 2], name="content.rdf.u8.gz")
    assert 0 < len(entries) < 1_000
    assert counts[TRUNCATED] == 1


def test_a_record_without_end_is_given_up_in_bounded_memory(tmp_path):
    endless = b"<ExternalPage about='http://endless.example/'><d:Title>" + b"x" * 40 * 10**6
    path = tmp_path / "content.rdf.u8"
    path.write_bytes(HEAD + endless + PAGE)
    tracemalloc.start()
    try:
        entries = list(read_dmoz_content(path, SkippedRecords()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert entries[-1] == READ
    assert peak < 12 * MAX_RECORD_BYTES


def test_entities_of_a_dumps_own_are_not_expanded(tmp_path):
    bomb = b"<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]>"
    entries, counts = read(tmp_path, HEAD, bomb, page(1, b"<d:Description>&b;</d:Description>"))
    assert [entry.description for entry in entries] == [""]
    assert counts == {REPAIRED: 1}


def test_symbolic_links_of_any_priority_are_pairs_of_categories(tmp_path):
    path = tmp_path / "structure.rdf.u8"
    path.write_bytes(
        HEAD
        + b"""<Topic r:id="Top/Arts/Design">
  <d:Title>Design</d:Title>
  <narrow r:resource="Top/Arts/Design/Schools"/>
  <symbolic r:resource="Typography:Top/Computers/Fonts"/>
  <symbolic1 r:resource="A: B &amp; C:Top/Business/D"/>
  <altlang r:resource="German:Top/World/Deutsch/Design"/>
  <related r:resource="Top/Arts"/>
</Topic>
<Alias r:id="Typography:Top/Computers/Fonts"><Target r:resource="Top/Computers/Fonts"/></Alias>
"""
        + END
    )
    assert list(symbolic_links(path, SkippedRecords())) == [
        ("Top/Arts/Design", "Top/Computers/Fonts"),
        ("Top/Arts/Design", "Top/Business/D"),
    ]


@given(sizes=st.lists(st.integers(1, 60), min_size=1))
def test_records_are_the_same_however_the_stream_is_cut(sizes):
    stream = HEAD + TOPIC + PAGE + page(1)[:-20] + page(2) + TOPIC + END
    chunks, start = [], 0
    while start < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[start : start + size])
        start += size
    assert list(split_records(chunks)) == list(split_records([stream]))


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_harm_done_to_one_page_costs_no_page_after_the_next(tmp_path_factory, data):
    before, after = [page(n) for n in range(3)], [page(n) for n in range(4, 8)]
    harmed = bytearray(page(3))
    for _ in range(data.draw(st.integers(1, 12))):
        place = data.draw(st.integers(0, len(harmed) - 1))
        harm = data.draw(st.binary(max_size=8).filter(lambda harm: b"<" not in harm))
        harmed[place : place + data.draw(st.integers(0, 8))] = harm
        if not harmed:
            break
    path = tmp_path_factory.mktemp("harm") / "content.rdf.u8"
    path.write_bytes(b"".join([HEAD, *before, harmed, *after, END]))
    titles = [entry.title for entry in read_dmoz_content(path, SkippedRecords())]
    assert titles[:3] == ["Page 0", "Page 1", "Page 2"]
    assert titles[-3:] == ["Page 5", "Page 6", "Page 7"]


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=400), st.integers(0, 400))
def test_no_bytes_break_the_reader(tmp_path_factory, noise, place):
    stream = HEAD + TOPIC + PAGE + PAGE
    path = tmp_path_factory.mktemp("noise") / "content.rdf.u8"
    path.write_bytes(stream[:place] + noise + stream[place:])
    for entry in read_dmoz_content(path, SkippedRecords()):
        assert entry.category
        assert entry.url.startswith("http")
