"""``focused crawl --processes N``: the driver of a crawl by several processes, here or on Ray."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import structs
from scrapy.settings import BaseSettings

from focused.archive.warc_files import PARTITIONS_FOLDER
from focused.errors import (
    ConfigurationError,
    StateError,
    exit_before_start,
    missing_extra,
    print_notice,
)
from focused.files import make_private_folder
from focused.link_scoring.protocols import OnlineLinkScorer
from focused.orderings import PolicyInputs, find_policy
from focused.orderings.policy_names import FOCUSED
from focused.rounds.archive_parts import partition_name
from focused.rounds.driver import RoundDriver, RoundReport
from focused.rounds.executors import LocalExecutor, RayExecutor
from focused.rounds.learning import SharedLearning
from focused.rounds.manifest import Manifest, last_manifest
from focused.rounds.messages import Start
from focused.rounds.process_supervision import Limits
from focused.rounds.storage import SharedStorage, try_again
from focused.scrapy_addon.addon_settings import check_settings, topic_from_settings
from focused.scrapy_addon.crawl_models import load_models
from focused.scrapy_addon.progress import feature_downloads, remaining_s
from focused.storage.environment import exclusive_lock
from focused.topic import Budget, Topic, adapt_to_recorded_web, topic_to_json
from focused.web.scope_filter import check_seeds_in_scope

_MODULE = "focused.scrapy_addon.partition_process"
_ROUNDS_FOLDER = "rounds"


def run_partitioned(
    settings: BaseSettings,
    given: Mapping[str, Any],
    processes: int,
    *,
    limits: Limits,
    storage_url: str | None = None,
    ray: str | None = None,
) -> int:
    """Run or resume the crawl by so many processes; return the exit status.

    ``given`` are the settings of the command line, for the processes. ``storage_url`` overrides
    the topic's ``cluster.storage``; with either, states and results are stored there. ``ray`` is
    the address of a Ray cluster that runs the processes. Raises ConfigurationError, and StateError
    for a folder of another crawl.
    """
    check_settings(settings)
    if settings["FOCUSED_METRICS_PORT"]:
        raise ConfigurationError(
            "FOCUSED_METRICS_PORT cannot be set for a crawl by several processes"
        )
    topic = topic_from_settings(settings)
    replayed, policy = bool(settings["FOCUSED_REPLAY"]), settings["FOCUSED_POLICY"]
    check_seeds_in_scope(adapt_to_recorded_web(topic) if replayed else topic)
    folder = topic.output.folder.absolute()
    if (folder / "state").exists():
        raise StateError(
            f"{folder} holds a crawl of one process, which has to be resumed without --processes; "
            "choose another output.folder, or --fresh"
        )
    shared = storage_url or topic.cluster.storage
    if ray is not None and not shared:
        raise ConfigurationError(
            "--ray needs a storage that all machines reach: set [cluster] storage in the topic "
            "file, or --storage, such as s3://bucket/crawls or file:///mnt/crawls"
        )
    if shared and (folder / _ROUNDS_FOLDER / "manifests").exists():
        raise StateError(
            f"{folder} holds a crawl that keeps its state on this machine, which has to be resumed "
            "without shared storage; choose another output.folder, or --fresh"
        )
    try:
        models = load_models(settings, topic)
    except KeyboardInterrupt:
        exit_before_start()
    ordering = find_policy(policy)(PolicyInputs(models.classifier, models.scorer))
    make_private_folder(folder)
    make_private_folder(folder / _ROUNDS_FOLDER)
    with exclusive_lock(folder / _ROUNDS_FOLDER):
        if shared:
            name = topic.name if policy == FOCUSED else f"{topic.name}-{policy}"
            storage = SharedStorage(shared, name)
        else:
            storage = SharedStorage(f"file://{folder.parent}", folder.name)
            make_private_folder(folder / PARTITIONS_FOLDER)
        manifest = _manifest(storage, topic, policy, processes)
        own = [_settings_of(given, folder, n, settings) for n in range(processes)]
        starts = [
            Start(n, processes, manifest.unit, storage.url, each) for n, each in enumerate(own)
        ]
        if shared:
            starts = _for_other_machines(starts, storage, topic)
            delay_s, request_s = topic.politeness.delay_s, topic.politeness.timeout_s
            limits = replace(limits, restart_s=max(limits.restart_s, delay_s), request_s=request_s)
        _write_settings(storage, topic, settings)
        scorer, learning = ordering.scorer, None
        if isinstance(scorer, OnlineLinkScorer):
            learning = SharedLearning(scorer, storage)
            learning.restore()
        executor = _executor(ray, processes)
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
                on_round=lambda report: print_notice(progress_line(topic, report)),
                on_problem=print_notice,
                name=uuid.uuid4().hex if shared else None,
                version=metadata.version("focused-crawler"),
            )
            with _stopping(driver):
                reason = driver.run()
        finally:
            executor.close()
        _write_statistics(storage, driver, reason)
        print_notice(f"{driver.counters.fetched} pages, {reason}")
        return 0


def _executor(ray: str | None, processes: int) -> LocalExecutor | RayExecutor:
    if ray is None:
        return LocalExecutor(_MODULE)
    try:
        return RayExecutor(_MODULE, ray, processes=processes)
    except ModuleNotFoundError as error:
        missing = missing_extra(error, "--ray")
        if missing is None:
            raise
        raise ConfigurationError(missing) from error


def _for_other_machines(
    starts: Sequence[Start], storage: SharedStorage, topic: Topic
) -> list[Start]:
    """Return the first messages with what other machines need of a topic."""
    from focused.rounds.topic_files import secrets_of, store_topic_files  # only there

    files = store_topic_files(storage, topic)
    environment, secret_files = secrets_of(topic)
    return [
        structs.replace(each, files=files, environment=environment, secret_files=secret_files)
        for each in starts
    ]


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
    parts += feature_downloads(counters)
    left_s = remaining_s(topic.budget, counters.fetched, counters.active_s)
    if left_s is not None and not topic.revisit.continuous:
        parts.append(f"{left_s:.0f} s left")
    if report.missing:
        parts.append(f"without partition {', '.join(map(str, report.missing))}")
    return " | ".join(parts)


def _manifest(storage: SharedStorage, topic: Topic, policy: str, processes: int) -> Manifest:
    """Return the last manifest, or that of a new crawl. Raises StateError."""
    found = last_manifest(storage)
    if found is None:
        return Manifest(topic.name, policy, processes, topic.cluster.unit)
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
    for name in ("FOCUSED_TOPIC", "FOCUSED_RECORDED_WEB"):
        if path := own.get(name):
            own[name] = str(Path(path).absolute())
    # Each core has a process already.
    own.setdefault("FOCUSED_PARSER_PROCESSES", 0)
    for name, value in own.items():
        if not isinstance(value, str | int | float | bool):
            raise ConfigurationError(f"{name}: cannot be given to several processes")
    return own


def _write_settings(storage: SharedStorage, topic: Topic, settings: BaseSettings) -> None:
    described = {
        "topic": topic_to_json(topic),
        "policy": settings["FOCUSED_POLICY"],
        "web": settings["FOCUSED_RECORDED_WEB"],
        "replay": settings["FOCUSED_REPLAY"],
    }
    _write_json(storage, "settings.json", described)


def _write_statistics(storage: SharedStorage, driver: RoundDriver, reason: str) -> None:
    stats = {**asdict(driver.counters), "rounds": driver.manifest.round, "end_reason": reason}
    del stats["recent"]
    _write_json(storage, "stats.json", stats)


def _write_json(storage: SharedStorage, name: str, value: Mapping[str, Any]) -> None:
    try_again(
        lambda: storage.write(name, f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode())
    )


@contextmanager
def _stopping(driver: RoundDriver) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the crawl; a second one kills its processes."""

    def stop(number: int, frame: object) -> None:
        if driver.should_stop:
            raise SystemExit(128 + number)
        print_notice("stopping; the same command resumes")
        driver.should_stop = True

    before: dict[signal.Signals, Any] = {
        each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
