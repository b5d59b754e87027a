"""Ground truth: evaluate crawls of a recorded web by its labels.

Neither labels nor the training pages reach what guides a crawl, except an oracle. Training pages
never count, at any of their URLs, nor do pages with the same content.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.reports.metrics import harvest_pages, relevance_by_labels, select_relevant_urls
from focused.topic import Scope
from focused.web.scope_filter import ScopeFilter
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.recorded_web.web_index import INDEX_PAGE, other_scheme
from focused_lab.simulation.link_graph import LinkGraph, RedirectResolver


class GroundTruth:
    """Evaluates crawls of one topic on one recorded web.

    ``relevant`` are the recorded pages with a good label, without training pages and their
    duplicates; ``relevant_count`` counts their distinct contents. ``training_urls`` are all URLs of
    training pages and their duplicates.
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

        ``graph`` opens the web's link graph, needed by :attr:`hot_pages`, the path oracle and
        duplicate detection; without it no page has a duplicate. ``scope`` is the topic's.
        """
        self._web = web
        self._open_graph = graph
        self._max_depth = None if scope is None else scope.max_depth
        self._scope = ScopeFilter(scope or Scope())
        self._redirects = RedirectResolver(web)
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
                "except training pages, so nothing can be found there; "
                "see 'focused web info' for its categories"
            )

    def resolve_url(self, url: str) -> str | None:
        """The recorded page at which a request for ``url`` ends, redirects followed, or None."""
        return self._redirects.resolve(url)

    def is_relevant(self, url: str) -> bool:
        """Whether fetching ``url`` gives a page that counts as on topic."""
        return self.resolve_url(url) in self.relevant

    def known_relevance(self, url: str) -> bool | None:
        """Whether ``url`` leads to a page on topic; None for training pages and unlabelled ones."""
        end = self.resolve_url(url)
        return end in self.relevant if end in self._labelled else None

    def relevance_of(self, pages: pd.DataFrame) -> NDArray[np.bool_]:
        """On topic or not, for each counted page in order; each content counts once."""
        return relevance_by_labels(self._by_recorded_url(pages), self.relevant)

    def count_hosts(self, pages: pd.DataFrame) -> int:
        """Number of hosts with on-topic pages among ``pages``."""
        counted = harvest_pages(pages)
        return int(counted.loc[self.relevance_of(pages), "host"].nunique())

    @cached_property
    def graph(self) -> LinkGraph:
        """The link graph. Raises ConfigurationError when there is none."""
        if self._open_graph is None:
            raise ConfigurationError(
                f"{self._web.folder}: this needs the web's link graph, "
                "but the ground truth was built without one: pass graph="
            )
        return self._open_graph()

    @cached_property
    def hot_pages(self) -> frozenset[str]:
        """The relevant pages with at least the median number of in-links.

        The "hot pages" of crawl and stop with threshold (Cho, Garcia-Molina, Page, WWW 1998), with
        a threshold that halves the topic.
        """
        urls = sorted(self.relevant)
        links = self.graph.in_degrees[[self.graph.index[url] for url in urls]]
        threshold = np.median(links)
        return frozenset(url for url, count in zip(urls, links, strict=True) if count >= threshold)

    @cached_property
    def allowed_pages(self) -> NDArray[np.bool_]:
        """Which pages of the graph robots.txt and the topic's scope allow, shape (n,).

        By recorded URL; limits that depend on the crawl (depth, pages per host) are ignored.
        """
        urls = self.graph.urls
        in_scope = np.fromiter(
            (self._scope.refusal_reason(url) is None for url in urls), dtype=np.bool_
        )
        return self.graph.fetchable & in_scope

    @cached_property
    def relevant_pages(self) -> NDArray[np.bool_]:
        """Which pages of the graph are in :attr:`relevant`, shape (n,)."""
        return np.fromiter((url in self.relevant for url in self.graph.urls), dtype=np.bool_)

    def count_reachable(self, seeds: Collection[str]) -> int:
        """Number of on-topic contents that a crawl from ``seeds`` can reach, the seeds included.

        Along the graph's links, over :attr:`allowed_pages` and at most the scope's depth; a cap on
        pages per host is ignored. Links of feeds and sitemaps are not in the graph, nor are
        nofollow links and pages that robots.txt disallows, which a topic may include.
        """
        places = [self.graph.index.get(self.resolve_url(url) or "", -1) for url in seeds]
        is_seed = np.zeros(len(self.graph.urls), dtype=np.bool_)
        is_seed[[place for place in places if place >= 0]] = True
        depths = self.graph.depths(is_seed, self.allowed_pages)
        reached = depths >= 0
        if self._max_depth is not None:
            reached &= depths <= self._max_depth
        return int(np.unique(self.graph.first_duplicate[reached & self.relevant_pages]).size)

    def sample_seeds(self, on_topic: bool, count: int, rng: random.Random) -> Sequence[str]:
        """Sample seed pages. Raises ConfigurationError when there are too few."""
        urls = sorted(self.relevant if on_topic else self._irrelevant)
        if len(urls) < count:
            kind = "on" if on_topic else "off"
            raise ConfigurationError(
                f"--seeds {kind}-topic:{count}: {self._web.folder} has only {len(urls)} "
                f"labelled pages {kind} topic"
            )
        return rng.sample(urls, count)

    def _contents(self, urls: Collection[str]) -> set[int]:
        """The distinct contents of recorded pages."""
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
    """All URLs that a recorded web answers with the page of ``key``."""
    names = [key, key + INDEX_PAGE] if key.endswith("/") else [key]
    return [address for name in names for address in (name, other_scheme(name))]
