"""Fixtures of the apprentice's tests."""

import pytest

from focused.link_scoring.apprentice import Apprentice
from tests.link_scoring.apprentices import new_apprentice


@pytest.fixture
def apprentice() -> Apprentice:
    """One that was taught nothing."""
    return new_apprentice()
