"""Rate each fetched page for spam, and keep spam from guiding the crawl or counting as harvest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from focused.classifier.topic_classifier import SwappableClassifier, spam_classifier_of
from focused.crawl.page_parser import ParsedPage
from focused.spam.site_trust import SiteTrust
from focused.spam.spam_classifier import SpamEvidence
from focused.storage.tables import Tables
from focused.web.page import Classification
from focused.web.urls import host_of

SPAM_THRESHOLD = 0.5
"""A page whose probability of being spam reaches this doesn't count as harvest."""
_MIN_SUSPICION = 0.1
"""Below it relevance is not discounted: most sites are new, and new sites are good."""


class SpamFilter:
    """Rates pages by text and site; persistent, the caller commits.

    Off without a spam classifier in the topic model. The classifier may be swapped.
    """

    def __init__(
        self,
        tables: Tables,
        classifier: SwappableClassifier,
        *,
        action: str,
        close_site: Callable[[str], object] = lambda host: None,
        trusted_urls: Collection[str] = (),
    ) -> None:
        """``action`` is one of :data:`focused.topic.SPAM_ACTIONS`.

        ``close_site`` receives the host of a site that is spam beyond doubt. The sites of
        ``trusted_urls`` were chosen by a person: their pages are no spam.
        """
        self._classifier = classifier
        self._is_on = action != "ignore"
        self._avoids = action == "avoid"
        self._close_site = close_site
        self._site_trust = SiteTrust(tables, trusted_urls if self._is_on else ())
        self._model: SpamEvidence | None = None

    def trust(self, urls: Iterable[str]) -> None:
        """Trust the sites of these URLs, too."""
        if self._is_on:
            self._site_trust.trust(urls)

    def rate(self, parsed: ParsedPage) -> Classification:
        """Return the page's classification with its probability of being spam; writes nothing."""
        found, model = parsed.classification, self._current_model()
        if model is None:
            return found
        spam = self._site_trust.spam_probability(parsed.page.url, parsed.spam_evidence, model)
        if not self._avoids or spam < _MIN_SUSPICION:
            return replace(found, spam=spam)
        return replace(
            found,
            spam=spam,
            untempered=found.guiding_relevance * (1.0 - spam),
            on_topic=found.on_topic and spam < SPAM_THRESHOLD,
        )

    def learn(self, url: str, evidence: float | None, linked_urls: Iterable[str]) -> None:
        """Learn from a page that is no duplicate, after it was rated."""
        model = self._current_model()
        if model is not None:
            self._site_trust.learn(url, evidence, linked_urls, model)
            if self._avoids and self._site_trust.is_spam_site(url):
                self._close_site(host_of(url))

    def _current_model(self) -> SpamEvidence | None:
        """Return the model in use, None if the filter is off; the classifier may be swapped."""
        model = spam_classifier_of(self._classifier) if self._is_on else None
        if model is not None and model is not self._model:
            self._model = model
            self._site_trust.set_spam_sites(model.spam_sites)
        return model
