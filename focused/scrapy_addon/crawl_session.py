"""The session of one crawler: opens, maintains and closes what it crawls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from scrapy.crawler import Crawler

from focused.crawl import build_crawl
from focused.crawl.crawl_group import CrawlGroup, SingleCrawl
from focused.crawl.crawl_stats import StageTimes
from focused.errors import ConfigurationError
from focused.files import write_json_atomically
from focused.orderings import Policy, PolicyInputs, find_policy
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.driver_features import Driver
from focused.scrapy_addon.page_processing import PageParsers, PageProcessor
from focused.scrapy_addon.state_folder import format_error, no_pages_message, open_state
from focused.scrapy_addon.statistics import CrawlProfile, feature_tables, hosts_of
from focused.topic import Topic, topic_to_json
from focused.web.warc_writer import WarcRecordBuilder

logger = logging.getLogger(__name__)

OpenGroup = Callable[[Policy, StageTimes], CrawlGroup]
"""Opens what a session crawls, with an ordering and the times of its stages."""


class CrawlSession:
    """Opens, maintains and closes what one Scrapy crawler crawls."""

    def __init__(
        self,
        driver: Driver,
        models: CrawlModels,
        pages: PageProcessor,
        parsers: PageParsers,
        profile: CrawlProfile,
        *,
        follow_links: bool,
        open_group: OpenGroup,
    ) -> None:
        """``open_group`` opens what the session crawls: :func:`single_crawl`, or a worker's.

        Raises ConfigurationError for a policy that is unknown or only for simulations.
        """
        self.topic = driver.topic
        self.crawls = driver.crawls
        self.clock = driver.clock
        self.status = driver.status
        self.engine = driver.engine
        self.pages = pages
        self.follow_links = follow_links
        self._policy = driver.policy
        self._statistics = driver.statistics
        self._models = models
        self._parsers = parsers
        self._profile = profile
        self._open_group = open_group
        self._ordering = find_policy(driver.policy)(PolicyInputs(models.classifier, models.scorer))
        self._record_builder: WarcRecordBuilder | None = None

    def open(self, run_settings: Mapping[str, Any]) -> CrawlGroup:
        """Open the crawl's folder; print and raise what prevents it.

        ``run_settings`` is written to the folder's ``settings.json``.
        """
        try:
            return self._open(run_settings)
        except Exception as error:  # Scrapy would only log it
            self.status.report_error(format_error(error, self.topic.output.folder))
            raise

    def _open(self, run_settings: Mapping[str, Any]) -> CrawlGroup:
        group = self._open_group(self._ordering, self._profile.stages)
        self.crawls.opened(group)
        self.clock.advance_to(max((each.last_activity_at for each in group.crawls), default=0.0))
        self._profile.start(group.counters.fetched)
        described = {"topic": topic_to_json(self.topic), "policy": self._policy, **run_settings}
        write_json_atomically(self.topic.output.folder / "settings.json", described)
        return group

    def maintain(self, now: float) -> None:
        """Sync the state to disk and swap in a retrained model; called about once a second."""
        group = self.crawls.group
        group.maintain(now)
        if not group.crawls:
            return
        self._statistics.publish()
        writer = group.page_parser().record_builder
        if self._record_builder is not None and writer != self._record_builder:
            # A new WARC file: parser processes must name its warcinfo record.
            self._parsers.classifier_swapped()
        self._record_builder = writer
        self._parsers.check_load()
        successor = self._models.watcher.poll() if self._models.watcher else None
        if successor is not None:
            for crawl in group.crawls:
                crawl.swap_model(successor.classifier, successor.name, now)
            self._parsers.classifier_swapped()
            logger.info("model %s classifies from now on", successor.name)

    def close(self) -> None:
        """Close the crawl and release its folder; print what fails."""
        group = self.crawls.closed()
        if group is None:
            return
        self._profile.stop()
        self._parsers.close()
        try:
            self._write_results(group)
        except Exception as error:  # Scrapy would log it and end normally
            message = format_error(error, self.topic.output.folder)
            logger.critical("the crawl could not be closed: %s", message, exc_info=error)
            if not self.status.error_message:
                self.status.report_error(message)

    def _write_results(self, group: CrawlGroup) -> None:
        crawls = tuple(group.crawls)
        hosts, tables = hosts_of(crawls), feature_tables(crawls)  # while the frontier is open
        counters = group.counters
        has_seeds = self.follow_links and bool(self.topic.seeds.urls)
        if has_seeds and crawls and not hosts["frontier"] and not counters.fetched:
            self.status.report_error(no_pages_message(self.topic, counters))
        group.close(self.clock())
        stats = {
            **self._statistics.totals(counters),
            **hosts,
            "ended_at": self.clock(),
            "end_reason": self.status.end_reason,
        }
        self._statistics.publish_last(stats, tables)
        write_json_atomically(self.topic.output.folder / "stats.json", stats | tables)


def single_crawl(
    topic: Topic,
    policy: str,
    models: CrawlModels,
    *,
    follow_links: bool,
    replayed: bool,
    spider: str,
) -> OpenGroup:
    """Return a function that opens the crawl of a topic; ``spider`` is whom its folder is for."""

    def open_crawl(ordering: Policy, stages: StageTimes) -> CrawlGroup:
        store = open_state(topic, policy, replayed=replayed, spider=spider)
        return SingleCrawl(
            build_crawl(
                topic,
                models.classifier,
                ordering,
                store,
                training_urls=models.training_urls,
                follow_links=follow_links,
                stages=stages,
            )
        )

    return open_crawl


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
    return "" if session is None else session.status.error_message
