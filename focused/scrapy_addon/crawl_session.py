"""The session of one crawler: opens, maintains and closes what it crawls."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from focused.child_processes import python_command, python_environment, run_child
from focused.crawl import Crawl, build_crawl
from focused.crawl.crawl_stats import StageTimes
from focused.crawl.policy import Policy
from focused.errors import ConfigurationError, StateError, print_notice
from focused.files import write_json_atomically
from focused.orderings import PolicyInputs, find_policy
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.crawl_slot import CrawlRun
from focused.scrapy_addon.driver_features import Driver
from focused.scrapy_addon.page_processing import PageParsers, PageProcessor
from focused.scrapy_addon.run_status import CRAWL_CLOSING
from focused.scrapy_addon.state_folder import format_error, no_pages_message, open_state
from focused.scrapy_addon.statistics import hosts_of
from focused.topic import Topic, topic_to_json
from focused.web.warc_records import WarcRecordBuilder

logger = logging.getLogger(__name__)

OpenCrawl = Callable[[Policy, StageTimes], tuple[Crawl, CrawlRun]]
"""Opens what a session crawls, with an ordering and the times of its stages."""


class CrawlSession:
    """Opens, maintains and closes what one Scrapy crawler crawls."""

    def __init__(
        self,
        driver: Driver,
        models: CrawlModels,
        pages: PageProcessor,
        parsers: PageParsers,
        *,
        follow_links: bool,
        open_crawl: OpenCrawl,
        write_results: Callable[[], object],
    ) -> None:
        """``open_crawl`` opens what the session crawls: :func:`single_crawl`, or a partition's.

        ``write_results`` is called when the crawl is closed.

        Raises ConfigurationError for a policy that is unknown or only for simulations.
        """
        self.driver = driver
        self.pages = pages
        self.follow_links = follow_links
        self._models = models
        self._parsers = parsers
        self._open_crawl = open_crawl
        self._write_results = write_results
        self._ordering = find_policy(driver.policy)(PolicyInputs(models.classifier, models.scorer))
        self._record_builder: WarcRecordBuilder | None = None

    def open(self, run_settings: Mapping[str, Any]) -> Crawl:
        """Open the crawl's folder; print and raise what prevents it.

        ``run_settings`` is written to the folder's ``settings.json``.
        """
        try:
            return self._open(run_settings)
        except Exception as error:  # Scrapy would only log it
            self.driver.status.report_error(format_error(error, self.driver.topic.output.folder))
            raise

    def _open(self, run_settings: Mapping[str, Any]) -> Crawl:
        crawl, run = self._open_crawl(self._ordering, self.driver.statistics.stages)
        self.driver.slot.opened(crawl, run)
        self.driver.clock.advance_to(crawl.last_activity_at)
        self.driver.statistics.start(crawl.counters.fetched)
        described = {
            "topic": topic_to_json(self.driver.topic),
            "policy": self.driver.policy,
            **run_settings,
        }
        write_json_atomically(self.driver.topic.output.folder / "settings.json", described)
        return crawl

    def maintain(self, now: float) -> None:
        """Sync the state to disk and swap in a retrained model; called about once a second."""
        crawl = self.driver.slot.crawl
        self.driver.slot.run.sync()
        self.driver.statistics.publish()
        writer = crawl.parser.page_parser().record_builder
        if self._record_builder is not None and writer != self._record_builder:
            # A new WARC file: parser processes must name its warcinfo record.
            self._parsers.classifier_swapped()
        self._record_builder = writer
        self._parsers.check_load()
        successor = self._models.watcher.poll() if self._models.watcher else None
        if successor is not None:
            classifier, name = successor
            crawl.swap_model(classifier, name, now)
            self._parsers.classifier_swapped()
            logger.info("model %s classifies from now on", name)

    def close(self) -> None:
        """Close the crawl and release its folder; print what fails."""
        closed = self.driver.slot.closed()
        if closed is None:
            return
        self.driver.crawler.signals.send_catch_log(CRAWL_CLOSING)
        self.driver.statistics.stop()
        self._parsers.close()
        try:
            self._close(*closed)
            self._write_results()
        except Exception as error:  # Scrapy would log it and end normally
            message = format_error(error, self.driver.topic.output.folder)
            logger.critical("the crawl could not be closed: %s", message, exc_info=error)
            if not self.driver.status.error_message:
                self.driver.status.report_error(message)

    def _close(self, crawl: Crawl, run: CrawlRun) -> None:
        hosts, tables = hosts_of(crawl), crawl.feature_statistics()  # while the frontier is open
        counters = crawl.counters
        has_seeds = self.follow_links and bool(self.driver.topic.seeds.urls)
        if has_seeds and not hosts["frontier"] and not counters.fetched:
            self.driver.status.report_error(no_pages_message(self.driver.topic, counters))
        run.close(self.driver.clock())
        stats = {
            **self.driver.statistics.totals(counters),
            **hosts,
            "ended_at": self.driver.clock(),
            "end_reason": self.driver.status.end_reason,
        }
        self.driver.statistics.publish_last(stats, tables)
        write_json_atomically(self.driver.topic.output.folder / "stats.json", {**stats, **tables})


def single_crawl(
    topic: Topic,
    policy: str,
    models: CrawlModels,
    *,
    follow_links: bool,
    replayed: bool,
    spider: str,
) -> OpenCrawl:
    """Return a function that opens the crawl of a topic; ``spider`` is whom its folder is for.

    The session writes the Parquet files when the crawl is closed.
    """
    topic = replace(topic, output=replace(topic.output, parquet=False))

    def open_crawl(ordering: Policy, stages: StageTimes) -> tuple[Crawl, CrawlRun]:
        crawl = build_crawl(
            topic,
            models.classifier,
            ordering,
            open_state(topic, policy, replayed=replayed, spider=spider),
            training_urls=models.training_urls,
            follow_links=follow_links,
            stages=stages,
        )
        return crawl, crawl

    return open_crawl


def write_results(settings: BaseSettings, topic: Topic) -> None:
    """Write the Parquet files of a closed crawl, and print its report; partitions write theirs.

    Raises StateError, or OSError where the disk is full.
    """
    if not topic.output.parquet or settings["FOCUSED_PARTITION"] is not None:
        return
    folder, web = topic.output.folder, settings["FOCUSED_RECORDED_WEB"]
    reports = "report" if settings.getbool("FOCUSED_REPORT") else ""
    environment = python_environment()
    # The report comes through a pipe; what a terminal cannot show must not end it.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    environment["PYTHONIOENCODING"] = f"{encoding}:replace"
    if _prints_to_terminal():
        environment["COLUMNS"] = str(shutil.get_terminal_size().columns)
        environment["FORCE_COLOR"] = "1"
    status, written = run_child(
        python_command("focused.reports.crawl_results", str(folder), web or "", reports),
        environment,
        encoding,
    )
    if status == 0:
        try:
            print(written, end="", flush=True)
        except (OSError, ValueError) as error:  # such as a pipe whose reader has ended
            print_notice(f"the report was not printed ({error}); run: focused report {folder}")
        return
    try:
        number, message = json.loads(written)
    except ValueError:
        raise StateError(
            f"the process that writes the Parquet files of {folder} ended with status {status}; "
            f"for the report, run: focused report {folder}"
        ) from None
    raise StateError(message) if number is None else OSError(number, message)


def _prints_to_terminal() -> bool:
    """Whether standard output is a terminal; it may be closed, or Scrapy's log (``LOG_STDOUT``)."""
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False


class SessionHolder:
    """Base class of the add-on, by which its session is found."""

    session: CrawlSession | None = None


def find_session(crawler: Crawler) -> CrawlSession | None:
    """Return the crawler's session; None without the add-on."""
    addon = crawler.get_addon(SessionHolder)
    return None if addon is None else addon.session


def session_of(crawler: Crawler) -> CrawlSession:
    """Return the crawler's session. Raises ConfigurationError without the add-on."""
    session = find_session(crawler)
    if session is None:
        raise ConfigurationError(
            "the Focused add-on is not enabled: add "
            'ADDONS = {"focused.scrapy_addon.FocusedAddon": 0} to the project\'s settings'
        )
    return session


def crawl_error_of(crawler: Crawler) -> str:
    """Return why the crawler's crawl failed; empty if it did not."""
    session = find_session(crawler)
    return "" if session is None else session.driver.status.error_message
