"""The state of one crawler's crawl, shared by the scheduler and the middlewares.

The last functions open and check its folder, and format the errors that stop a crawl.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.statscollectors import StatsCollector

from focused.archive.warc_files import WARC_FILE
from focused.atomic_file import write_json_atomically
from focused.crawl import Crawl, SettledFetch, Step, Wait, build_crawl
from focused.crawl.crawl_group import CrawlGroup, SingleCrawl
from focused.crawl.crawl_stats import Counters
from focused.crawl.page_parser import EarlyResult, ParsedPage
from focused.documents.formats import document_format, needs_process
from focused.errors import ConfigurationError, FocusedError, StateError, escape_control_characters
from focused.orderings import Policy, PolicyInputs, find_policy
from focused.parser_process import ParsingLimits
from focused.scrapy_addon.crawl_models import CrawlModels
from focused.scrapy_addon.http_client import HttpClient
from focused.scrapy_addon.login_session import LoginSessions, open_sessions
from focused.scrapy_addon.parser_pool import PageBatcher, ParserPool
from focused.scrapy_addon.statistics import (
    CrawlProfile,
    counters_to_json,
    hosts_of,
    publish,
)
from focused.storage.environment import write_error_advice
from focused.storage.state_store import StateStore
from focused.topic import Topic, adapt_to_recorded_web, topic_to_json
from focused.web.html.parse import needs_parser_process
from focused.web.page import Failed, Fetched, Outcome
from focused.web.robots.robots_rules import RobotsFile, is_long_robots_file, product_token
from focused.web.warc_writer import WarcRecordBuilder

logger = logging.getLogger(__name__)


class PageRendering(Protocol):
    """Renders pages between their arrival and their settling."""

    async def render_if_worth(
        self, lease: int, fetched: Fetched, parsed: ParsedPage | Failed
    ) -> tuple[Fetched, ParsedPage | Failed]:
        """Return a page as it came and was parsed, or as a browser shows it."""


class CrawlSession:
    """Opens, runs and closes what one Scrapy crawler crawls."""

    def __init__(
        self,
        topic: Topic,
        policy: str,
        models: CrawlModels,
        *,
        follow_links: bool,
        replayed: bool,
        spider: str = "topic",
        parser_processes: int | None = None,
        parsing_limits: ParsingLimits | None = None,
        clock: Clock | None = None,
        open_group: Callable[[CrawlSession], CrawlGroup] | None = None,
    ) -> None:
        """``spider`` is the name of the spider that the folder belongs to.

        ``open_group`` opens what the session crawls, by default the crawl of the topic.

        ``parser_processes`` and ``parsing_limits`` as for :class:`ParserPool`.

        All times of the crawl are those of ``clock``, by default a :class:`CrawlClock`.

        Raises ConfigurationError for a policy that is unknown or only for simulations, and for
        logins whose secrets are missing; a replayed web needs no login.
        """
        self.logins: LoginSessions | None = None
        if topic.login and not replayed:
            self.logins = open_sessions(topic.login)
        self.topic = adapt_to_recorded_web(topic) if replayed else topic
        self.replayed = replayed
        self.policy = policy
        self._spider = spider
        self.follow_links = follow_links
        self.now: Clock = clock or CrawlClock()
        self.end_reason = ""
        self.error_message = ""  # why the crawl failed
        self.is_paused = False  # sends no requests
        self.waiting = WaitReporter()
        self.profile = CrawlProfile()
        self.http_client: HttpClient | None = None  # made for the first request
        self.rendering: PageRendering | None = None  # renders no page without it
        self.metrics_listener: socket.socket | None = None  # serves no metrics without it
        self._batcher = PageBatcher(lambda: self.group.page_parser())
        self._parser_processes = ParserPool(
            parser_processes,
            lambda: self.group.page_parser(),
            limits=parsing_limits,
            is_idle=lambda: self._batcher.is_idle,
            charge=self._charge_parsing,
        )
        self.models = models
        self._open_group = open_group or CrawlSession._open_single
        self.ordering: Policy = find_policy(policy)(PolicyInputs(models.classifier, models.scorer))
        self._group: CrawlGroup | None = None
        self._record_builder: WarcRecordBuilder | None = None
        self._stats: StatsCollector
        self._was_opened = False
        self._stop: Callable[[], object] = lambda: None
        self.wake: Callable[[], object] = lambda: None  # calls next_request

    def on_failure(self, stop: Callable[[], object]) -> None:
        """Call ``stop`` when the crawl cannot continue."""
        self._stop = stop

    def fail(self, error: Exception) -> None:
        """Stop the crawl after an error of its state."""
        if not self.end_reason:
            message = format_error(error, self.topic.output.folder)
            self.end_reason = f"stopped by an error: {message}"
            logger.critical("the crawl was stopped: %s", message, exc_info=error)
            self._report_error(message)
        self._stop()

    def _report_error(self, error_message: str) -> None:
        self.error_message = error_message
        print(f"focused: {escape_control_characters(error_message)}", file=sys.stderr)

    @property
    def group(self) -> CrawlGroup:
        """The open crawl, or the open partitions."""
        if self._group is None:
            raise RuntimeError("the crawl is not open: the scheduler opens it with the spider")
        return self._group

    def crawl_of(self, url: str) -> Crawl:
        """Return the crawl for requests to a normalised URL outside the frontier."""
        return self.group.of_url(url)

    @property
    def is_open(self) -> bool:
        """Whether the crawl is open."""
        return self._group is not None

    async def parse_early(self, lease: int, outcome: Outcome) -> ParsedPage | Failed | None:
        """Parse a response before it is settled; None if settling will parse it."""
        crawl = self.group.of_lease(lease)
        if crawl is None or not isinstance(outcome, Fetched):
            return None
        if not crawl.may_parse(lease, outcome):
            return None
        is_long = _is_long(outcome)
        if is_long:
            crawl.begin_parsing(lease)
        return await self._parse(outcome, is_long=is_long)

    async def parse_robots(self, outcome: Outcome) -> RobotsFile | Failed | None:
        """Parse a long robots.txt in a parser process; None if it is not one."""
        if not isinstance(outcome, Fetched) or not is_long_robots_file(outcome):
            return None
        token = product_token(self.topic.politeness.user_agent)
        return await self._parser_processes.parse_robots(outcome, token)

    def _charge_parsing(self, url: str, cpu_s: float) -> None:
        if self.is_open:
            self.crawl_of(url).charge_parsing(url, cpu_s)

    async def parse_and_classify(self, outcome: Outcome) -> ParsedPage | None:
        """Parse and classify a page that is not the frontier's; None if it is not a page."""
        if not self.is_open or not isinstance(outcome, Fetched):
            return None
        if not self.crawl_of(outcome.url).is_page(outcome):
            return None
        parsed = await self._parse(outcome, is_long=_is_long(outcome))
        if parsed is None and self.is_open:
            parsed = self.group.page_parser().read(outcome)
        return parsed if isinstance(parsed, ParsedPage) else None

    async def _parse(self, outcome: Fetched, *, is_long: bool) -> ParsedPage | Failed | None:
        parsed = await self._parser_processes.parse(outcome, is_long=is_long)
        if parsed is None:
            return await self._batcher.parse(outcome)
        return await self._batcher.wait_to_settle(parsed)

    async def parse_and_settle(self, lease: int, outcome: Outcome) -> SettledFetch | None:
        """Parse a response and settle its lease; raises IgnoreRequest if the crawl has ended."""
        parsed = await self.parse_early(lease, outcome)
        if self.rendering is not None and isinstance(outcome, Fetched) and parsed is not None:
            outcome, parsed = await self.rendering.render_if_worth(lease, outcome, parsed)
        robots_file = await self._parse_robots_of(lease, outcome)
        if not self.is_leased(lease):
            raise IgnoreRequest("the crawl ended before its page was parsed")
        return self.settle(lease, outcome, robots_file or parsed)

    async def _parse_robots_of(self, lease: int, outcome: Outcome) -> RobotsFile | Failed | None:
        crawl = self.group.of_lease(lease) if self.is_open else None
        if crawl is None or not crawl.is_long_robots_file(lease, outcome):
            return None
        return await self.parse_robots(outcome)

    def is_leased(self, lease: int) -> bool:
        """Whether the crawl is open and the lease not settled."""
        return self._group is not None and self._group.of_lease(lease) is not None

    def settle(
        self, lease: int, outcome: Outcome, parsed: EarlyResult = None
    ) -> SettledFetch | None:
        """Settle a lease; an error stops the crawl."""
        try:
            return self.group.settle(lease, outcome, self.now(), parsed)
        except Exception as error:  # continuing would lose the link and block its host
            self.fail(error)
            raise

    def maintain(self, now: float) -> None:
        """Sync the state to disk and swap in a retrained model; called about once a second."""
        self.group.maintain(now)
        if not self.group.crawls:
            return
        self.publish()
        writer = self.group.page_parser().record_builder
        if self._record_builder is not None and writer != self._record_builder:
            # A new WARC file: parser processes must name its warcinfo record.
            self._parser_processes.classifier_swapped()
        self._record_builder = writer
        self._parser_processes.check_load()
        successor = self.models.watcher.poll() if self.models.watcher else None
        if successor is not None:
            for crawl in self.group.crawls:
                crawl.swap_model(successor.classifier, successor.name, now)
            self._parser_processes.classifier_swapped()
            logger.info("model %s classifies from now on", successor.name)

    @property
    def was_opened(self) -> bool:
        """Whether the crawl was opened successfully."""
        return self._was_opened

    def open(self, run_settings: Mapping[str, Any], stats: StatsCollector) -> CrawlGroup:
        """Open the crawl's folder; print and raise what prevents it.

        ``run_settings`` is written to the folder's ``settings.json``; ``stats`` receives the
        counters.
        """
        self._stats = stats
        try:
            return self._open_crawl(run_settings)
        except Exception as error:  # Scrapy would only log it
            self._report_error(format_error(error, self.topic.output.folder))
            raise

    def _open_crawl(self, run_settings: Mapping[str, Any]) -> CrawlGroup:
        folder = self.topic.output.folder
        group = self._group = self._open_group(self)
        self.now.advance_to(max((each.last_activity_at for each in group.crawls), default=0.0))
        self.profile.start(group.counters.fetched)
        described = {"topic": topic_to_json(self.topic), "policy": self.policy, **run_settings}
        write_json_atomically(folder / "settings.json", described)
        self._was_opened = True
        return group

    def _open_single(self) -> CrawlGroup:
        store = open_state(self.topic, self.policy, replayed=self.replayed, spider=self._spider)
        return SingleCrawl(
            build_crawl(
                self.topic,
                self.models.classifier,
                self.ordering,
                store,
                training_urls=self.models.training_urls,
                follow_links=self.follow_links,
                stages=self.profile.stages,
            )
        )

    def close(self) -> None:
        """Close the crawl and release its folder; print what fails."""
        if self._group is None:
            return
        group, self._group = self._group, None
        self.profile.stop()
        self._parser_processes.close()
        try:
            self._write_results(group)
        except Exception as error:  # Scrapy would log it and end normally
            message = format_error(error, self.topic.output.folder)
            logger.critical("the crawl could not be closed: %s", message, exc_info=error)
            if not self.error_message:
                self._report_error(message)

    def _write_results(self, group: CrawlGroup) -> None:
        crawls = tuple(group.crawls)
        hosts = hosts_of(crawls)  # while the frontier is open
        counters = group.counters
        if self.follow_links and crawls and not hosts["frontier"] and not counters.fetched:
            self._report_error(_no_pages_message(self.topic, counters))
        group.close(self.now())
        stats = {
            **counters_to_json(counters, replayed=self.replayed),
            **hosts,
            "ended_at": self.now(),
            "end_reason": self.end_reason,
            "profile": self.profile.as_json(counters.fetched, self._parser_processes),
        }
        publish(self._stats, stats)
        write_json_atomically(self.topic.output.folder / "stats.json", stats)

    def publish(self) -> None:
        """Copy the counters to Scrapy's statistics."""
        frontiers = [crawl.frontier for crawl in self.group.crawls]
        counters = self.group.counters
        values = {
            **counters_to_json(counters, replayed=self.replayed),
            "frontier": sum(map(len, frontiers)),
            "hosts": sum(len(each.hosts) for each in frontiers),
            "profile": self.profile.as_json(counters.fetched, self._parser_processes),
        }
        publish(self._stats, values)


def _is_long(fetched: Fetched) -> bool:
    shown = fetched.as_shown()
    return needs_process(document_format(shown)) or needs_parser_process(shown)


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
    return "" if session is None else session.error_message


def _no_pages_message(topic: Topic, counters: Counters) -> str:
    urls = topic.seeds.urls
    seeds = ", ".join(urls[:3]) + (f" and {len(urls) - 3} more" if len(urls) > 3 else "")
    kinds = ", ".join(f"{kind} ({count})" for kind, count in counters.failures.items())
    return (
        f"no page came from the seeds ({seeds}): {kinds or 'nothing was requested'}. "
        f"Check seeds in {topic.path}, and the network"
    )


class Clock(Protocol):
    """The clock of a crawl, in seconds since the epoch; it may run faster than real time."""

    def __call__(self) -> float:
        """Return the time."""

    def real_s(self, duration_s: float) -> float:
        """Return how many real seconds pass during ``duration_s`` of this clock."""

    def advance_to(self, last: float) -> None:
        """Let the clock continue after ``last``, the end of the previous session.

        Raises ConfigurationError if it cannot.
        """


def _since_boot() -> float:
    """Return monotonic seconds that include suspension, if the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class CrawlClock:
    """Seconds since the epoch that ignore changes of the system's clock."""

    def __init__(
        self, wall: Callable[[], float] | None = None, count: Callable[[], float] = _since_boot
    ) -> None:
        self._count = count
        self._ahead = (wall or time.time)() - count()

    def __call__(self) -> float:
        """Return the time."""
        return self._count() + self._ahead

    def real_s(self, duration_s: float) -> float:
        """Return ``duration_s``."""
        return duration_s

    def advance_to(self, last: float) -> None:
        """Set the clock forward to ``last``, the end of the previous session."""
        self._ahead = max(self._ahead, last - self._count())


class WaitReporter:
    """Logs when the crawl only waits for hosts in back-off or with long crawl delays.

    ``line`` is the text for the progress line, ``""`` while there is other work.
    """

    def __init__(self) -> None:
        self.line = ""

    def note(self, step: Step) -> None:
        """Update ``line`` with the crawl's newest step."""
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


_CRAWL_FILES = ("pages.parquet", "links.parquet", WARC_FILE, "settings.json", "stats.json")
"""Files that a crawl writes beside its state."""


def open_state(topic: Topic, policy: str, *, replayed: bool, spider: str) -> StateStore:
    """Open the state in the topic's folder; raises StateError.

    A folder belongs to one topic, one policy, one web and one spider: robots.txt rules and links of
    a replayed web must not reach a live crawl, and requests name callbacks of their spider. A
    folder with a crawl's files but no state is refused, because the files would be overwritten.
    """
    identity = {
        "topic": topic.name,
        "policy": policy,
        "web": "a recorded one" if replayed else "the live one",
        "spider": spider,
    }
    folder = topic.output.folder
    _refuse_to_overwrite(folder)
    return StateStore.open(folder / "state", identity)


def check_state(topic: Topic, policy: str, *, replayed: bool, spider: str) -> None:
    """Raise StateError if :func:`open_state` would; create no folder."""
    folder = topic.output.folder
    if (folder / "state").exists():
        open_state(topic, policy, replayed=replayed, spider=spider).close()
        return
    _refuse_to_overwrite(folder)
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        error = errno.ENOTDIR
    elif os.access(there, os.W_OK | os.X_OK):
        return
    else:
        read_only = os.statvfs(there).f_flag & os.ST_RDONLY
        error = errno.EROFS if read_only else errno.EACCES
    raise StateError(
        f"{folder} cannot be written to: {there}: {os.strerror(error)}. "
        "Choose another output.folder, or mend this one."
    )


def _refuse_to_overwrite(folder: Path) -> None:
    """Raise StateError if a folder without state contains a crawl's files."""
    data = folder / "state" / "data.mdb"
    if data.is_file() and data.stat().st_size:
        return
    found = next((name for name in _CRAWL_FILES if (folder / name).exists()), None)
    if found is not None:
        raise StateError(
            f"{folder} holds {found}, but no crawl state: a new crawl would "
            "overwrite it. Choose another output.folder, or move this one away."
        )


def format_error(error: Exception, folder: Path) -> str:
    """Return a message about an error that stopped the crawl in ``folder``."""
    if isinstance(error, FocusedError):
        return str(error)
    if isinstance(error, OSError):
        return (
            f"cannot write to {folder}: {error.strerror or error}. What was fetched before is "
            f"safe; {write_error_advice(error)} and start the same command again."
        )
    return (
        f"the crawl in {folder} was stopped by {type(error).__name__}: {error}. See the "
        "log; the WARC and Parquet files stay readable."
    )
