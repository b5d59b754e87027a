"""The cache of recent links keeps the latest ones."""

from focused.frontier.link_table import RecentLinkCache, SeenLink


def numbered(number: int) -> SeenLink:
    return SeenLink(number.to_bytes(5, "big"))


def test_a_link_that_is_requested_stays():
    recent = RecentLinkCache(most=10)
    recent.put(b"asked for", numbered(0))
    for number in range(1, 100):
        recent.put(str(number).encode(), numbered(number))
        assert recent.get(b"asked for") == numbered(0)
