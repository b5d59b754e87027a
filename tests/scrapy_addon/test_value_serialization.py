"""Values of meta and cb_kwargs: stored as data, restored equal."""

import dataclasses
import enum
import json
import sys
from collections import Counter, OrderedDict, deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import attr
import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from focused.scrapy_addon.spider_requests import (
    UnstorableValueError,
    deserialize_values,
    serialize_values,
)


class Book(scrapy.Item):
    title = scrapy.Field()
    pages = scrapy.Field()


@dataclasses.dataclass(frozen=True, slots=True)
class Author:
    name: str
    born: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.name == "read back":
            raise AssertionError("code ran")


@attr.define
class Shelf:
    books: list[Book]


class Colour(enum.Enum):
    BLUE = "#00f"


Point = namedtuple("Point", "x y")


def stored(value: Any) -> Any:
    return deserialize_values(serialize_values({"meta": {"k": value}}))["meta"]["k"]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    "value",
    [
        {1: 2},
        {"1": 1, 1: "one", (1, 2): None, b"x": True, None: 0.5},
        {"focused.tuple": [1]},
        {},
        (1, (2, [3, (4,)])),
        [(), [()]],
        {1, 2},
        frozenset({"a", (1, 2)}),
        b"\x00\xff",
        bytearray(b"x"),
        1 + 2j,
        range(1, 9, 2),
        10**30,
        float("inf"),
        "\ud800 and \u2028",
        deque([1, 2], maxlen=3),
        OrderedDict([("b", 1), ("a", 2)]),
        Counter("abba"),
        Decimal("1.10"),
        Fraction(1, 3),
        UUID(int=7),
        Path("/x/y"),
        date(2024, 2, 29),
        datetime(2024, 1, 2, 3, 4, 5, 6),
        datetime(2024, 1, 2, tzinfo=UTC),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30), "IST")),
        time(1, 2, 3),
        timedelta(days=-1, microseconds=5),
        Book(title="Whales", pages={1: (2, 3)}),
        Author("Melville"),
        Shelf([Book(title="Whales")]),
        Colour.BLUE,
        Point(1, (2,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back_with_its_type(value):
    assert same(stored(value), value)


def test_text_of_another_class_comes_back_as_plain_text():
    text = etree.HTML("<a>Whales</a>").xpath("string(//a)")
    assert type(text) is not str
    assert same(stored(text), "Whales")


def test_an_instant_comes_back_with_its_zone_and_fold():
    moment = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert (stored(moment).tzinfo.key, stored(moment).fold) == ("Europe/Berlin", 1)


# Short leaves: the nesting is under test, and Hypothesis refuses values with an overlong repr.
_TEXT = st.text(max_size=8)
_BYTES = st.binary(max_size=8)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT
_HASHABLE = st.recursive(
    _SCALARS | _BYTES,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=8,
)


@given(
    st.recursive(
        _HASHABLE,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_HASHABLE, inner, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_is_nested_comes_back(value):
    assert repr(stored(value)) == repr(value) or same(stored(value), value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "meta['k'] is of the type builtins.object"),
        ({"a": [1, sys]}, "meta['k']['a'][1] is of the type builtins.module"),
        ((1, print), "meta['k'][1] is of the type builtins.builtin_function_or_method"),
        (Book(title={1: object()}), "meta['k'].title[1] is of the type builtins.object"),
        ({object(): 1}, "a key of meta['k'] is of the type builtins.object"),
    ],
    ids=["object", "nested", "function", "in an item", "key"],
)
def test_an_error_names_what_cannot_be_stored(value, message):
    with pytest.raises(UnstorableValueError) as raised:
        stored(value)
    assert str(raised.value) == message


def test_what_contains_itself_is_an_error_too():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UnstorableValueError, match="meta contains itself"):
        stored(loop)


def test_a_class_within_a_function_cannot_be_found_again():
    @dataclasses.dataclass
    class Local:
        x: int

    with pytest.raises(UnstorableValueError, match="Local"):
        stored(Local(1))


def test_reading_back_calls_no_code_of_a_class():
    text = serialize_values({"meta": Author("Melville")}).replace("Melville", "read back")
    assert deserialize_values(text)["meta"].name == "read back"


@pytest.mark.parametrize(
    "forged",
    [
        {"focused.object": ["subprocess:Popen", [["args", "true"]]]},
        {"focused.object": ["os:system", []]},
        {"focused.enum": ["pathlib:Path", "home"]},
        {"focused.object": ["antigravity:x", []]},
        {"focused.eval": "1"},
    ],
)
def test_a_forged_row_makes_no_object_and_imports_nothing(forged):
    with pytest.raises(ValueError, match=r"class|enumeration|type"):
        deserialize_values(json.dumps({"meta": forged}))
    assert "antigravity" not in sys.modules
