"""Reading and writing the tables of a state."""

import pytest


def test_a_scan_starts_at_a_key_under_its_prefix(tables):
    for key in (b"a1", b"b1", b"b2", b"b3", b"c1"):
        tables.put("content", key, b"")
    assert [key for key, _ in tables.scan("content", b"b", b"b2")] == [b"b2", b"b3"]
    assert [key for key, _ in tables.scan("content", b"b", b"a")] == [b"b1", b"b2", b"b3"]


def test_a_member_is_found_by_how_it_begins(tables):
    for member in (b"abc1", b"abd2"):
        tables.add("seen", b"k", member)
    wanted = [(b"k", b"abd"), (b"k", b"abe"), (b"k", b"aaa"), (b"other", b"abd")]
    assert tables.members_with("seen", wanted) == [b"abd2", None, None, None]


def test_members_are_read_from_a_start_in_order(tables):
    for member in (b"b", b"d", b"a"):
        tables.add("seen", b"k", member)
    starts = (b"", b"a", b"c", b"e")
    found = [list(tables.members("seen", b"k", start)) for start in starts]
    assert found == [[b"a", b"b", b"d"], [b"a", b"b", b"d"], [b"d"], []]
    assert list(tables.members("seen", b"other", b"a")) == []


def test_a_row_that_is_not_the_last_is_not_written_as_such(tables):
    tables.put("links", b"b", b"", last=True)
    with pytest.raises(ValueError, match="not the last"):
        tables.put("links", b"a", b"", last=True)
