"""Simulations that close their folders when the test ends."""

from __future__ import annotations

import pytest

from tests.support.simulated import Simulation


@pytest.fixture
def simulate():
    """:class:`Simulation`, closed at the end."""
    begun: list[Simulation] = []

    def begin(*arguments, **options) -> Simulation:
        begun.append(Simulation(*arguments, **options))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()
