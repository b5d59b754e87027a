"""The referee: what a page was worth, by the labels of its web alone.

Knows the labels, and which pages the guide was trained on; neither reaches
what guides a crawl (but an oracle, which says so). Training pages never
count, under whatever address the web answers with them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.evaluation.metrics import harvest_pages, label_verdicts, relevant_urls
from focused.recorded.addresses import INDEX_FILE, other_scheme
from focused.recorded.store import RecordedWeb
from focused.web.page import Redirected
from focused.web.response import outcome_of

_MAX_REDIRECTS = 10


class Referee:
    """Judges crawls of one topic on one recorded web.

    ``relevant`` are the recorded pages with a good label that are no training
    pages; ``training_urls`` all addresses of those.
    """

    def __init__(self, web: RecordedWeb, good: Collection[str], sample_urls: Collection[str]):
        """Raises ConfigurationError when no page of the web is on topic."""
        self._web = web
        self._ends: dict[str, str | None] = {}
        self._samples = {end for url in sample_urls if (end := self.end_of(url)) is not None}
        self.training_urls = frozenset(sample_urls) | frozenset(
            address for url in self._samples for address in _addresses(url)
        )
        pages = frozenset(web.page_urls)
        labelled = pages & web.labels.keys() - self._samples
        self.relevant = relevant_urls(web.labels, good) & labelled
        self._irrelevant = labelled - self.relevant
        self.countable = len(pages - self._samples)
        if not self.relevant:
            raise ConfigurationError(
                f"training.good ({', '.join(good)}): {web.folder} has no page with such a label "
                "that is no training page, so nothing can be found there; "
                "see 'focused web info' for its categories"
            )

    def end_of(self, url: str) -> str | None:
        """The recorded page that a request for ``url`` ends at, redirects followed, or None."""
        if url not in self._ends:
            self._ends[url] = self._follow(url)
        return self._ends[url]

    def is_relevant(self, url: str) -> bool:
        """Whether fetching ``url`` brings a page that counts as on topic."""
        return self.end_of(url) in self.relevant

    def verdicts(self, pages: pd.DataFrame) -> NDArray[np.bool_]:
        """On topic or not, for each page that counts, in order; content counts once."""
        return label_verdicts(self._by_recorded_url(pages), self.relevant)

    def hosts(self, pages: pd.DataFrame) -> int:
        """On how many hosts on-topic pages were found."""
        counted = harvest_pages(pages)
        return int(counted.loc[self.verdicts(pages), "host"].nunique())

    def draw_seeds(self, on_topic: bool, count: int, rng: random.Random) -> Sequence[str]:
        """Draw pages to start from. Raises ConfigurationError when there are too few."""
        urls = sorted(self.relevant if on_topic else self._irrelevant)
        if len(urls) < count:
            kind = "on" if on_topic else "off"
            raise ConfigurationError(
                f"--seeds {kind}-topic:{count}: {self._web.folder} has only {len(urls)} "
                f"labelled pages {kind} topic"
            )
        return rng.sample(urls, count)

    def _by_recorded_url(self, pages: pd.DataFrame) -> pd.DataFrame:
        return pages.assign(
            url=pages["url"].map(lambda url: self._web.find(url) or url),
            duplicate_of=pages["duplicate_of"].map(
                lambda url: self._web.find(url) or url, na_action="ignore"
            ),
        )

    def _follow(self, url: str) -> str | None:
        for _ in range(_MAX_REDIRECTS + 1):
            found = self._web.find(url)
            if found is None or not 300 <= (self._web.status(found) or 0) < 400:
                return found if found is not None and self._web.status(found) == 200 else None
            response = self._web.get(found)
            if response is None:
                return None
            outcome = outcome_of(response.status, response.headers, url, b"", 0.0, 0.0)
            if not isinstance(outcome, Redirected):
                return None
            url = outcome.target
        return None


def _addresses(key: str) -> list[str]:
    """All that a recorded web answers with the page of ``key``."""
    names = [key, key + INDEX_FILE] if key.endswith("/") else [key]
    return [address for name in names for address in (name, other_scheme(name))]
