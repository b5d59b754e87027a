"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is slow; how long something takes is measured in benchmarks/.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
