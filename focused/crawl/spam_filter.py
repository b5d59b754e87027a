"""Keep spam, copies, and sites without new content, from guiding the crawl or counting as harvest.

Of two sites with the same text one may have copied it. The page that was fetched first keeps its
place, until what is known of the sites (:mod:`focused.spam.site_trust`) says that it is the copy:
:class:`CopiedPages` changes the archive then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from focused.classifier.topic_classifier import SwappableClassifier, TopicClassifier
from focused.crawl.archive_writer import ArchiveWriter
from focused.crawl.classified_page import ClassifiedPage, PageColumn
from focused.crawl.crawl_stats import Counters
from focused.crawl.dedup.duplicates import DuplicateDetector, DuplicateMatch
from focused.crawl.listeners import SettledEvent
from focused.crawl.page_parser import ParsedPage
from focused.crawl.traps.trap_detector import NO_NEW_CONTENT, SPAM_SITE
from focused.frontier.queued_link import link_key
from focused.spam.site_novelty import SiteNovelty
from focused.spam.site_trust import MIN_SUSPICION, SiteTrust
from focused.spam.spam_classifier import SpamClassifier
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.text.documents import hash_page
from focused.web.host_names import site_key
from focused.web.page import Classification, Page
from focused.web.urls import host_of

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts

EVIDENCE = "spam_evidence"
"""The finding of :func:`rate_text`."""
SPAM_THRESHOLD = 0.5
"""A page whose probability of being spam reaches this doesn't count as harvest."""


def spam_classifier_of(classifier: TopicClassifier) -> SpamClassifier | None:
    """Return the spam classifier that belongs to a topic classifier, or None.

    An object of another class needs its ``evidence``, means and ``spam_sites``.
    """
    if isinstance(classifier, SwappableClassifier):
        classifier = classifier.current
    found: SpamClassifier | None = getattr(classifier, "spam", None)
    return found if hasattr(found, "evidence") else None


def rate_text(
    page: Page, classification: Classification, classifier: TopicClassifier
) -> float | None:
    """Return log-odds that a page's text is spam; None if unknown, or if it is far off topic.

    The spam of the training is about the topic.
    """
    if not classification.is_near_topic:
        return None
    model = spam_classifier_of(classifier)
    return None if model is None else model.evidence(page)


class SpamFilter:
    """Rates pages by text and site; persistent, the caller commits.

    Pages without evidence are rated by their site alone. The classifier may be swapped.
    """

    def __init__(
        self,
        site_trust: SiteTrust,
        site_novelty: SiteNovelty,
        copies: CopiedPages,
        classifier: SwappableClassifier,
        counters: Counters,
        *,
        avoids: bool,
        close_site: Callable[[str, str], bool] = lambda host, reason: False,
        allow_hosts: Collection[str] = (),
    ) -> None:
        """With ``avoids`` False the probability of spam changes nothing.

        ``close_site`` receives a host of a site that is spam beyond doubt, or has no new content,
        and the reason, and returns whether it was open. The sites of ``allow_hosts`` may repeat
        themselves.
        """
        self._site_trust = site_trust
        self._site_novelty = site_novelty
        self._copies = copies
        self._classifier = classifier
        self._counters = counters
        self._avoids = avoids
        self._close_site = close_site
        self._model: SpamClassifier | None = None
        self._closed: list[str] = []
        self._allowed = {site_key(f"http://{host}/") for host in allow_hosts}

    def trust(self, urls: Iterable[str]) -> None:
        """Trust the sites of these URLs, too."""
        self._site_trust.trust(urls)

    def review(self, parsed: ParsedPage, found: Classification) -> Classification:
        """Return the page's classification with its probability of being spam; writes nothing.

        Pages far off topic are not rated.
        """
        if not found.is_near_topic:
            return found
        model, url = self._current_model(), parsed.page.url
        spam = 0.0
        if model is not None or self._site_trust.has_signs(url):
            spam = self._site_trust.spam_probability(url, parsed.findings[EVIDENCE], model)
        if not self._avoids:
            return replace(found, spam=spam)
        worth = 1.0 if spam < MIN_SUSPICION else 1.0 - spam
        if found.on_topic and not self._may_repeat(url):
            worth *= self._site_novelty.novelty(url)
        if worth == 1.0:
            return replace(found, spam=spam)
        return replace(
            found,
            spam=spam,
            untempered=found.guiding_relevance * worth,
            on_topic=found.on_topic and spam < SPAM_THRESHOLD,
        )

    def is_original(self, url: str, content: DuplicateMatch) -> bool:
        """Whether a page takes the place of the one that it duplicates, by their sites."""
        if content.of is None or not self._avoids or not self._copies.may_replace(content):
            return False
        return self._site_trust.is_original(url, content.of)

    def learn(self, classified: ClassifiedPage, number: int, *, is_harvest: bool) -> None:
        """Learn from a page after it was rated."""
        self._counters.count("spam", int(classified.classification.spam >= SPAM_THRESHOLD))
        if not classified.feed and classified.duplicate_of is None:
            self._learn_page(classified)
        if self._avoids:
            for copy in self._copies.learn(classified, number, is_harvest=is_harvest):
                self._close_if_spam(copy)

    def on_settled(self, event: SettledEvent) -> None:
        """Count pages that were refused as duplicates of sites that are closed as spam now."""
        closed, self._closed = self._closed, []
        for site in closed:
            self._copies.reinstate(site)

    def _learn_page(self, classified: ClassifiedPage) -> None:
        page, model = classified.page, self._current_model()
        url = page.url
        if model is not None:
            links = page.links if classified.parsed.classification.is_near_topic else ()
            evidence = classified.findings[EVIDENCE]
            self._site_trust.learn(url, evidence, [link.url for link in links], model)
        self._close_if_spam(url)
        if self._avoids and classified.looks_relevant and not self._may_repeat(url):
            hashed = classified.parsed.words or hash_page(page)
            if self._site_novelty.learn(url, hashed.text) == 0.0:
                self._close_site(host_of(url), NO_NEW_CONTENT)

    def _close_if_spam(self, url: str) -> None:
        if not self._avoids or not self._site_trust.is_spam_site(url):
            return
        if self._close_site(host_of(url), SPAM_SITE):
            self._closed.append(url)

    def _current_model(self) -> SpamClassifier | None:
        """Return the model in use; the classifier may be swapped."""
        model = spam_classifier_of(self._classifier)
        if model is not None and model is not self._model:
            self._model = model
            self._site_trust.set_spam_sites(model.spam_sites)
        return model

    def _may_repeat(self, url: str) -> bool:
        """Whether a person named the site of ``url``."""
        return self._site_trust.is_trusted(url) or site_key(url) in self._allowed


def connect(core: CrawlCore) -> FeatureParts:
    """Build the filter, which reviews each page by what is known of its site."""
    # Parser processes import this module for its functions, and nothing of a crawl's wiring.
    from focused.crawl.features import FeatureParts

    topic, tables = core.topic, core.state.store.tables
    site_trust = SiteTrust(tables, core.training_urls)
    spam_filter = SpamFilter(
        site_trust,
        SiteNovelty(tables),
        CopiedPages(
            tables,
            core.responses.duplicates,
            core.responses.rows,
            site_trust,
            may_replace=not topic.revisit.continuous,
        ),
        core.classifier,
        core.state.counters,
        avoids=topic.scope.spam == "avoid",
        close_site=core.traps.close_site,
        allow_hosts=topic.scope.allow_hosts,
    )
    core.columns.append(
        PageColumn("spam", "number", lambda page: None if page.feed else page.classification.spam)
    )
    core.page_raters[EVIDENCE] = rate_text
    core.page_reviewers.append(spam_filter)
    return FeatureParts(first_listeners=[spam_filter])


_TABLE = "copied_pages"
_MAX_REFUSED = 200
"""Refused pages that are stored for each site."""
_ROW_NUMBER = struct.Struct(">I")


class CopiedPages:
    """The harvested pages that a better copy would replace; persistent, the caller commits."""

    def __init__(
        self,
        tables: Tables,
        duplicates: DuplicateDetector,
        rows: ArchiveWriter,
        site_trust: SiteTrust,
        *,
        may_replace: bool,
    ) -> None:
        """With ``may_replace`` False the first page keeps its place.

        So it does in continuous crawls, which visit it again.
        """
        self._tables = tables
        self._duplicates = duplicates
        self._rows = rows
        self._site_trust = site_trust
        self._replaces = may_replace

    def may_replace(self, match: DuplicateMatch) -> bool:
        """Whether a page could take the place of the one that it duplicates."""
        return self._replaces and self._duplicates.can_replace(match)

    def learn(self, classified: ClassifiedPage, number: int, *, is_harvest: bool) -> Iterator[str]:
        """Learn which of two equal pages is a copy, and take its harvest away if it came first.

        ``number`` is that of the row of ``classified``. Yields the URL of each copy.
        """
        content, url = classified.content, classified.page.url
        if is_harvest:
            self._keep_row(url, number)
        if content is None or not classified.looks_relevant or classified.is_noindex:
            return
        if content.replaces is not None:
            earlier = self._harvested_row(content.replaces)
            if earlier is not None:
                self._rows.replaced(earlier, url)
            yield self._learn_copy(content.replaces, url, was_new=True)
        elif content.of is not None and self._site_trust.is_original(content.of, url):
            yield self._learn_copy(url, content.of, was_new=False)
        elif self.may_replace(content) and classified.classification.on_topic:
            self._keep_refused(content, url, number)
        # Copies with advertisements, or their originals.
        for other in self._duplicates.common_text(content):
            if self._site_trust.is_original(url, other):
                yield self._learn_copy(other, url, was_new=True)
            elif self._site_trust.is_original(other, url) or self._credits(classified.page, other):
                yield self._learn_copy(url, other, was_new=True)

    def reinstate(self, site: str) -> None:
        """Count pages that were refused as duplicates of a site's, in place of these.

        ``site`` is the URL of one of its pages.
        """
        done = set()
        for number, url, of in self._refused_for(site):
            if of not in done and self._rows.reinstated(number):
                done.add(of)
                earlier = self._harvested_row(of)
                if earlier is not None:
                    self._rows.replaced(earlier, url)
                self._duplicates.replace_original(of, url)
                self._keep_row(url, number)

    def _learn_copy(self, url: str, original: str, *, was_new: bool) -> str:
        self._site_trust.learn_copy(url, original, was_new=was_new)
        return url

    def _credits(self, page: Page, other: str) -> bool:
        """Whether a page that has text in common with ``other`` links there, as copies do.

        Originals seldom link to sites that copy from them.
        """
        if self._site_trust.is_trusted(page.url):
            return False
        site = site_key(other)
        return any(site_key(link.url) == site for link in page.links if not link.nofollow)

    def _keep_row(self, url: str, number: int) -> None:
        self._tables.put(_TABLE, _row_key(url), _ROW_NUMBER.pack(number))

    def _harvested_row(self, url: str) -> int | None:
        """Return the number of a page's row, or None if the page did not count as harvest."""
        number = self._tables.get(_TABLE, _row_key(url))
        return None if number is None else int(_ROW_NUMBER.unpack(number)[0])

    def _keep_refused(self, match: DuplicateMatch, url: str, number: int) -> None:
        """Store that a page on topic, row ``number``, does not count because of another site's."""
        if match.of is None or site_key(match.of) == site_key(url):
            return
        refused = [*self._refused_for(match.of), (number, url, match.of)]
        self._tables.put(_TABLE, _refused_key(match.of), pack(refused[:_MAX_REFUSED]))

    def _refused_for(self, url: str) -> list[tuple[int, str, str]]:
        """Return rows and URLs of pages refused for the site of ``url``, and its own pages."""
        raw = self._tables.get(_TABLE, _refused_key(url))
        return [] if raw is None else [tuple(each) for each in unpack(raw)]


def _refused_key(url: str) -> bytes:
    """Return the key of the refused pages of a site; longer than those of rows."""
    return b"refused for " + site_key(url)


def _row_key(url: str) -> bytes:
    """Return the key of a row's number."""
    return b"row" + link_key(url)[:8]
