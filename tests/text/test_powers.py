"""Powers of a base and of its inverse."""

from __future__ import annotations

import numpy as np
import pytest

from focused.text.word_hashes import powers


@pytest.mark.parametrize("base", [np.uint32(0x9E3779B1), np.uint64(0x9E3779B97F4A7C15)])
@pytest.mark.parametrize("count", [1, 65_536, 65_537, 200_000])
def test_a_power_times_that_of_the_inverse_is_one(base: np.uint32 | np.uint64, count: int) -> None:
    forth, back = powers(base, count)
    assert len(forth) == len(back) >= count
    assert forth.dtype == base.dtype
    assert (forth * back == 1).all()
    assert forth[3] == int(base) ** 3 % (1 << 8 * base.nbytes)


def test_a_short_text_needs_no_megabytes() -> None:
    forth, _ = powers(np.uint32(0x9E3779B1), 1_000)
    assert forth.nbytes < 1_000_000
