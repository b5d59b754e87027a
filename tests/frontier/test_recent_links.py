"""The cache of recent links keeps the latest ones."""

from __future__ import annotations

from focused.frontier.link_table import RecentLinkCache, SeenLink


def numbered(number: int) -> SeenLink:
    return SeenLink(number.to_bytes(5, "big"))


def test_of_many_links_the_last_ones_are_known() -> None:
    recent = RecentLinkCache(most=10)
    for number in range(100):
        recent.put(str(number).encode(), numbered(number))
    last = [recent.get(str(number).encode()) for number in range(90, 100)]
    assert last == [numbered(number) for number in range(90, 100)]
    assert recent.get(b"0") is None


def test_a_link_that_is_requested_stays() -> None:
    recent = RecentLinkCache(most=10)
    recent.put(b"asked for", numbered(0))
    for number in range(1, 100):
        recent.put(str(number).encode(), numbered(number))
        assert recent.get(b"asked for") == numbered(0)


def test_what_was_put_last_counts_however_long_ago_the_link_was_met_first() -> None:
    recent = RecentLinkCache(most=2)
    for number in range(5):
        recent.put(b"same", numbered(number))
        recent.put(b"other", numbered(9))
        assert recent.get(b"same") == numbered(number)


def test_what_is_forgotten_is_unknown() -> None:
    recent = RecentLinkCache(most=2)
    for name in (b"a", b"b", b"c"):
        recent.put(name, numbered(1))
    for name in (b"a", b"b", b"c"):
        recent.forget(name)
    assert [recent.get(name) for name in (b"a", b"b", b"c")] == [None, None, None]
