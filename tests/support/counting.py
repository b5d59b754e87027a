"""Counts what a crawl does: calls of functions and methods, and how much they were given."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Count:
    """``calls`` were made, and ``amount`` is what they were given, all together."""

    calls: int = 0
    amount: int = 0


def count_calls(
    patch: pytest.MonkeyPatch, function: Any, amount: Callable[..., int] = lambda *given: 0
) -> Count:
    """Count the calls of a function, or of a class, wherever ``focused`` has it by a name."""
    count = Count()
    counted = _counted(function, count, amount)
    names = [
        (module, name)
        for path, module in list(sys.modules.items())
        if path.partition(".")[0] == "focused"
        for name, value in vars(module).items()
        if value is function
    ]
    assert names, f"focused does not use {function}"
    for module, name in names:
        patch.setattr(module, name, counted)
    return count


def count_method(
    patch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    amount: Callable[..., int] = lambda *given: 0,
    count: Count | None = None,
) -> Count:
    """Count the calls of a method of all objects of a class; ``amount`` sees ``self``, too.

    With ``count`` they are added to that one.
    """
    count = count or Count()
    patch.setattr(owner, name, _counted(getattr(owner, name), count, amount))
    return count


def _counted(function: Any, count: Count, amount: Callable[..., int]) -> Any:
    @functools.wraps(function, updated=())
    def counted(*given: Any, **named: Any) -> Any:
        count.calls += 1
        count.amount += amount(*given)
        return function(*given, **named)

    return counted
