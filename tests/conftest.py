"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is slow; how long something takes is measured in benchmarks/.
settings.register_profile("quick", deadline=None, max_examples=50)
# For `make test-all` and CI: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", deadline=None)
settings.load_profile("quick")
