"""One crawl's worth of state, shared by the scheduler and the middlewares of a crawler."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.statscollectors import StatsCollector

from focused.atomic_file import write_json_atomically
from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl import Crawl, SettledFetch, Step, Wait, build_crawl
from focused.crawl.page_parser import ParsedPage
from focused.errors import ConfigurationError, escape_control_characters
from focused.link_scoring.protocols import LinkScorer
from focused.orderings import Policy, PolicyInputs, find_policy
from focused.parser_process import ParsingLimits
from focused.scrapy_addon.crawl_profile import CrawlProfile
from focused.scrapy_addon.http_client import HttpClient
from focused.scrapy_addon.model_watcher import ModelWatcher
from focused.scrapy_addon.page_batcher import PageBatcher
from focused.scrapy_addon.parser_pool import ParserPool
from focused.scrapy_addon.state_folder import format_error, open_state
from focused.scrapy_addon.statistics import counters_of, hosts_of, publish
from focused.topic import Topic, adapt_to_recorded_web, topic_to_json
from focused.web.html.parse import needs_parser_process
from focused.web.page import Failed, Fetched, Outcome
from focused.web.warc_writer import WarcRecordBuilder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrawlModels:
    """What steers a crawl: the classifier, the scorer, and the URLs the classifier was trained on.

    ``watch`` looks for a classifier that is to follow in the middle of the crawl.
    """

    classifier: TopicClassifier
    scorer: LinkScorer
    training_urls: frozenset[str]
    watch: ModelWatcher | None = None


class CrawlSession:
    """Opens and closes the :class:`Crawl` of one Scrapy crawler."""

    def __init__(
        self,
        topic: Topic,
        policy: str,
        guide: CrawlModels,
        *,
        follow_links: bool,
        replayed: bool,
        parser_processes: int | None = None,
        parsing_limits: ParsingLimits | None = None,
    ) -> None:
        """``parser_processes`` and ``parsing_limits`` as for :class:`ParserPool`.

        Raises ConfigurationError for a policy that is unknown or cannot be live.
        """
        self.topic = adapt_to_recorded_web(topic) if replayed else topic
        self.replayed = replayed
        self.policy = policy
        self.follow_links = follow_links
        self.now = CrawlClock()
        self.end_reason = ""
        self.error_message = ""  # why the crawl did not end in order; fit for the terminal
        self.waiting = WaitReporter()
        self.profile = CrawlProfile()
        self.http_client: HttpClient | None = None  # made for the first request
        self._batcher = PageBatcher(lambda: self.crawl.reader())
        self._parser_processes = ParserPool(
            parser_processes,
            lambda: self.crawl.reader(),
            limits=parsing_limits,
            is_idle=lambda: self._batcher.is_idle,
        )
        self._models = guide
        self._ordering: Policy = find_policy(policy)(PolicyInputs(guide.classifier, guide.scorer))
        self._crawl: Crawl | None = None
        self._record_builder: WarcRecordBuilder | None = None
        self._stats: StatsCollector
        self._was_opened = False
        self._stop: Callable[[], object] = lambda: None
        self.wake: Callable[[], object] = lambda: None  # look for work again

    def on_failure(self, stop: Callable[[], object]) -> None:
        """Call ``stop`` when the crawl cannot go on."""
        self._stop = stop

    def fail(self, error: Exception) -> None:
        """The crawl's own state is in doubt: stop, rather than go on wrongly or hang."""
        if not self.end_reason:
            told = format_error(error, self.topic.output.folder)
            self.end_reason = f"stopped by an error: {told}"
            logger.critical("the crawl stops: %s", told, exc_info=error)
            self._tell(told)
        self._stop()

    def _tell(self, error_message: str) -> None:
        self.error_message = error_message
        print(f"focused: {escape_control_characters(error_message)}", file=sys.stderr)

    @property
    def crawl(self) -> Crawl:
        """The open crawl."""
        if self._crawl is None:
            raise RuntimeError("the crawl is not open: the scheduler opens it with the spider")
        return self._crawl

    @property
    def is_open(self) -> bool:
        """Whether there is a crawl to speak to."""
        return self._crawl is not None

    async def parse_early(self, lease: int, outcome: Outcome) -> ParsedPage | Failed | None:
        """Read an answer's page where and when it costs least; None: settling reads it."""
        if not isinstance(outcome, Fetched) or not self.crawl.may_parse(lease, outcome):
            return None
        is_long = needs_parser_process(outcome)
        if is_long:
            self.crawl.begin_parsing(lease)
        return await self._read(outcome, is_long=is_long)

    async def parse_and_classify(self, outcome: Outcome) -> ParsedPage | None:
        """Read and classify a page that is not of the frontier; None where there is none."""
        if not self.is_open or not isinstance(outcome, Fetched) or not self.crawl.is_page(outcome):
            return None
        reading = await self._read(outcome, is_long=needs_parser_process(outcome))
        if reading is None and self.is_open:
            reading = self.crawl.reader().read(outcome)
        return reading if isinstance(reading, ParsedPage) else None

    async def _read(self, outcome: Fetched, *, is_long: bool) -> ParsedPage | Failed | None:
        reading = await self._parser_processes.ahead(outcome, is_long=is_long)
        if reading is None:
            return await self._batcher.read(outcome)
        return await self._batcher.settle(reading)

    async def parse_and_settle(self, lease: int, outcome: Outcome) -> SettledFetch | None:
        """Read an answer's page, and settle its lease; raises IgnoreRequest when it is too late."""
        reading = await self.parse_early(lease, outcome)
        if not self.is_leased(lease):
            raise IgnoreRequest("the crawl ended before its page was read")
        return self.settle(lease, outcome, reading)

    def is_leased(self, lease: int) -> bool:
        """Whether the crawl is open, and waits for the lease to be settled."""
        return self.is_open and self.crawl.is_open(lease)

    def settle(
        self, lease: int, outcome: Outcome, reading: ParsedPage | Failed | None = None
    ) -> SettledFetch | None:
        """Settle a lease; an error of the crawl's own state stops the crawl in order."""
        try:
            return self.crawl.settle(lease, outcome, self.now(), reading)
        except Exception as error:  # not settled: going on would lose the link and block its host
            self.fail(error)
            raise

    def maintain(self, now: float) -> None:
        """Keep what is committed, against power failure, and let a retrained model take over.

        The scheduler calls it about once a second.
        """
        self.crawl.sync()
        self.publish()
        writer = self.crawl.archive.record_builder
        if self._record_builder is not None and writer != self._record_builder:
            # The next WARC file: those who make records have to name its warcinfo record.
            self._parser_processes.classifier_swapped()
        self._record_builder = writer
        self._parser_processes.look()
        follower = self._models.watch.replaced() if self._models.watch else None
        if follower is not None:
            self.crawl.appoint(follower.classifier, follower.name, now)
            self._parser_processes.classifier_swapped()
            logger.info("model %s judges from now on", follower.name)

    @property
    def was_opened(self) -> bool:
        """Whether the crawl could ever begin."""
        return self._was_opened

    def open(self, run_settings: Mapping[str, Any], stats: StatsCollector) -> Crawl:
        """Open the crawl's folder; what prevents it is told, and raised.

        ``run_settings`` goes into the folder's ``settings.json``; ``stats`` gets the counters.
        """
        self._stats = stats
        try:
            return self._begin(run_settings)
        except Exception as error:  # Scrapy writes it to the log alone
            self._tell(format_error(error, self.topic.output.folder))
            raise

    def _begin(self, run_settings: Mapping[str, Any]) -> Crawl:
        folder = self.topic.output.folder
        store = open_state(self.topic, self.policy, replayed=self.replayed)
        self._crawl = build_crawl(
            self.topic,
            self._models.classifier,
            self._ordering,
            store,
            training_urls=self._models.training_urls,
            follow_links=self.follow_links,
            stages=self.profile.stages,
        )
        self.now.advance_to(self._crawl.last_activity_at)
        self.profile.start(self._crawl.counters.fetched)
        described = {"topic": topic_to_json(self.topic), "policy": self.policy, **run_settings}
        write_json_atomically(folder / "settings.json", described)
        self._was_opened = True
        return self._crawl

    def close(self) -> None:
        """Keep everything and let the folder go; what prevents it is told."""
        if self._crawl is None:
            return
        crawl, self._crawl = self._crawl, None
        self.profile.stop()
        self._parser_processes.close()
        try:
            self._keep(crawl)
        except Exception as error:  # Scrapy would write it to the log and end as if all were well
            told = format_error(error, self.topic.output.folder)
            logger.critical("the crawl could not be closed: %s", told, exc_info=error)
            if not self.error_message:
                self._tell(told)

    def _keep(self, crawl: Crawl) -> None:
        hosts = hosts_of(crawl)  # while the frontier is open
        if self.follow_links and not hosts["frontier"] and not crawl.counters.fetched:
            self._tell(_no_pages_message(crawl))
        crawl.close(self.now())
        stats = {
            **counters_of(crawl, replayed=self.replayed),
            **hosts,
            "ended_at": self.now(),
            "end_reason": self.end_reason,
            "profile": self._profile_of(crawl),
        }
        publish(self._stats, stats)
        write_json_atomically(self.topic.output.folder / "stats.json", stats)

    def publish(self) -> None:
        """Set the counters in Scrapy's statistics, as the scheduler does about once a second."""
        counters = counters_of(self.crawl, replayed=self.replayed)
        left, profile = len(self.crawl.frontier), self._profile_of(self.crawl)
        publish(self._stats, {**counters, "frontier": left, "profile": profile})

    def _profile_of(self, crawl: Crawl) -> dict[str, Any]:
        return self.profile.as_json(crawl.counters.fetched, self._parser_processes)


class SessionHolder:
    """Holds the session of one crawler: the base class of the add-on, found by it."""

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
    """Return why the crawler's crawl did not end in order; empty when it did, or was no crawl."""
    session = find_session(crawler)
    return "" if session is None else session.error_message


def _no_pages_message(crawl: Crawl) -> str:
    urls = crawl.topic.seeds.urls
    seeds = ", ".join(urls[:3]) + (f" and {len(urls) - 3} more" if len(urls) > 3 else "")
    kinds = ", ".join(f"{kind} ({count})" for kind, count in crawl.counters.failures.items())
    return (
        f"no page came from the seeds ({seeds}): {kinds or 'nothing was asked for'}. "
        f"Check seeds in {crawl.topic.path}, and the network"
    )


def _since_boot() -> float:
    """Seconds that count on while the machine sleeps, where the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class CrawlClock:
    """Seconds since the epoch: read from the system's clock once, then counted."""

    def __init__(
        self, wall: Callable[[], float] | None = None, count: Callable[[], float] = _since_boot
    ) -> None:
        self._count = count
        self._ahead = (wall or time.time)() - count()

    def __call__(self) -> float:
        """The time now."""
        return self._count() + self._ahead

    def advance_to(self, last: float) -> None:
        """It is ``last`` at least: an earlier session of the crawl was at work then."""
        self._ahead = max(self._ahead, last - self._count())


class WaitReporter:
    """Logs a wait for hosts that are left alone for long when it begins and when it changes.

    ``line`` is what the progress line adds, ``""`` while there is more to do.
    """

    def __init__(self) -> None:
        self.line = ""

    def note(self, step: Step) -> None:
        """Take in the crawl's newest step."""
        line = _wait_message(step) if isinstance(step, Wait) else ""
        if line and line != self.line:
            logger.info(line)
        self.line = line


def _wait_message(wait: Wait) -> str:
    if not wait.hosts_backing_off or wait.until is None:
        return ""
    hosts = f"{wait.hosts_backing_off:,} host{'' if wait.hosts_backing_off == 1 else 's'}"
    at = time.strftime("%H:%M:%S", time.localtime(wait.until))
    return f"waiting for {hosts} in back-off or long crawl-delays, the next at {at}"
