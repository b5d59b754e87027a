"""How long what name servers said is believed, and of how many names."""

from __future__ import annotations

import pytest

from focused.crawl.name_cache import NameCache
from focused.web.name_answer import UNANSWERED, NameAnswer, Standing


def found(ttl_s: float) -> NameAnswer:
    return NameAnswer(Standing.FOUND, ("192.0.2.1",), ttl_s)


def missing(ttl_s: float) -> NameAnswer:
    return NameAnswer(Standing.MISSING, ttl_s=ttl_s)


def believed_s(cache: NameCache, name: str, since: float) -> int:
    """For how many whole seconds after ``since`` the cache tells of the name."""
    low, high = 0, 200_000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if cache.get(name, since + middle) is None else (middle + 1, high)
    return low


@pytest.mark.parametrize(("ttl_s", "kept_s"), [(0, 10), (300, 300), (10**9, 86_400)])
def test_an_address_is_believed_for_its_time_to_live_within_bounds(ttl_s: int, kept_s: int) -> None:
    cache = NameCache(10)
    cache.put("a.test", found(ttl_s), now=0.0)
    assert believed_s(cache, "a.test", 0.0) == kept_s


def test_the_first_no_is_believed_for_half_a_minute_the_second_for_its_time() -> None:
    cache = NameCache(10)
    cache.put("a.test", missing(900), now=0.0)
    assert believed_s(cache, "a.test", 0.0) == 30
    cache.put("a.test", missing(900), now=60.0)
    assert believed_s(cache, "a.test", 60.0) == 900


def test_no_no_is_believed_for_more_than_an_hour() -> None:
    cache = NameCache(10)
    for now in (0.0, 60.0):
        cache.put("a.test", missing(86_400), now)
    assert believed_s(cache, "a.test", 60.0) == 3_600


def test_a_name_that_came_back_starts_anew() -> None:
    cache = NameCache(10)
    for now, answer in enumerate([missing(900), found(300), missing(900)]):
        cache.put("a.test", answer, float(now))
    assert believed_s(cache, "a.test", 2.0) == 30


def test_silence_is_kept_for_seconds() -> None:
    cache = NameCache(10)
    cache.put("a.test", UNANSWERED, now=0.0)
    assert believed_s(cache, "a.test", 0.0) == 10


def test_the_names_used_last_are_kept() -> None:
    cache = NameCache(2)
    cache.put("a.test", found(300), now=0.0)
    cache.put("b.test", found(300), now=0.0)
    cache.get("a.test", now=1.0)
    cache.put("c.test", found(300), now=2.0)
    assert [cache.get(name, 3.0) is not None for name in ("a.test", "b.test", "c.test")] == [
        True,
        False,
        True,
    ]
    assert len(cache) == 2


def test_a_cache_of_nothing_keeps_nothing() -> None:
    cache = NameCache(0)
    cache.put("a.test", found(300), now=0.0)
    assert cache.get("a.test", now=0.0) is None
