"""Metrics for Prometheus and a health check of a running crawl, over HTTP.

``FOCUSED_METRICS_PORT`` turns it on. ``/metrics`` has the statistics under ``focused/`` in
Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/),
``/health`` a JSON object for supervisors: status 200 while the crawl runs, 503 once it failed or is
closing.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError
from focused.local_server import LocalServer, is_own_name, open_listener
from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.statistics import PREFIX, STATISTICS

logger = logging.getLogger(__name__)

_NAMESPACE = "focused_"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """A metric and the statistic that it exports; ``statistic`` is a key of ``STATISTICS``.

    A word in capitals in the statistic's name becomes the label ``label``.
    """

    name: str
    statistic: str
    is_counter: bool = True
    label: str = ""


METRICS = (
    *(
        ExportedMetric(name, name)
        for name in (
            *("settled", "fetched", "classified", "on_topic", "training"),
            *("duplicates", "near_duplicates", "redirected"),
            *("robots_fetched", "robots_excluded", "missing_pages_requested", "retries"),
            *("nofollow", "noindex", "spam", "second_fetches", "other_pages"),
            *("links_over_limit", "bytes"),
        )
    ),
    ExportedMetric("failures", "failures/KIND", label="kind"),
    ExportedMetric("revisits", "revisits/RESULT", label="result"),
    ExportedMetric("javascript", "javascript/EVENT", label="event"),
    ExportedMetric("out_of_scope", "out_of_scope/REASON", label="reason"),
    ExportedMetric("unrecorded_hosts", "unrecorded_hosts"),
    ExportedMetric("resolver", "resolver/EVENT", label="event"),
    ExportedMetric("active_seconds", "active_s"),
    ExportedMetric("session_cpu_seconds", "profile/cpu_s"),
    ExportedMetric("session_stage_seconds", "profile/stages/STAGE", label="stage"),
    ExportedMetric("session_reactor_blocked", "profile/reactor_blocked/times"),
    ExportedMetric(
        "session_reactor_blocked_longest_seconds",
        "profile/reactor_blocked/longest_s",
        is_counter=False,
    ),
    ExportedMetric("frontier_links", "frontier", is_counter=False),
    ExportedMetric("hosts", "hosts", is_counter=False),
    ExportedMetric("recent_harvest_rate", "recent_harvest_rate", is_counter=False),
)
"""The statistics that ``/metrics`` exports.

Counters that begin with ``session`` start at 0 with each session, the others with the crawl.
"""


class CrawlCollector(Collector):
    """Collects the metrics of one crawl from Scrapy's statistics."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session

    def collect(self) -> Iterable[Metric]:
        """Yield every metric; those that have no value yet are left out."""
        info = InfoMetricFamily(_NAMESPACE + "crawl", "The crawl: its topic and its ordering.")
        info.add_metric((), {"topic": self._session.topic.name, "policy": self._session.policy})
        yield info
        if self._session.is_open:
            self._session.publish()
        stats = self._crawler.stats
        yield from export_statistics(stats.get_stats() if stats else {})


def export_statistics(stats: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the metrics of Scrapy's statistics ``stats``, in the order of :data:`METRICS`."""
    for each in METRICS:
        make = CounterMetricFamily if each.is_counter else GaugeMetricFamily
        help_text = STATISTICS[each.statistic].partition(": docs/")[0].replace("`", "")
        metric = make(_NAMESPACE + each.name, help_text, labels=[each.label] if each.label else ())
        pattern = re.compile(re.sub("[A-Z]+", "(.+)", PREFIX + each.statistic))
        for name, value in stats.items():
            if match := pattern.fullmatch(name):
                metric.add_metric(match.groups(), value)
        if metric.samples:
            yield metric


@web.middleware
async def _refuse_rebound_names(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse names that a page of another site may have rebound to this address."""
    if not is_own_name(request.host):
        raise web.HTTPForbidden(text=f"{request.host} is not a valid host name for this page")
    return await handler(request)


def open_metrics_listener(settings: BaseSettings) -> socket.socket | None:
    """Listen on the configured port, if there is one; raises ConfigurationError if it is taken."""
    if settings["FOCUSED_METRICS_PORT"] is None:
        return None
    host, port = settings["FOCUSED_METRICS_HOST"], settings.getint("FOCUSED_METRICS_PORT")
    try:
        return open_listener(host, port)
    except OSError as error:
        raise ConfigurationError(
            f"FOCUSED_METRICS_PORT: cannot listen on {host}:{port}: {error.strerror}. Choose "
            "another port, or 0 for any free one"
        ) from error


class MetricsServer:
    """The extension that serves ``/metrics`` and ``/health`` while the spider is open.

    It runs in the event loop of the crawl, which alone changes the statistics.
    """

    def __init__(self, crawler: Crawler, session: CrawlSession, listener: socket.socket) -> None:
        self._session = session
        self._listener = listener
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(CrawlCollector(crawler, session))
        app = web.Application(middlewares=[_refuse_rebound_names])
        app.add_routes([web.get("/metrics", self._metrics), web.get("/health", self._health)])
        self._server = LocalServer(app)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MetricsServer:
        """Create and connect; raises NotConfigured without a listening socket."""
        session = session_of(crawler)
        if session.metrics_listener is None:
            raise NotConfigured
        server = cls(crawler, session, session.metrics_listener)
        crawler.signals.connect(server.opened, signals.spider_opened)
        crawler.signals.connect(server.closed, signals.engine_stopped)
        return server

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port that it listens on; the port is chosen if the configured one is 0."""
        return self._server.addresses

    async def opened(self) -> None:
        """Answer requests; those that came since the start of the crawl waited."""
        await self._server.start(self._listener)
        for host, port in self.addresses:
            logger.info("metrics and health at http://%s:%d", host, port)

    async def closed(self) -> None:
        """Close the port."""
        await self._server.close()

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = encode(self._registry)
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _health(self, request: web.Request) -> web.Response:
        health = crawl_health(self._session)
        return web.json_response(health, status=200 if health["status"] == "running" else 503)


def crawl_health(session: CrawlSession) -> dict[str, Any]:
    """Return the status of a crawl, ``running``, ``failed`` or ``closing``, and its progress."""
    if session.error_message:
        return {"status": "failed", "error": session.error_message}
    if session.end_reason or not session.is_open:
        return {"status": "closing", "reason": session.end_reason}
    group = session.group
    return {
        "status": "running",
        "topic": session.topic.name,
        "fetched": group.counters.fetched,
        "on_topic": group.counters.on_topic,
        "frontier": sum(len(crawl.frontier) for crawl in group.crawls),
        "waiting": session.waiting.line,
    }
