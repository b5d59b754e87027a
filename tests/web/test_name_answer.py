"""What records say of a name: addresses, aliases, and that there are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.name_answer import (
    UNANSWERED,
    NameAnswer,
    Record,
    RecordType,
    Standing,
    is_askable,
    joined,
    read_answer,
)

A, AAAA, CNAME, SOA = RecordType


def says(*answers: Record, authority: tuple[Record, ...] = (), exists: bool = True) -> NameAnswer:
    return read_answer("www.a.test", A, answers, authority, exists=exists)


def test_addresses_hold_as_long_as_the_shortest_lived_of_them() -> None:
    told = says(Record("www.a.test", A, 60, "192.0.2.1"), Record("WWW.A.test", A, 30, "192.0.2.2"))
    assert told == NameAnswer(Standing.FOUND, ("192.0.2.1", "192.0.2.2"), 30)


def test_an_alias_is_followed_and_its_time_counts() -> None:
    told = says(
        Record("www.a.test", CNAME, 20, "cdn.test"),
        Record("cdn.test", CNAME, 90, "edge.test"),
        Record("edge.test", A, 60, "192.0.2.1"),
    )
    assert told == NameAnswer(Standing.FOUND, ("192.0.2.1",), 20)


def test_addresses_of_names_that_were_not_asked_for_are_not_believed() -> None:
    assert says(Record("other.test", A, 60, "192.0.2.1")).standing is Standing.MISSING


def test_an_alias_whose_target_was_left_out_is_to_be_asked_for() -> None:
    assert says(Record("www.a.test", CNAME, 20, "cdn.test")).onward == "cdn.test"


def test_aliases_in_a_circle_tell_nothing() -> None:
    told = says(
        Record("www.a.test", CNAME, 20, "b.test"), Record("b.test", CNAME, 20, "www.a.test")
    )
    assert told == UNANSWERED


@pytest.mark.parametrize(("ttl_s", "minimum_s"), [(900, 300), (300, 900)])
@pytest.mark.parametrize("exists", [True, False])
def test_a_no_holds_for_the_smaller_of_the_two_times_of_the_soa(
    ttl_s: float, minimum_s: float, exists: bool
) -> None:
    told = says(authority=(Record("a.test", SOA, ttl_s, minimum_s=minimum_s),), exists=exists)
    assert told == NameAnswer(Standing.MISSING, ttl_s=300)


def test_a_no_without_an_soa_holds_no_time() -> None:
    assert says(exists=False) == NameAnswer(Standing.MISSING, ttl_s=0)


FOUND = NameAnswer(Standing.FOUND, ("192.0.2.1",), 60)
FOUND_6 = NameAnswer(Standing.FOUND, ("2001:db8::1",), 30)
MISSING = NameAnswer(Standing.MISSING, ttl_s=45)


@pytest.mark.parametrize(
    ("four", "six", "both"),
    [
        (FOUND, FOUND_6, NameAnswer(Standing.FOUND, ("192.0.2.1", "2001:db8::1"), 30)),
        (FOUND, MISSING, FOUND),
        (FOUND, UNANSWERED, FOUND),
        (MISSING, FOUND_6, FOUND_6),
        (MISSING, MISSING, MISSING),
        (MISSING, UNANSWERED, UNANSWERED),
        (UNANSWERED, UNANSWERED, UNANSWERED),
    ],
)
def test_a_name_is_missing_when_it_has_addresses_of_neither_kind(
    four: NameAnswer, six: NameAnswer, both: NameAnswer
) -> None:
    assert joined([four, six]) == both


@pytest.mark.parametrize(
    "name", ["", ".", "a..test", "a" * 64 + ".test", "a." * 127 + "aa", "ä.test"]
)
def test_what_no_name_can_be_is_not_asked_for(name: str) -> None:
    assert not is_askable(name)


names = st.sampled_from(["www.a.test", "b.test", "c.test"])
records = st.builds(
    Record, names, st.sampled_from(RecordType), st.integers(0, 100), names | st.just("192.0.2.1")
)


@given(st.lists(records, max_size=8), st.lists(records, max_size=3), st.booleans())
def test_any_records_are_read(answers: list[Record], authority: list[Record], exists: bool) -> None:
    told = read_answer("www.a.test", A, answers, authority, exists=exists)
    assert (told.standing is Standing.FOUND) == bool(told.addresses)
