"""The same trials as real crawls: the spider in a process of its own, over a replayed web.

Nothing is simulated: Scrapy, HTTP, the clock. Start, host cap and delay come by
a topic file of the run's own; what the crawl left in its folder is judged by
the same referee. Training pages, which never count, are not known to a crawl
under all their addresses, so it may fetch a few pages more than the trial's
budget; those beyond it are cut off.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from focused.errors import StateError
from focused.evaluation.crawl_folder import read_crawl
from focused.evaluation.examination.candidate import Candidate
from focused.evaluation.examination.examiner import Desk, Stopped, on_terms
from focused.evaluation.examination.measures import Row, Spent, row_of
from focused.evaluation.examination.peak_memory import peak_mb
from focused.evaluation.examination.plan import Trial
from focused.evaluation.examination.referee import Referee
from focused.evaluation.examination.terms import Terms
from focused.evaluation.examination.webs import ExaminedWeb
from focused.evaluation.examination.workers import UnderWay, as_they_end
from focused.evaluation.metrics import harvest_pages
from focused.recorded.serve_process import ReplayProcess
from focused.topic import Budget, Output, Seeds, Topic, describe

_LOOK_EVERY_S = 0.1
_SAID_FILE = "said.txt"


@dataclass(frozen=True, slots=True)
class _Crawled:
    """What a crawl left: the archive's rows, why it ended, what it cost."""

    pages: pd.DataFrame
    ended_because: str
    spent: Spent


def examine_live(
    webs: Mapping[str, ExaminedWeb],
    candidates: Mapping[str, Candidate],
    trials: Sequence[Trial],
    terms: Terms,
    folder: Path,
    *,
    jobs: int = 1,
    under_way: UnderWay = lambda trials: None,
) -> Generator[tuple[Trial, Row], None, None]:
    """Make all runs, ``jobs`` at a time, and yield each as it ends.

    ``folder`` holds the crawls while they run. Crawls under way are ended when
    the iterator is closed. Raises RecordedWebError, and StateError for a crawl
    that does not end in order.
    """
    stopping = threading.Event()
    numbers = itertools.count(1)
    with ExitStack() as stack:
        hall = _Hall(webs, stack)
        pool = ThreadPoolExecutor(jobs)

        def submit(trial: Trial) -> Future[_Crawled]:
            desk = hall.desk(trial.web, candidates[trial.topic])
            topic = crawled_topic(trial, desk, terms, folder / str(next(numbers)))
            return pool.submit(_crawl, topic, trial, hall.address(trial.web), stopping)

        try:
            for trial, crawled in as_they_end(trials, submit, jobs, under_way):
                desk = hall.desk(trial.web, candidates[trial.topic])
                yield trial, _judged(trial, desk.referee, crawled)
        finally:
            stopping.set()
            pool.shutdown(cancel_futures=True)


def _judged(trial: Trial, referee: Referee, crawled: _Crawled) -> Row:
    pages = counted_as(trial, referee, crawled.pages)
    cut = len(pages) < len(crawled.pages)
    ended = "page budget spent" if cut else crawled.ended_because
    return row_of(trial, referee, pages, ended, crawled.spent)


class _Hall:
    """The webs that crawls need: served, and open for the referee."""

    def __init__(self, webs: Mapping[str, ExaminedWeb], stack: ExitStack) -> None:
        self._webs = webs
        self._stack = stack
        self._desks: dict[str, Desk] = {}
        self._served: dict[str, ReplayProcess] = {}

    def desk(self, web: str, candidate: Candidate) -> Desk:
        """The web's desk with the topic laid out."""
        if web not in self._desks:
            self._desks[web] = Desk(self._webs[web])
            self._stack.callback(self._desks[web].close)
        self._desks[web].lay_out(candidate)
        return self._desks[web]

    def address(self, web: str) -> str:
        """Where the web is served."""
        if web not in self._served:
            self._served[web] = self._stack.enter_context(ReplayProcess(self._webs[web].folder))
        return self._served[web].address


def crawled_topic(trial: Trial, desk: Desk, terms: Terms, folder: Path) -> Topic:
    """The topic as a trial's crawl has it: start, cap, delay, and a folder of its own."""
    topic = on_terms(desk.candidate.topic, trial)
    training = replace(
        topic.training,
        directory=tuple(path.absolute() for path in topic.training.directory),
        model=topic.training.model.absolute(),
    )
    delay_s = topic.politeness.delay_s if terms.delay_s is None else terms.delay_s
    return replace(
        topic,
        path=folder / "topic.toml",
        seeds=Seeds(trial.start),
        training=training,
        politeness=replace(topic.politeness, delay_s=delay_s),
        # Training pages are fetched, too, and are spent from a crawl's own budget.
        budget=Budget(pages=trial.budget + desk.samples),
        output=Output(folder=(folder / "crawl").absolute(), warc="off", parquet=True),
    )


def counted_as(trial: Trial, referee: Referee, pages: pd.DataFrame) -> pd.DataFrame:
    """A crawl's rows as a simulated run has them: training pages marked, cut at the budget."""
    trained = pages["training"].astype(bool) | pages["url"].isin(list(referee.training_urls))
    # As the simulator has it: Parquet makes another type of a column without any value.
    copies = pages["duplicate_of"].astype(object).where(pages["duplicate_of"].notna(), None)
    pages = pages.assign(training=trained, url=pages["url"].astype(object), duplicate_of=copies)
    counted = harvest_pages(pages)
    if len(counted) <= trial.budget:
        return pages
    return pages.loc[: counted.index[trial.budget - 1]]


def topic_text(topic: Topic) -> str:
    """The topic as a topic file says it."""
    described = {key: value for key, value in describe(topic).items() if key != "path"}
    lines = [_line(key, value) for key, value in described.items() if not isinstance(value, dict)]
    for section, values in described.items():
        if isinstance(values, dict):
            lines.append(f"[{section}]")
            lines += [_line(key, value) for key, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    # JSON's numbers, lists and strings are TOML's, but for one character.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")


def _crawl(topic: Topic, trial: Trial, address: str, stopping: threading.Event) -> _Crawled:
    folder = topic.path.parent
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        topic.path.write_text(topic_text(topic), encoding="utf-8")
    except OSError as error:
        raise StateError(f"{folder} cannot be made: {error.strerror}; remove it") from error
    child = _start(topic, trial.policy, address)
    try:
        spent = _wait(child, stopping)
        if child.returncode:
            raise _disorder(trial, folder)
        try:
            crawl = read_crawl(topic.output.folder)
        except StateError as error:
            raise _disorder(trial, folder) from error
    except Stopped:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if child.returncode is None:
            child.kill()
            child.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return _Crawled(crawl.pages, str(crawl.stats.get("end_reason", "")), spent)


def _start(topic: Topic, policy: str, address: str) -> subprocess.Popen[bytes]:
    told = {
        "FOCUSED_REPLAY": address,
        "FOCUSED_POLICY": policy,
        "FOCUSED_FOLDER": topic.output.folder,
        "FOCUSED_PROGRESS_S": 0,
    }
    options = [text for name, value in told.items() for text in ("-s", f"{name}={value}")]
    environment = {
        **os.environ,
        "SCRAPY_SETTINGS_MODULE": "focused.scrapy_addon.spiders.settings",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with (topic.path.parent / _SAID_FILE).open("wb") as said:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "scrapy",
                "crawl",
                "topic",
                "-a",
                f"topic={topic.path}",
                *options,
            ],
            env=environment,
            stdout=said,
            stderr=said,
            # Ctrl-C is for the parent, which ends the crawls under way.
            start_new_session=True,
        )


def _wait(child: subprocess.Popen[bytes], stopping: threading.Event) -> Spent:
    """Wait for the child's end and tell its cost; its peak memory as last seen."""
    most_mb: float | None = None
    while True:
        most_mb = peak_mb(Path(f"/proc/{child.pid}")) or most_mb
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        if ended:
            child.returncode = os.waitstatus_to_exitcode(status)
            return Spent(None, usage.ru_utime + usage.ru_stime, most_mb)
        if stopping.is_set():
            raise Stopped
        time.sleep(_LOOK_EVERY_S)


def _disorder(trial: Trial, folder: Path) -> StateError:
    lines = (folder / _SAID_FILE).read_text(errors="replace").strip().splitlines()
    said = [line for line in lines if line.startswith("focused: ")] or lines
    why = said[-1].removeprefix("focused: ") if said else "it said nothing"
    return StateError(
        f"the crawl of {trial.policy} on {trial.topic} did not end in order: {why}; "
        f"{folder} tells more. Runs that were done are kept: the same command goes on"
    )
