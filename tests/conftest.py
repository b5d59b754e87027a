"""What holds for all tests."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from focused.storage.state_store import StateStore
    from focused.storage.tables import Tables
    from tests.support.simulated import Simulation

# OpenBLAS starts a thread a core in each process, also for the smallest model. Under several test
# workers these threads wait for each other in busy loops: a training takes ten times the CPU time.
# OpenMP, by which scikit-learn fits histogram gradient boosting, does the same. Processes that
# tests start inherit both.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell lets what it starts in the background ignore Ctrl-C, and so would processes of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is slow; how long something takes is measured in benchmarks/.
settings.register_profile("quick", deadline=None, max_examples=50, derandomize=True)
# For `make test-all` and CI: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", deadline=None, derandomize=True)
# Other examples each time: pytest -m hypothesis --hypothesis-profile=random
settings.register_profile("random", deadline=None, max_examples=1000)
settings.load_profile("quick")

# A test that needs more memory fails; otherwise the system kills a worker, which names no test.
_MAX_DATA_BYTES = 5 << 30
_soft, _hard = resource.getrlimit(resource.RLIMIT_DATA)
if _soft == resource.RLIM_INFINITY:
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_DATA_BYTES, _hard))


class _FormattedLogRecord(logging.LogRecord):
    """Holds the text of an exception that is logged, not the exception.

    pytest keeps all records of a test. An exception has a traceback, whose frames have all that
    an example of a property used, so that hundreds of examples would add up to gigabytes.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if isinstance(self.args, tuple) and any(isinstance(x, BaseException) for x in self.args):
            self.msg, self.args = self.getMessage(), ()
        if self.exc_info:
            self.exc_text = logging.Formatter().formatException(self.exc_info)
            self.exc_info = None


logging.setLogRecordFactory(_FormattedLogRecord)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep modules and tests, which stay, out of all garbage collections."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that take minutes take many on a busy machine before they count as hanging."""
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1_200))


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulation]]:
    """:class:`Simulation`, closed at the end."""
    from tests.support.simulated import Simulation  # not for each worker

    begun: list[Simulation] = []

    def begin(*arguments: Any, **options: Any) -> Simulation:
        begun.append(Simulation(*arguments, **options))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


@pytest.fixture(scope="session")
def living_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a continuous crawl over pages that change; don't write to it."""
    from tests.support.continuous_crawl import changing_web, continuous_crawl  # slow to import

    simulation = continuous_crawl(tmp_path_factory.mktemp("changing"), changing_web())
    return simulation.topic.output.folder


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    """Close the states that a test leaves open, which are never garbage."""

    def stores() -> set[StateStore]:
        module = sys.modules.get("focused.storage.state_store")  # not for each worker
        return set() if module is None else set(module._open_stores)

    of_wider_fixtures = stores()
    yield
    for each in stores() - of_wider_fixtures:
        each.abandon()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    """An empty state in the folder ``state``."""
    from focused.storage.state_store import StateStore  # not for each worker

    opened = StateStore.open(tmp_path / "state", {})
    yield opened
    opened.close()


@pytest.fixture
def tables(store: StateStore) -> Tables:
    """The tables of an empty state."""
    return store.tables
