"""``focused crawl --processes N``: the driver of a crawl by several processes of this machine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings

from focused.archive.warc_files import PARTITIONS_FOLDER
from focused.cluster.archive_parts import partition_name
from focused.cluster.assignment import SiteUnit
from focused.cluster.exchange import MemoryExchange
from focused.cluster.learning import SharedLearning
from focused.cluster.storage import SharedStorage
from focused.errors import ConfigurationError, StateError, escape_control_characters
from focused.files import make_private_folder, write_json_atomically
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.orderings import PolicyInputs, find_policy
from focused.rounds.driver import Limits, RoundDriver, RoundReport
from focused.rounds.local_executor import LocalExecutor
from focused.rounds.manifest import Manifest, last_manifest
from focused.rounds.messages import Start
from focused.scrapy_addon.addon_settings import (
    check_settings,
    load_models_factory,
    topic_from_settings,
)
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.scrapy_addon.progress import remaining_s
from focused.storage.environment import exclusive_lock
from focused.topic import Budget, Topic, adapt_to_recorded_web, topic_to_json
from focused.web.scope_filter import check_seeds_in_scope

_MODULE = "focused.scrapy_addon.partition_process"
_ROUNDS_FOLDER = "rounds"


def run_partitioned(
    settings: BaseSettings, given: Mapping[str, Any], processes: int, *, limits: Limits
) -> int:
    """Run or resume the crawl by so many processes; return the exit status.

    ``given`` are the settings of the command line, for the processes. Raises ConfigurationError,
    and StateError for a folder of another crawl.
    """
    check_settings(settings)
    for name in ("FOCUSED_CLUSTER", "FOCUSED_METRICS_PORT"):
        if settings[name]:
            raise ConfigurationError(f"{name} cannot be set for a crawl by several processes")
    topic = topic_from_settings(settings)
    replayed, policy = bool(settings["FOCUSED_REPLAY"]), settings["FOCUSED_POLICY"]
    check_seeds_in_scope(adapt_to_recorded_web(topic) if replayed else topic)
    folder = topic.output.folder.absolute()
    if (folder / "state").exists():
        raise StateError(
            f"{folder} holds a crawl of one process, which has to be resumed without --processes; "
            "choose another output.folder, or --fresh"
        )
    if settings["FOCUSED_MODELS"]:
        models = load_models_factory(settings["FOCUSED_MODELS"])(topic)
    else:
        web, replay = settings["FOCUSED_RECORDED_WEB"], settings["FOCUSED_REPLAY"]
        models = load_crawl_models(topic, web=web, replay=replay, say=_say)
    ordering = find_policy(policy)(PolicyInputs(models.classifier, models.scorer))
    make_private_folder(folder)
    make_private_folder(folder / _ROUNDS_FOLDER)
    with exclusive_lock(folder / _ROUNDS_FOLDER):
        storage = SharedStorage(f"file://{folder.parent}", folder.name)
        manifest = _manifest(storage, topic, policy, processes)
        own = [_settings_of(given, folder, n, settings) for n in range(processes)]
        starts = [
            Start(n, processes, manifest.unit, storage.url, each) for n, each in enumerate(own)
        ]
        make_private_folder(folder / PARTITIONS_FOLDER)
        _write_settings(folder, topic, settings)
        scorer, learning = ordering.scorer, None
        if isinstance(scorer, OnlineLinkScorer):
            learning = SharedLearning(scorer, MemoryExchange(), storage)
            learning.restore()
        executor = LocalExecutor(_MODULE)
        try:
            driver = RoundDriver(
                manifest,
                starts,
                executor,
                storage,
                Budget() if topic.revisit.continuous else topic.budget,
                learning=learning,
                limits=limits,
                worth_waiting_for=ordering.wait_threshold(topic.politeness.patience_s),
                on_round=lambda report: _say(progress_line(topic, report)),
                on_problem=_say,
            )
            with _stopping(driver):
                reason = driver.run()
        finally:
            executor.close()
        _write_statistics(folder, driver, reason)
        _say(f"{driver.counters.fetched} pages, {reason}")
        return 0


def progress_line(topic: Topic, report: RoundReport) -> str:
    """Return the progress of a crawl after a round in one line."""
    counters = report.counters
    of = f"/{topic.budget.pages}" if topic.budget.pages else ""
    parts = [
        f"round {report.round}: {counters.fetched}{of} pages",
        f"{report.seconds:.1f} s and {report.waited_s:.1f} s between rounds",
        f"harvest {counters.harvest_rate:.2f} (last 100: {counters.recent_harvest_rate:.2f})",
        f"frontier {report.queued}",
    ]
    if revisits := sum(counters.kinds("revisits").values()):
        parts.append(f"{revisits} revisits")
    left_s = remaining_s(topic.budget, counters.fetched, counters.active_s)
    if left_s is not None and not topic.revisit.continuous:
        parts.append(f"{left_s:.0f} s left")
    if report.missing:
        parts.append(f"without partition {', '.join(map(str, report.missing))}")
    return " | ".join(parts)


def _manifest(storage: SharedStorage, topic: Topic, policy: str, processes: int) -> Manifest:
    """Return the last manifest, or that of a new crawl. Raises StateError."""
    unit = SiteUnit.DOMAIN if topic.cluster is None else SiteUnit(topic.cluster.unit)
    found = last_manifest(storage)
    if found is None:
        return Manifest(topic.name, policy, processes, unit)
    expected = (topic.name, policy, processes)
    if (found.topic, found.policy, found.partitions) != expected:
        raise StateError(
            f"{storage.url} holds a crawl of {found.topic!r} by {found.policy!r} in "
            f"{found.partitions} processes, not of {expected[0]!r} by {expected[1]!r} in "
            f"{expected[2]}; its number of processes cannot be changed"
        )
    return found


def _settings_of(
    given: Mapping[str, Any], folder: Path, partition: int, settings: BaseSettings
) -> Mapping[str, Any]:
    """Return the settings of a partition's process: those of the command line, and its folder."""
    own = {name: value for name, value in given.items() if value is not None}
    for name in ("FOCUSED_REPLAY", "FOCUSED_CLOCK"):
        if settings[name]:
            own[name] = settings[name]
    own["FOCUSED_FOLDER"] = str(folder / PARTITIONS_FOLDER / partition_name(partition))
    own["FOCUSED_PROGRESS_INTERVAL_S"] = 0
    # Each core has a process already.
    own.setdefault("FOCUSED_PARSER_PROCESSES", 0)
    for name, value in own.items():
        if not isinstance(value, str | int | float | bool):
            raise ConfigurationError(f"{name}: cannot be given to several processes")
    return own


def _write_settings(folder: Path, topic: Topic, settings: BaseSettings) -> None:
    described = {
        "topic": topic_to_json(topic),
        "policy": settings["FOCUSED_POLICY"],
        "web": settings["FOCUSED_RECORDED_WEB"],
        "replay": settings["FOCUSED_REPLAY"],
    }
    write_json_atomically(folder / "settings.json", described)


def _write_statistics(folder: Path, driver: RoundDriver, reason: str) -> None:
    stats = {**asdict(driver.counters), "rounds": driver.manifest.round, "end_reason": reason}
    del stats["recent"]
    write_json_atomically(folder / "stats.json", stats)


@contextmanager
def _stopping(driver: RoundDriver) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the crawl; a second one kills its processes."""

    def stop(number: int, frame: object) -> None:
        if driver.should_stop:
            raise SystemExit(128 + number)
        _say("stopping; the same command resumes")
        driver.should_stop = True

    before: dict[signal.Signals, Any] = {
        each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _say(line: str) -> None:
    print(f"focused: {escape_control_characters(line)}", file=sys.stderr, flush=True)
