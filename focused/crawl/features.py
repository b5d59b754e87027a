"""The seams where features (:mod:`focused.installed_features`) enter a crawl.

A crawl asks each installed feature whether its topic switches it on, and lets those that are on
connect. The core names no feature. One that is off is not imported, but for its entry.

A feature gives :class:`FeatureParts`, and registers at these places of :class:`CrawlCore`:

- ``core.page_analysers`` gets a function by the feature's name. It takes each page and its response
  with the document as HTML, and returns what it finds in it: texts, numbers, lists and
  dictionaries. It runs where the page is parsed, perhaps in another process: it is pure, and a
  function of a module. The result is in :attr:`SettledFetch.findings` under that name;
- ``core.page_raters`` gets a function likewise. It takes a page, its classification, and the
  topic's classifier, and is called again when the classifier is swapped before the page is settled;
- ``core.converters`` gets a :class:`~focused.crawl.page_parser.PageConverter`, which turns
  responses of other formats into HTML;
- ``core.page_reviewers`` gets a :class:`~focused.crawl.classified_page.PageReviewer`, which may
  change the classification of pages by what is known of their sites;
- ``core.columns`` gets a :class:`~focused.crawl.classified_page.PageColumn` of ``pages.parquet``;
- ``core.link_filter.refusals`` gets a function that returns why a link of a page is not queued;
- ``core.state.before_commit`` gets a function that writes what the feature holds in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from focused.classifier.topic_classifier import SwappableClassifier
from focused.crawl.classified_page import PageColumn, PageReviewer
from focused.crawl.crawl_state import CrawlState
from focused.crawl.enqueue import LinkEnqueuer, LinkFilter
from focused.crawl.listeners import SettledPageListener
from focused.crawl.page_parser import PageAnalyser, PageConverter, PageRater
from focused.crawl.policy import Policy
from focused.crawl.purposes import HostAccess, RequestHandler
from focused.crawl.responses import ResponseProcessor
from focused.crawl.stop_conditions import CrawlPacer
from focused.crawl.traps.trap_filter import TrapFilter
from focused.errors import ConfigurationError
from focused.installed_features import installed_features
from focused.topic import Topic


@dataclass(frozen=True, slots=True)
class CrawlCore:
    """What features may use: the parts of every crawl.

    With ``follow_links`` False the driver queues links itself.
    """

    topic: Topic
    policy: Policy
    classifier: SwappableClassifier
    training_urls: frozenset[str]
    state: CrawlState
    hosts: HostAccess
    enqueuer: LinkEnqueuer
    responses: ResponseProcessor
    follow_links: bool

    @property
    def link_filter(self) -> LinkFilter:
        """The filter of links."""
        return self.enqueuer.link_filter

    @property
    def traps(self) -> TrapFilter:
        """The filter of crawl traps."""
        return self.link_filter.traps

    @property
    def page_analysers(self) -> dict[str, PageAnalyser]:
        """The page analysers of features, by name."""
        return self.responses.parser.analysers

    @property
    def page_raters(self) -> dict[str, PageRater]:
        """The page raters of features, by name."""
        return self.responses.parser.raters

    @property
    def page_reviewers(self) -> list[PageReviewer]:
        """The page reviewers of features."""
        return self.responses.reviewers

    @property
    def converters(self) -> list[PageConverter]:
        """The converters of features."""
        return self.responses.parser.converters

    @property
    def columns(self) -> list[PageColumn]:
        """The columns of features."""
        return self.responses.rows.columns


@dataclass(frozen=True, slots=True)
class FeatureParts:
    """What a feature adds to a crawl.

    ``handlers`` handle requests by the purpose of their links (:mod:`focused.crawl.purposes`).
    ``first_listeners`` hear of each settled link before the core does, ``listeners`` after it.
    ``pacer`` limits all downloads of the crawl; one feature at most has one. ``statistics`` are
    tables of ``stats.json`` by key, computed when the crawl ends; those of partitions are joined.
    ``offered`` are for drivers, by class (:meth:`Crawl.feature`).
    """

    handlers: Mapping[str, RequestHandler] = field(default_factory=dict)
    first_listeners: Sequence[SettledPageListener] = ()
    listeners: Sequence[SettledPageListener] = ()
    pacer: CrawlPacer = field(default_factory=CrawlPacer)
    statistics: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    offered: Sequence[object] = ()


def connect_features(core: CrawlCore) -> FeatureParts:
    """Connect all features that the topic switches on; return their parts as one.

    Raises ConfigurationError like :func:`join_parts`.
    """
    return join_parts(
        {
            name: feature.connect(core)
            for name, feature in installed_features().items()
            if feature.is_on(core.topic)
        }
    )


def join_parts(parts: Mapping[str, FeatureParts]) -> FeatureParts:
    """Return the parts of several features, by name, as one.

    Raises ConfigurationError when two handle the same purpose or pace the crawl.
    """
    handlers: dict[str, RequestHandler] = {}
    for name, each in parts.items():
        for purpose, handler in each.handlers.items():
            if purpose in handlers:
                raise ConfigurationError(f"two features, one is {name}, handle {purpose!r}")
            handlers[purpose] = handler
    pacers = [each.pacer for each in parts.values() if type(each.pacer) is not CrawlPacer]
    if len(pacers) > 1:
        raise ConfigurationError(f"of {', '.join(parts)} more than one paces the crawl")
    return FeatureParts(
        handlers=handlers,
        first_listeners=[one for each in parts.values() for one in each.first_listeners],
        listeners=[one for each in parts.values() for one in each.listeners],
        pacer=pacers[0] if pacers else CrawlPacer(),
        statistics={key: one for each in parts.values() for key, one in each.statistics.items()},
        offered=[one for each in parts.values() for one in each.offered],
    )
