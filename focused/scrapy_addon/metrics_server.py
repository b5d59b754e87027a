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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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

from focused.errors import ConfigurationError
from focused.installed_features import installed_features
from focused.local_server import LocalServer, is_own_name, open_listener
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.driver_features import Driver, statistics_meanings
from focused.scrapy_addon.run_status import RunStatus

logger = logging.getLogger(__name__)

_NAMESPACE = "focused_"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """A metric and the statistic that it exports; ``statistic`` is a key of
    :func:`~focused.scrapy_addon.driver_features.statistics_meanings`.

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
            *("robots_fetched", "robots_excluded", "retries"),
            *("nofollow", "noindex", "links_over_limit", "bytes"),
        )
    ),
    ExportedMetric("failures", "failures/KIND", label="kind"),
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
"""The core's statistics that ``/metrics`` exports.

Counters that begin with ``session`` start at 0 with each session, the others with the crawl.
"""


def exported_metrics() -> Sequence[ExportedMetric]:
    """Return all metrics; those of features are what they count."""
    counted = chain.from_iterable(each.counts for each in installed_features().values())
    names = ((name, *name.partition("/")) for name in counted)
    return (*METRICS, *(ExportedMetric(own, name, label=of.lower()) for name, own, _, of in names))


class CrawlCollector(Collector):
    """Collects the metrics of one crawl from Scrapy's statistics."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def collect(self) -> Iterable[Metric]:
        """Yield every metric; those that have no value yet are left out."""
        info = InfoMetricFamily(_NAMESPACE + "crawl", "The crawl: its topic and its ordering.")
        info.add_metric((), {"topic": self._driver.topic.name, "policy": self._driver.policy})
        yield info
        if self._driver.slot.is_open:
            self._driver.statistics.publish()
        yield from export_statistics(self._driver.statistics.read())


def export_statistics(stats: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the metrics of the crawl's statistics, in the order of :func:`exported_metrics`."""
    meanings = statistics_meanings()
    for each in exported_metrics():
        make = CounterMetricFamily if each.is_counter else GaugeMetricFamily
        help_text = meanings[each.statistic].partition(": docs/")[0].replace("`", "")
        metric = make(_NAMESPACE + each.name, help_text, labels=[each.label] if each.label else ())
        pattern = re.compile(re.sub("[A-Z]+", "(.+)", each.statistic))
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


def open_metrics_listener(host: str, port: int) -> socket.socket:
    """Listen on the configured port; raises ConfigurationError if it is taken."""
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

    def __init__(self, driver: Driver, listener: socket.socket) -> None:
        self._driver = driver
        self._listener = listener
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(CrawlCollector(driver))
        app = web.Application(middlewares=[_refuse_rebound_names])
        app.add_routes([web.get("/metrics", self._metrics), web.get("/health", self._health)])
        self._server = LocalServer(app)

    @classmethod
    def of_driver(cls, listener: socket.socket, driver: Driver) -> MetricsServer:
        """Create and connect."""
        server = cls(driver, listener)
        driver.crawler.signals.connect(server.opened, signals.spider_opened)
        driver.crawler.signals.connect(server.closed, signals.engine_stopped)
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
        driver = self._driver
        health = crawl_health(driver.topic.name, driver.status, driver.slot)
        return web.json_response(health, status=200 if health["status"] == "running" else 503)


def crawl_health(topic: str, status: RunStatus, slot: CrawlSlot) -> dict[str, Any]:
    """Return the status of a crawl, ``running``, ``failed`` or ``closing``, and its progress."""
    if status.error_message:
        return {"status": "failed", "error": status.error_message}
    if status.end_reason or not slot.is_open:
        return {"status": "closing", "reason": status.end_reason}
    crawl = slot.crawl
    return {
        "status": "running",
        "topic": topic,
        "fetched": crawl.counters.fetched,
        "on_topic": crawl.counters.on_topic,
        "frontier": len(crawl.frontier),
        "waiting": status.waiting,
    }
