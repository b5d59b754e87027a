"""The referee: what a page was worth, by the labels of its web alone.

Knows the labels, and which pages the guide was trained on; neither reaches
what guides a crawl (but an oracle, which says so). Training pages never
count, under whatever address the web answers with them, nor do pages with the
same content.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.experiments.simulation.link_graph import LinkGraph, RedirectResolver
from focused.recorded_web.recorded_web import RecordedWeb
from focused.recorded_web.web_index import INDEX_PAGE, other_scheme
from focused.reports.metrics import harvest_pages, relevance_by_labels, select_relevant_urls
from focused.topic import Scope
from focused.web.scope_filter import ScopeFilter


class GroundTruth:
    """Judges crawls of one topic on one recorded web.

    ``relevant`` are the recorded pages with a good label that are no training
    pages, nor copies of one; ``relevant_count`` is how many contents they have, each of
    which counts once. ``training_urls`` are all addresses of training pages and
    their copies.
    """

    def __init__(
        self,
        web: RecordedWeb,
        good: Collection[str],
        sample_urls: Collection[str],
        *,
        graph: Callable[[], LinkGraph] | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Raises ConfigurationError when no page of the web is on topic.

        ``graph`` opens the web's link graph, which :attr:`hot`, the path oracle
        and the knowledge of copies need: without it a page has none. ``scope``
        is the topic's.
        """
        self._web = web
        self._open_graph = graph
        self._scope = ScopeFilter(scope or Scope())
        self._ends = RedirectResolver(web)
        samples = {end for url in sample_urls if (end := self.resolve_url(url)) is not None}
        self._samples = samples if graph is None else self._with_copies(samples)
        self.training_urls = frozenset(sample_urls) | frozenset(
            address for url in self._samples for address in _recorded_spellings(url)
        )
        pages = frozenset(web.page_urls)
        labelled = pages & web.labels.keys() - self._samples
        self.relevant = select_relevant_urls(web.labels, good) & labelled
        self._irrelevant = labelled - self.relevant
        self._labelled = labelled
        self.relevant_count = len(self.relevant if graph is None else self._contents(self.relevant))
        self.countable_pages = len(pages - self._samples)
        if not self.relevant:
            raise ConfigurationError(
                f"training.good ({', '.join(good)}): {web.folder} has no page with such a label "
                "that is no training page, so nothing can be found there; "
                "see 'focused web info' for its categories"
            )

    def resolve_url(self, url: str) -> str | None:
        """The recorded page that a request for ``url`` ends at, redirects followed, or None."""
        return self._ends.of(url)

    def is_relevant(self, url: str) -> bool:
        """Whether fetching ``url`` brings a page that counts as on topic."""
        return self.resolve_url(url) in self.relevant

    def known_relevance(self, url: str) -> bool | None:
        """Whether ``url`` ends at a page on topic; None of training pages and unlabelled ones."""
        end = self.resolve_url(url)
        return end in self.relevant if end in self._labelled else None

    def verdicts(self, pages: pd.DataFrame) -> NDArray[np.bool_]:
        """On topic or not, for each page that counts, in order; content counts once."""
        return relevance_by_labels(self._by_recorded_url(pages), self.relevant)

    def hosts(self, pages: pd.DataFrame) -> int:
        """On how many hosts on-topic pages were found."""
        counted = harvest_pages(pages)
        return int(counted.loc[self.verdicts(pages), "host"].nunique())

    @cached_property
    def graph(self) -> LinkGraph:
        """Who links to whom. Raises ConfigurationError when the referee was given no graph."""
        if self._open_graph is None:
            raise ConfigurationError(
                f"{self._web.folder}: what is asked for needs the web's link graph, "
                "but the referee was made without one: pass graph="
            )
        return self._open_graph()

    @cached_property
    def hot(self) -> frozenset[str]:
        """The relevant pages that at least as many pages link to as to the median one.

        The "hot pages" of Cho, Garcia-Molina, Page (WWW 1998, crawl
        and stop with threshold), important by backlinks and on topic; their
        threshold is a free choice, ours halves the topic.
        """
        urls = sorted(self.relevant)
        links = self.graph.in_degrees[[self.graph.index[url] for url in urls]]
        threshold = np.median(links)
        return frozenset(url for url, count in zip(urls, links, strict=True) if count >= threshold)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which pages of the graph robots.txt and the topic's scope allow, shape (n,).

        By the address a page was recorded under. Depth and pages per host,
        which depend on the crawl, are not looked at.
        """
        urls = self.graph.urls
        in_scope = np.fromiter((self._scope.refuses(url) is None for url in urls), dtype=np.bool_)
        return self.graph.fetchable & in_scope

    def sample_seeds(self, on_topic: bool, count: int, rng: random.Random) -> Sequence[str]:
        """Draw pages to start from. Raises ConfigurationError when there are too few."""
        urls = sorted(self.relevant if on_topic else self._irrelevant)
        if len(urls) < count:
            kind = "on" if on_topic else "off"
            raise ConfigurationError(
                f"--seeds {kind}-topic:{count}: {self._web.folder} has only {len(urls)} "
                f"labelled pages {kind} topic"
            )
        return rng.sample(urls, count)

    def _contents(self, urls: Collection[str]) -> set[int]:
        """What recorded pages hold, each content once."""
        places = [self.graph.index[url] for url in urls if url in self.graph.index]
        return set(self.graph.first_duplicate[places].tolist())

    def _with_copies(self, urls: Collection[str]) -> set[str]:
        alike = np.isin(self.graph.first_duplicate, list(self._contents(urls)))
        return {*urls, *(self.graph.urls[place] for place in np.flatnonzero(alike).tolist())}

    def _by_recorded_url(self, pages: pd.DataFrame) -> pd.DataFrame:
        return pages.assign(
            url=pages["url"].map(lambda url: self._web.find(url) or url),
            duplicate_of=pages["duplicate_of"].map(
                lambda url: self._web.find(url) or url, na_action="ignore"
            ),
        )


def _recorded_spellings(key: str) -> list[str]:
    """All that a recorded web answers with the page of ``key``."""
    names = [key, key + INDEX_PAGE] if key.endswith("/") else [key]
    return [address for name in names for address in (name, other_scheme(name))]
