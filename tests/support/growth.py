"""How the CPU time of a call grows with the length of its input."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 5
HARMLESS_S = 0.005
"""Differences of a few milliseconds show nothing about growth."""
MOST_EXPONENT = 1.5
"""Linear is 1, quadratic 2. Half-way, because caches make long inputs dearer than short ones."""


def growth_exponent(call: Callable[[Any], object], make: Callable[[int], Any], size: int) -> float:
    """Return the exponent of CPU time between inputs of ``size`` and of eight times ``size``.

    Least times of several rounds: other work on the machine makes a round longer, and none
    shorter. The rounds end as soon as the growth is harmless.
    """
    small, large = make(size), make(8 * size)
    small_s = large_s = exponent = math.inf
    for _ in range(ROUNDS):
        small_s, large_s = min(small_s, cpu_s(call, small)), min(large_s, cpu_s(call, large))
        exponent = math.log(max(large_s, HARMLESS_S) / max(small_s, HARMLESS_S), 8)
        if exponent < MOST_EXPONENT:
            break
    return exponent


def cpu_s(call: Callable[[Any], object], given: Any) -> float:
    """Return the CPU time of one call, without garbage collections."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        call(given)
        return time.thread_time() - began
    finally:
        if enabled:
            gc.enable()
