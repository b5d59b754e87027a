"""What the tests of the apprentice begin with."""

from __future__ import annotations

import pytest

from focused.learning.apprentice import Apprentice
from tests.learning.pupils import new_pupil


@pytest.fixture
def apprentice() -> Apprentice:
    """One that was taught nothing."""
    return new_pupil()
