"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# OpenBLAS starts a thread a core in each process, also for the smallest model. Under several test
# workers these threads wait for each other in busy loops: a training takes ten times the CPU time.
# Processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A busy machine is slow; how long something takes is measured in benchmarks/.
settings.register_profile("quick", deadline=None, max_examples=50)
# For `make test-all` and CI: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", deadline=None)
settings.load_profile("quick")
