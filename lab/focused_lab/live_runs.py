"""Run trials as live crawls: the spider in a child process, over a replayed web.

Each crawl gets its own topic file with the trial's seeds, host cap and delay. Ground truth
evaluates its output folder. A crawl does not know all URLs of training pages, which never count, so
it may fetch a few pages beyond the trial's budget; these are cut off.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from focused.child_processes import python_command, python_environment
from focused.errors import StateError
from focused.reports.crawl_folder import read_crawl
from focused.reports.metrics import harvest_pages
from focused.topic import Budget, Output, Seeds, Topic, topic_to_json
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.experiment_plan import PreparedTopic, Trial
from focused_lab.ground_truth import GroundTruth
from focused_lab.parallel_runs import OnRunning, iterate_completed
from focused_lab.recorded_web.replay_process import ReplayProcess
from focused_lab.run_measures import RunCosts, RunRecord, make_run_record, peak_mb
from focused_lab.runner import RunCancelled, WebContext, topic_for_run
from focused_lab.web_sources import ExperimentWeb

_POLL_INTERVAL_S = 0.1
_OUTPUT_FILE = "output.txt"


@dataclass(frozen=True, slots=True)
class _CrawlResult:
    """A crawl's rows, why it ended, and its costs."""

    pages: pd.DataFrame
    end_reason: str
    spent: RunCosts


def run_live_trials(
    webs: Mapping[str, ExperimentWeb],
    prepared_topics: Mapping[str, PreparedTopic],
    trials: Sequence[Trial],
    settings: ExperimentSettings,
    folder: Path,
    *,
    jobs: int = 1,
    under_way: OnRunning = lambda trials: None,
) -> Generator[tuple[Trial, RunRecord], None, None]:
    """Run all trials, ``jobs`` at a time, and yield each as it ends.

    ``folder`` holds the running crawls, which stop when the iterator is closed. Raises
    RecordedWebError, and StateError for a crawl that fails.
    """
    stopping = threading.Event()
    numbers = itertools.count(1)
    with ExitStack() as stack:
        served = _ServedWebs(webs, stack)
        pool = ThreadPoolExecutor(jobs)

        def submit(trial: Trial) -> Future[_CrawlResult]:
            web_context = served.web_context(trial.web, prepared_topics[trial.topic])
            topic = live_topic(trial, web_context, settings, folder / str(next(numbers)))
            return pool.submit(_run_crawl, topic, trial, served.address(trial.web), stopping)

        try:
            for trial, crawled in iterate_completed(trials, submit, jobs, under_way):
                web_context = served.web_context(trial.web, prepared_topics[trial.topic])
                yield trial, _measure_crawl(trial, web_context.ground_truth, crawled)
        finally:
            stopping.set()
            pool.shutdown(cancel_futures=True)


def _measure_crawl(trial: Trial, ground_truth: GroundTruth, crawled: _CrawlResult) -> RunRecord:
    pages = cut_at_budget(trial, ground_truth, crawled.pages)
    cut = len(pages) < len(crawled.pages)
    ended = "page budget spent" if cut else crawled.end_reason
    return make_run_record(trial, ground_truth, pages, ended, crawled.spent)


class _ServedWebs:
    """The webs that crawls need, each served and opened once."""

    def __init__(self, webs: Mapping[str, ExperimentWeb], stack: ExitStack) -> None:
        self._webs = webs
        self._stack = stack
        self._web_contexts: dict[str, WebContext] = {}
        self._served: dict[str, ReplayProcess] = {}

    def web_context(self, web: str, prepared_topic: PreparedTopic) -> WebContext:
        """The context of a web with the topic selected."""
        if web not in self._web_contexts:
            self._web_contexts[web] = WebContext(self._webs[web])
            self._stack.callback(self._web_contexts[web].close)
        self._web_contexts[web].select_topic(prepared_topic)
        return self._web_contexts[web]

    def address(self, web: str) -> str:
        """The address at which the web is served."""
        if web not in self._served:
            self._served[web] = self._stack.enter_context(ReplayProcess(self._webs[web].folder))
        return self._served[web].address


def live_topic(
    trial: Trial, web_context: WebContext, settings: ExperimentSettings, folder: Path
) -> Topic:
    """The topic of a trial's crawl: its seeds, cap, delay and output folder."""
    topic = topic_for_run(web_context.prepared_topic.topic, trial)
    training = replace(
        topic.training,
        directory=tuple(path.absolute() for path in topic.training.directory),
        model=topic.training.model.absolute(),
    )
    delay_s = topic.politeness.delay_s if settings.delay_s is None else settings.delay_s
    return replace(
        topic,
        path=folder / "topic.toml",
        seeds=Seeds(trial.start),
        training=training,
        politeness=replace(topic.politeness, delay_s=delay_s),
        # Training pages are fetched, too, and spend the crawl's budget.
        budget=Budget(pages=trial.budget + web_context.samples),
        output=Output(folder=(folder / "crawl").absolute(), warc="off", parquet=True),
    )


def cut_at_budget(trial: Trial, ground_truth: GroundTruth, pages: pd.DataFrame) -> pd.DataFrame:
    """Mark training pages and cut the rows at the budget, as in a simulated run."""
    trained = pages["training"].astype(bool) | pages["url"].isin(list(ground_truth.training_urls))
    # Match the simulator's type: Parquet changes that of a column without values.
    copies = pages["duplicate_of"].astype(object).where(pages["duplicate_of"].notna(), None)
    pages = pages.assign(training=trained, url=pages["url"].astype(object), duplicate_of=copies)
    counted = harvest_pages(pages)
    if len(counted) <= trial.budget:
        return pages
    return pages.loc[: counted.index[trial.budget - 1]]


def topic_to_toml(topic: Topic) -> str:
    """Serialise the topic as a topic file."""
    described = {key: value for key, value in topic_to_json(topic).items() if key != "path"}
    lines = [
        _toml_line(key, value)
        for key, value in described.items()
        if not isinstance(value, dict) and value is not None
    ]
    for section, values in described.items():
        if isinstance(values, dict):
            lines.append(f"[{section}]")
            lines += [_toml_line(key, value) for key, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml_line(key: str, value: object) -> str:
    # JSON's numbers, lists and strings are valid TOML, except for one character.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")


def _run_crawl(topic: Topic, trial: Trial, address: str, stopping: threading.Event) -> _CrawlResult:
    folder = topic.path.parent
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        topic.path.write_text(topic_to_toml(topic), encoding="utf-8")
    except OSError as error:
        raise StateError(f"{folder} cannot be created: {error.strerror}; remove it") from error
    child = _start_crawl(topic, trial.policy, address)
    try:
        spent = _wait_for_crawl(child, stopping)
        if child.returncode:
            raise _crawl_error(trial, folder)
        try:
            crawl = read_crawl(topic.output.folder)
        except StateError as error:
            raise _crawl_error(trial, folder) from error
    except RunCancelled:
        _kill(child)  # first, as it would write into the folder while that is removed
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        _kill(child)
    shutil.rmtree(folder, ignore_errors=True)
    return _CrawlResult(crawl.pages, str(crawl.stats.get("end_reason", "")), spent)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:
        child.kill()
        child.wait()


def _start_crawl(topic: Topic, policy: str, address: str) -> subprocess.Popen[bytes]:
    settings = {
        "FOCUSED_REPLAY": address,
        "FOCUSED_POLICY": policy,
        "FOCUSED_FOLDER": topic.output.folder,
        "FOCUSED_PROGRESS_INTERVAL_S": 0,
    }
    options = [text for name, value in settings.items() for text in ("-s", f"{name}={value}")]
    environment = python_environment(has_secrets=True) | {
        "SCRAPY_SETTINGS_MODULE": "focused.scrapy_addon.spiders.settings"
    }
    with (topic.path.parent / _OUTPUT_FILE).open("wb") as output:
        return subprocess.Popen(
            python_command("scrapy", "crawl", "topic", "-a", f"topic={topic.path}", *options),
            env=environment,
            stdout=output,
            stderr=output,
            # Ctrl-C goes to the parent, which stops the running crawls.
            start_new_session=True,
        )


def _wait_for_crawl(child: subprocess.Popen[bytes], stopping: threading.Event) -> RunCosts:
    """Wait for the child and return its costs; its peak memory is the last one seen."""
    most_mb: float | None = None
    while True:
        most_mb = peak_mb(Path(f"/proc/{child.pid}")) or most_mb
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        if ended:
            child.returncode = os.waitstatus_to_exitcode(status)
            return RunCosts(None, usage.ru_utime + usage.ru_stime, most_mb)
        if stopping.is_set():
            raise RunCancelled
        time.sleep(_POLL_INTERVAL_S)


def _crawl_error(trial: Trial, folder: Path) -> StateError:
    lines = (folder / _OUTPUT_FILE).read_text(errors="replace").strip().splitlines()
    output = [line for line in lines if line.startswith("focused: ")] or lines
    why = output[-1].removeprefix("focused: ") if output else "no output"
    return StateError(
        f"the crawl of {trial.policy} on {trial.topic} failed: {why}; "
        f"{folder} has its output. Finished runs are kept: run the same command to continue"
    )
