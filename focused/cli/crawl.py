"""``focused crawl``: a crawl of the live or a replayed Web, and its ``--check``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from focused.archive.warc_files import PARTITIONS_FOLDER
from focused.cli.common import ANY_PATH, FOLDER, SECONDS, Problems, echo, free_path, settings_option
from focused.errors import ConfigurationError, StateError
from focused.recorded_web import find_recorded_webs
from focused.scrapy_addon.addon_settings import topic_from_settings
from focused.scrapy_addon.crawl_session import session_of
from focused.scrapy_addon.spiders.run import project_settings, run
from focused.scrapy_addon.spiders.topic_spider import TopicSpider
from focused.storage.state_store import StateStore
from focused.topic import without_credentials


@click.command()
@click.argument("topic", type=ANY_PATH)
@click.option(
    "--web",
    type=FOLDER,
    help="Crawl this recorded web instead of the live one; samples and the report's labels come "
    "from it, too.",
)
@click.option(
    "--policy",
    default="focused",
    show_default=True,
    help="Ordering of the crawl, such as bfs. Any other than focused gets a folder of its own, "
    "FOLDER-NAME. See docs/how-to/compare.md#policies.",
)
@click.option("--pages", type=click.IntRange(min=1), help="Override budget.pages.")
@click.option("--delay-s", type=SECONDS, help="Override politeness.delay_s.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    help="Override politeness.concurrency. With --web FOLDER --delay-s 0 --concurrency 1 every run "
    "fetches the same pages in the same order.",
)
@click.option(
    "--continuous/--once",
    default=None,
    help="Override revisit.continuous: keep the pages fresh after the first harvest, or end.",
)
@click.option(
    "--folder", type=FOLDER, help="Override output.folder. The ordering's name is not appended."
)
@click.option(
    "--processes",
    type=click.IntRange(min=2),
    help="Number of processes, each for a part of the hosts; fixed for a crawl. See "
    "docs/how-to/many-cores.md.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Run the processes on a Ray cluster: HOST:PORT, auto for the one of this machine, or "
    "local to start one. See docs/how-to/many-machines.md.",
)
@click.option("--storage", metavar="URL", help="Override cluster.storage.")
@click.option(
    "--round-s",
    type=click.FloatRange(min=0.1),
    help="Maximum length of a round of --processes; 30 by default.",
)
@settings_option
@click.option(
    "--fresh",
    is_flag=True,
    help="Rename an earlier crawl's folder (NAME.1, NAME.2, ...) and start anew.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Do not crawl: verify all files of the crawl's folder and print what is damaged. TOPIC "
    "may be the folder. The exit status is 1 if anything is damaged.",
)
def crawl(
    topic: Path,
    processes: int | None,
    ray: str | None,
    storage: str | None,
    round_s: float | None,
    settings: Mapping[str, str],
    fresh: bool,
    check: bool,
    **options: Any,
) -> None:
    """Crawl the topic of a TOML file; the same command resumes a stopped crawl.

    The crawl trains the topic's model first if it is missing or its samples have changed.
    """
    if topic.is_dir() and not check:
        raise click.BadParameter(f"{topic} is a folder: name a topic file.", param_hint="TOPIC")
    given = {
        "FOCUSED_TOPIC": str(topic),
        "FOCUSED_POLICY": options["policy"],
        "FOCUSED_RECORDED_WEB": None if options["web"] is None else str(options["web"]),
        "FOCUSED_PAGES": options["pages"],
        "FOCUSED_DELAY_S": options["delay_s"],
        "FOCUSED_CONCURRENCY": options["concurrency"],
        "FOCUSED_CONTINUOUS": options["continuous"],
        "FOCUSED_FOLDER": None if options["folder"] is None else str(options["folder"]),
        **settings,
    }
    if check:
        folder = topic
        if not topic.is_dir():
            folder = topic_from_settings(project_settings(given)).output.folder
        sys.exit(_check_all(folder))
    if processes is None and (storage or ray):
        raise ConfigurationError("--ray and --storage need --processes")
    sys.exit(_run(given, options["web"], processes, round_s, storage=storage, ray=ray, fresh=fresh))


def _run(
    given: dict[str, Any],
    web: Path | None,
    processes: int | None,
    round_s: float | None,
    *,
    storage: str | None,
    ray: str | None,
    fresh: bool,
) -> int:
    """Run or resume the crawl of some settings; return the exit status."""
    settings = project_settings(given)
    topic = topic_from_settings(settings)
    folder, shared = topic.output.folder, storage or topic.cluster.storage
    if fresh and shared and processes is not None:
        raise ConfigurationError(
            f"--fresh: the crawl is in {without_credentials(shared)}; rename its folder there"
        )
    with ExitStack() as stack:
        if fresh and folder.exists():
            stack.enter_context(_earlier_crawl_moved(folder))
        if web is not None:
            address = stack.enter_context(find_recorded_webs().replay(web))
            settings.set("FOCUSED_REPLAY", address, priority="cmdline")
        if processes is not None:
            from focused.rounds.process_supervision import Limits
            from focused.scrapy_addon.partitioned_crawl import run_partitioned

            limits = Limits() if round_s is None else Limits(round_s)
            return run_partitioned(
                settings, given, processes, limits=limits, storage_url=storage, ray=ray
            )
        crawler, started = run(TopicSpider, settings, topic=given["FOCUSED_TOPIC"])
        return int(not started or bool(session_of(crawler).driver.status.error_message))


@contextmanager
def _earlier_crawl_moved(folder: Path) -> Iterator[None]:
    """Rename an earlier crawl's folder; undo that if no new one was created."""
    aside = move_crawl_folder(folder)
    echo(f"focused: the earlier crawl was moved to {aside}", err=True)
    try:
        yield
    finally:
        if not folder.exists():
            aside.rename(folder)
            echo(f"focused: no crawl started; the earlier one is in {folder} again", err=True)


def move_crawl_folder(folder: Path) -> Path:
    """Rename a crawl's folder to the first free name; nothing is deleted."""
    states = [folder / "state", *folder.glob(f"{PARTITIONS_FOLDER}/*/state")]
    if not any(state.is_dir() for state in states):
        raise StateError(
            f"{folder} is not a crawl's folder; neither --fresh nor a new topic renames it"
        )
    for state in filter(Path.is_dir, states):
        StateStore.reopen(state).close()  # raises while a crawl runs there
    return folder.rename(free_path(folder))


_MAX_PRINTED = 50


def _check_all(folder: Path) -> int:
    """Check the folder, or those of its partitions; return 1 if anything is damaged."""
    partitions = sorted((folder / PARTITIONS_FOLDER).glob("*"))
    return max(map(_check, partitions or [folder]))


def _check(folder: Path) -> int:
    from focused.cli.progress_bars import page_progress  # slow to import, for --check only
    from focused.crawl.folder_check import check_folder

    report = check_folder(folder, page_progress)
    problems = Problems(_MAX_PRINTED)
    for line in report.damaged:
        problems.report(line)
    status = problems.status()
    echo(
        f"{folder}: read {report.rows:,} rows of {report.tables} tables, {report.records:,} "
        f"records of the WARC and {report.files} files beside it"
    )
    if status:
        echo(
            f"focused: {folder} is damaged. A crawl stops where it reads a damaged row. Restore "
            "the folder from a copy, or start afresh with --fresh; what is not named above stays "
            "readable.",
            err=True,
        )
    else:
        echo("no damage was found")
    return status
