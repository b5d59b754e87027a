"""One crawl's worth of state, shared by the scheduler and the middlewares of a crawler."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.statscollectors import StatsCollector

from focused.crawl import Crawl, Settled
from focused.crawl.reading import Reading
from focused.crawl.reading_process import ParsingLimits
from focused.errors import ConfigurationError, visible
from focused.learning.protocols import LinkScorer, TopicJudge
from focused.policies import Aids, Policy, policy_named
from focused.scrapy_addon.crawl_clock import CrawlClock
from focused.scrapy_addon.http_client import HttpClient
from focused.scrapy_addon.model_watch import ModelWatch
from focused.scrapy_addon.page_turns import PageTurns
from focused.scrapy_addon.profile import Profile
from focused.scrapy_addon.reading_workers import ReadingWorkers
from focused.scrapy_addon.state_folder import open_state, worded
from focused.scrapy_addon.statistics import counters_of, hosts_of, publish
from focused.scrapy_addon.waiting import Waiting
from focused.topic import Topic, describe, on_a_recorded_web
from focused.web.page import Failed, Fetched, Outcome
from focused.web.parse import may_take_long
from focused.web.warc import CaptureWriter
from focused.whole_file import write_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Guide:
    """What steers a crawl: the judge, the scorer, and the URLs the judge was trained on.

    ``watch`` looks for a judge that is to follow in the middle of the crawl.
    """

    judge: TopicJudge
    scorer: LinkScorer
    training_urls: frozenset[str]
    watch: ModelWatch | None = None


class Session:
    """Opens and closes the :class:`Crawl` of one Scrapy crawler."""

    def __init__(
        self,
        topic: Topic,
        policy: str,
        guide: Guide,
        *,
        follow_links: bool,
        replayed: bool,
        readers: int | None = None,
        parsing_limits: ParsingLimits | None = None,
    ) -> None:
        """``readers`` and ``parsing_limits`` as for :class:`ReadingWorkers`.

        Raises ConfigurationError for a policy that is unknown or cannot be live.
        """
        self.topic = on_a_recorded_web(topic) if replayed else topic
        self.replayed = replayed
        self.policy = policy
        self.follow_links = follow_links
        self.now = CrawlClock()
        self.done_because = ""
        self.trouble = ""  # why the crawl did not end in order; fit for the terminal
        self.waiting = Waiting()
        self.profile = Profile()
        self.http_client: HttpClient | None = None  # made for the first request
        self._turns = PageTurns(lambda: self.crawl.reader())
        self._readers = ReadingWorkers(
            readers,
            lambda: self.crawl.reader(),
            limits=parsing_limits,
            is_idle=lambda: self._turns.is_idle,
        )
        self._guide = guide
        self._ordered_by: Policy = policy_named(policy)(Aids(guide.judge, guide.scorer))
        self._crawl: Crawl | None = None
        self._capture_writer: CaptureWriter | None = None
        self._stats: StatsCollector
        self._was_opened = False
        self._stop: Callable[[], object] = lambda: None
        self.wake: Callable[[], object] = lambda: None  # look for work again

    def on_failure(self, stop: Callable[[], object]) -> None:
        """Call ``stop`` when the crawl cannot go on."""
        self._stop = stop

    def fail(self, error: Exception) -> None:
        """The crawl's own state is in doubt: stop, rather than go on wrongly or hang."""
        if not self.done_because:
            told = worded(error, self.topic.output.folder)
            self.done_because = f"stopped by an error: {told}"
            logger.critical("the crawl stops: %s", told, exc_info=error)
            self._tell(told)
        self._stop()

    def _tell(self, trouble: str) -> None:
        self.trouble = trouble
        print(f"focused: {visible(trouble)}", file=sys.stderr)

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

    async def read_ahead(self, lease: int, outcome: Outcome) -> Reading | Failed | None:
        """Read an answer's page where and when it costs least; None: settling reads it."""
        if not isinstance(outcome, Fetched) or not self.crawl.may_read(lease, outcome):
            return None
        is_long = may_take_long(outcome)
        if is_long:
            self.crawl.begin_parsing(lease)
        return await self._read(outcome, is_long=is_long)

    async def read_only(self, outcome: Outcome) -> Reading | None:
        """Read and judge a page that is not of the frontier; None where there is none."""
        if not self.is_open or not isinstance(outcome, Fetched) or not self.crawl.is_page(outcome):
            return None
        reading = await self._read(outcome, is_long=may_take_long(outcome))
        if reading is None and self.is_open:
            reading = self.crawl.reader().read(outcome)
        return reading if isinstance(reading, Reading) else None

    async def _read(self, outcome: Fetched, *, is_long: bool) -> Reading | Failed | None:
        reading = await self._readers.ahead(outcome, is_long=is_long)
        if reading is None:
            return await self._turns.read(outcome)
        return await self._turns.settle(reading)

    async def take_in(self, lease: int, outcome: Outcome) -> Settled | None:
        """Read an answer's page, and settle its lease; raises IgnoreRequest when it is too late."""
        reading = await self.read_ahead(lease, outcome)
        if not self.is_leased(lease):
            raise IgnoreRequest("the crawl ended before its page was read")
        return self.settle(lease, outcome, reading)

    def is_leased(self, lease: int) -> bool:
        """Whether the crawl is open, and waits for the lease to be settled."""
        return self.is_open and self.crawl.is_open(lease)

    def settle(
        self, lease: int, outcome: Outcome, reading: Reading | Failed | None = None
    ) -> Settled | None:
        """Settle a lease; an error of the crawl's own state stops the crawl in order."""
        try:
            return self.crawl.settle(lease, outcome, self.now(), reading)
        except Exception as error:  # not settled: going on would lose the link and block its host
            self.fail(error)
            raise

    def tend(self, now: float) -> None:
        """Keep what is committed, against power failure, and let a retrained model take over.

        The scheduler calls it about once a second.
        """
        self.crawl.sync()
        self.publish()
        writer = self.crawl.archive.capture_writer
        if self._capture_writer is not None and writer != self._capture_writer:
            # The next WARC file: those who make records have to name its warcinfo record.
            self._readers.judge_changed()
        self._capture_writer = writer
        self._readers.look()
        follower = self._guide.watch.replaced() if self._guide.watch else None
        if follower is not None:
            self.crawl.appoint(follower.judge, follower.name, now)
            self._readers.judge_changed()
            logger.info("model %s judges from now on", follower.name)

    @property
    def was_opened(self) -> bool:
        """Whether the crawl could ever begin."""
        return self._was_opened

    def open(self, ran_with: Mapping[str, Any], stats: StatsCollector) -> Crawl:
        """Open the crawl's folder; what prevents it is told, and raised.

        ``ran_with`` goes into the folder's ``settings.json``; ``stats`` gets the counters.
        """
        self._stats = stats
        try:
            return self._begin(ran_with)
        except Exception as error:  # Scrapy writes it to the log alone
            self._tell(worded(error, self.topic.output.folder))
            raise

    def _begin(self, ran_with: Mapping[str, Any]) -> Crawl:
        folder = self.topic.output.folder
        store = open_state(self.topic, self.policy, replayed=self.replayed)
        self._crawl = Crawl(
            self.topic,
            self._guide.judge,
            self._ordered_by,
            store,
            training_urls=self._guide.training_urls,
            follow_links=self.follow_links,
            stages=self.profile.stages,
        )
        self.now.go_on_from(self._crawl.last_at)
        self.profile.start(self._crawl.counters.fetched)
        described = {"topic": describe(self.topic), "policy": self.policy, **ran_with}
        write_json(folder / "settings.json", described)
        self._was_opened = True
        return self._crawl

    def close(self) -> None:
        """Keep everything and let the folder go; what prevents it is told."""
        if self._crawl is None:
            return
        crawl, self._crawl = self._crawl, None
        self.profile.stop()
        self._readers.close()
        try:
            self._keep(crawl)
        except Exception as error:  # Scrapy would write it to the log and end as if all were well
            told = worded(error, self.topic.output.folder)
            logger.critical("the crawl could not be closed: %s", told, exc_info=error)
            if not self.trouble:
                self._tell(told)

    def _keep(self, crawl: Crawl) -> None:
        hosts = hosts_of(crawl)  # while the frontier is open
        if self.follow_links and not hosts["frontier"] and not crawl.counters.fetched:
            self._tell(_nothing_came(crawl))
        crawl.close(self.now())
        stats = {
            **counters_of(crawl, replayed=self.replayed),
            **hosts,
            "ended_at": self.now(),
            "end_reason": self.done_because,
            "profile": self._profile_of(crawl),
        }
        publish(self._stats, stats)
        write_json(self.topic.output.folder / "stats.json", stats)

    def publish(self) -> None:
        """Set the counters in Scrapy's statistics, as the scheduler does about once a second."""
        counters = counters_of(self.crawl, replayed=self.replayed)
        left, profile = len(self.crawl.frontier), self._profile_of(self.crawl)
        publish(self._stats, {**counters, "frontier": left, "profile": profile})

    def _profile_of(self, crawl: Crawl) -> dict[str, Any]:
        return self.profile.as_json(crawl.counters.fetched, self._readers)


class SessionHolder:
    """Holds the session of one crawler: the base class of the add-on, found by it."""

    session: Session | None = None


def session_if_any(crawler: Crawler) -> Session | None:
    """Return the crawler's session; None without the add-on."""
    addon = crawler.get_addon(SessionHolder)
    return None if addon is None else addon.session


def session_of(crawler: Crawler) -> Session:
    """Return the crawler's session. Raises ConfigurationError without the add-on."""
    session = session_if_any(crawler)
    if session is None:
        raise ConfigurationError(
            "the Focused add-on is not enabled: add "
            'ADDONS = {"focused.scrapy_addon.FocusedAddon": 0} to the project\'s settings'
        )
    return session


def trouble_of(crawler: Crawler) -> str:
    """Return why the crawler's crawl did not end in order; empty when it did, or was no crawl."""
    session = session_if_any(crawler)
    return "" if session is None else session.trouble


def _nothing_came(crawl: Crawl) -> str:
    urls = crawl.topic.seeds.urls
    seeds = ", ".join(urls[:3]) + (f" and {len(urls) - 3} more" if len(urls) > 3 else "")
    kinds = ", ".join(f"{kind} ({count})" for kind, count in crawl.counters.failures.items())
    return (
        f"no page came from the seeds ({seeds}): {kinds or 'nothing was asked for'}. "
        f"Check seeds in {crawl.topic.path}, and the network"
    )
