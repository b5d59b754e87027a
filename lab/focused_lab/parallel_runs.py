"""Run trials in this process or in a pool of workers, and yield them as they end.

Each worker opens its own web: an open LMDB environment must not be inherited.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from types import FrameType
from typing import TypeVar

from focused.child_processes import drop_secrets, spawn_context
from focused.errors import StateError
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import PreparedTopic, Trial
from focused_lab.run_measures import RunRecord
from focused_lab.runner import ExperimentRunner, RunCancelled
from focused_lab.web_sources import ExperimentWeb

OnRunning = Callable[[Sequence[Trial]], object]
"""Called with the running trials whenever they change."""

MakeRunner = Callable[[Callable[[], bool]], ExperimentRunner]
"""Makes a runner that stops when a function returns True."""

Made = TypeVar("Made")


def run_trials(
    webs: Mapping[str, ExperimentWeb],
    prepared_topics: Mapping[str, PreparedTopic],
    trials: Sequence[Trial],
    settings: ExperimentSettings,
    *,
    jobs: int = 1,
    under_way: OnRunning = lambda trials: None,
) -> Generator[tuple[Trial, RunRecord], None, None]:
    """Run all trials, ``jobs`` at a time, and yield each as it ends.

    Running trials are abandoned when the iterator is closed. Raises RecordedWebError, and
    StateError when a worker process dies.
    """
    make_runner = partial(ExperimentRunner, webs, prepared_topics, settings)
    if jobs == 1:
        with _deferred_interrupt() as is_interrupted:
            yield from _run_in_process(make_runner(is_interrupted), trials, under_way)
    elif trials:
        yield from _run_in_pool(make_runner, trials, jobs, under_way)


def iterate_completed(
    trials: Iterable[Trial],
    submit: Callable[[Trial], Future[Made]],
    jobs: int,
    under_way: OnRunning,
) -> Generator[tuple[Trial, Made], None, None]:
    """Submit ``jobs`` trials at a time, and yield each with its result as it ends.

    Submits no more than can run, so that the running trials are known. Raises what a trial's future
    does.
    """
    left = iter(trials)
    going: dict[Future[Made], Trial] = {}
    while True:
        while len(going) < jobs and (trial := next(left, None)) is not None:
            going[submit(trial)] = trial
        if not going:
            return
        under_way(list(going.values()))
        for done in wait(going, return_when=FIRST_COMPLETED).done:
            made = done.result()
            yield going.pop(done), made


def _run_in_process(
    runner: ExperimentRunner, trials: Sequence[Trial], under_way: OnRunning
) -> Generator[tuple[Trial, RunRecord], None, None]:
    try:
        for trial in trials:
            under_way([trial])
            yield trial, runner.run(trial)
    except RunCancelled:
        raise KeyboardInterrupt from None
    finally:
        runner.close()


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Delay Ctrl-C until between two pages, where no file is half removed; the second is
    immediate.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked:
        raise KeyboardInterrupt


def _run_in_pool(
    make_runner: MakeRunner, trials: Sequence[Trial], jobs: int, under_way: OnRunning
) -> Generator[tuple[Trial, RunRecord], None, None]:
    context = spawn_context()
    stopping = context.Event()
    arguments = (make_runner, stopping)
    pool = ProcessPoolExecutor(min(jobs, len(trials)), context, _start_worker, arguments)
    going: list[Trial] = []

    def note(trials_going: Sequence[Trial]) -> None:
        going[:] = trials_going
        under_way(trials_going)

    try:
        yield from iterate_completed(
            trials, lambda trial: pool.submit(_run_in_worker, trial), jobs, note
        )
    except BrokenProcessPool as error:
        names = ", ".join(f"{each.policy} on {each.topic}" for each in going)
        raise StateError(
            f"a worker process died while running one of: {names}; usually it ran out of memory. "
            "Finished runs are kept: run the same command to continue, if necessary with "
            "fewer --jobs"
        ) from error
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


_worker: list[ExperimentRunner] = []
_running = threading.Lock()


def _start_worker(make_runner: MakeRunner, stopping: Event) -> None:
    drop_secrets()
    # Ctrl-C goes to the parent, which stops the running trials.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orphaned = threading.Event()
    threading.Thread(target=_exit_with_parent, args=(orphaned,), daemon=True).start()
    _worker.append(make_runner(lambda: stopping.is_set() or orphaned.is_set()))


def _exit_with_parent(orphaned: threading.Event) -> None:
    """Exit when the parent was killed, which leaves workers waiting forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    orphaned.set()
    with _running:
        os._exit(1)


def _run_in_worker(trial: Trial) -> RunRecord:
    with _running:
        return _worker[0].run(trial)
