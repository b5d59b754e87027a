"""Compiled and interpreted, sorted hashes are compared alike."""

import struct
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import sorted_hashes

hashes = st.sets(st.integers(0, 9) | st.integers(0, 2**64 - 1), max_size=30)


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("sorted_hashes")


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def kernel(request: pytest.FixtureRequest, source: ModuleType) -> ModuleType:
    return sorted_hashes if request.param == "compiled" else source


def numbers(values: set[int]) -> bytes:
    return struct.pack(f"<{len(values)}Q", *sorted(values))


@settings(deadline=None)
@given(one=hashes, other=hashes)
def test_a_difference_has_those_that_are_in_the_first_alone(kernel, one, other):
    assert kernel.hashes_without(numbers(one), numbers(other)) == numbers(one - other)
