"""Keep spam, and sites without new content, from guiding the crawl or counting as harvest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from focused.classifier.topic_classifier import SwappableClassifier, spam_classifier_of
from focused.crawl.page_parser import ParsedPage
from focused.crawl.traps.trap_detector import NO_NEW_CONTENT, SPAM_SITE
from focused.spam.site_novelty import SiteNovelty
from focused.spam.site_trust import MIN_SUSPICION, SiteTrust, site_key
from focused.spam.spam_classifier import SpamEvidence
from focused.storage.tables import Tables
from focused.text.documents import HashedPage, hash_page
from focused.web.page import Classification, Page
from focused.web.urls import host_of

SPAM_THRESHOLD = 0.5
"""A page whose probability of being spam reaches this doesn't count as harvest."""
MIN_DOORWAY_WORDS = 100


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
        close_site: Callable[[str, str], bool] = lambda host, reason: False,
        trusted_urls: Collection[str] = (),
        allow_hosts: Collection[str] = (),
    ) -> None:
        """``action`` is one of :data:`focused.topic.SPAM_ACTIONS`.

        ``close_site`` receives a host of a site that is spam beyond doubt, or has no new content,
        and the reason, and returns whether it was open. The sites of ``trusted_urls`` were chosen
        by a person: their pages are no spam. The sites of ``allow_hosts`` may repeat themselves.
        """
        self._classifier = classifier
        self._is_on = action != "ignore"
        self._avoids = action == "avoid"
        self._close_site = close_site
        self._site_trust = SiteTrust(tables, trusted_urls if self._is_on else ())
        self._model: SpamEvidence | None = None
        self._closed: list[str] = []
        self._site_novelty = SiteNovelty(tables)
        self._allowed = {site_key(f"http://{host}/") for host in allow_hosts}

    def trust(self, urls: Iterable[str]) -> None:
        """Trust the sites of these URLs, too."""
        if self._is_on:
            self._site_trust.trust(urls)

    def rate(self, parsed: ParsedPage) -> Classification:
        """Return the page's classification with its probability of being spam; writes nothing."""
        found, model, url = parsed.classification, self._current_model(), parsed.page.url
        if not self._is_on:
            return found
        spam = 0.0
        if model is not None or self._site_trust.has_signs(url):
            spam = self._site_trust.spam_probability(url, parsed.spam_evidence, model)
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

    def is_original(self, url: str, other: str) -> bool:
        """Whether of two equal pages ``url`` is the original, by what is known of their sites."""
        return self._avoids and self._site_trust.is_original(url, other)

    def credits(self, page: Page, other: str) -> bool:
        """Whether a page that has text in common with ``other`` links there, as copies do.

        Originals seldom link to sites that copy from them.
        """
        if not self._avoids or self._site_trust.is_trusted(page.url):
            return False
        site = site_key(other)
        return any(site_key(link.url) == site for link in page.links if not link.nofollow)

    def learn_copy(self, url: str, original: str, *, was_new: bool) -> None:
        """Learn that a page on topic copies another site's; it ``was_new`` if that came later."""
        self._site_trust.learn_copy(url, original, was_new=was_new)
        self._close_if_spam(url)

    def learn(
        self,
        page: Page,
        evidence: float | None,
        words: HashedPage | None,
        *,
        script_target: str | None = None,
        looks_relevant: bool,
    ) -> None:
        """Learn from a page that is no duplicate, after it was rated.

        ``words`` are its hashed words, where they are known, ``script_target`` is where a script
        leads its readers at once.
        """
        url, model = page.url, self._current_model()
        if not self._is_on:
            return
        if model is not None:
            self._site_trust.learn(url, evidence, [link.url for link in page.links], model)
        if looks_relevant and (page.hides_text or _is_doorway(page, script_target)):
            self._site_trust.learn_hiding(url)
        self._close_if_spam(url)
        if self._avoids and looks_relevant and not self._may_repeat(url):
            hashed = hash_page(page) if words is None else words
            if self._site_novelty.learn(url, hashed.text) == 0.0:
                self._close_site(host_of(url), NO_NEW_CONTENT)

    def take_closed(self) -> Sequence[str]:
        """Return a URL of each site that was closed as spam since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def _close_if_spam(self, url: str) -> None:
        if not self._avoids or not self._site_trust.is_spam_site(url):
            return
        if self._close_site(host_of(url), SPAM_SITE):
            self._closed.append(url)

    def _current_model(self) -> SpamEvidence | None:
        """Return the model in use, None if the filter is off; the classifier may be swapped."""
        model = spam_classifier_of(self._classifier) if self._is_on else None
        if model is not None and model is not self._model:
            self._model = model
            self._site_trust.set_spam_sites(model.spam_sites)
        return model

    def _may_repeat(self, url: str) -> bool:
        """Whether a person named the site of ``url``."""
        return self._site_trust.is_trusted(url) or site_key(url) in self._allowed


def _is_doorway(page: Page, script_target: str | None) -> bool:
    """Whether a page with a text leads its readers to another site at once."""
    target = page.refresh or script_target
    if target is None or site_key(target) == site_key(page.url):
        return False
    # Pages of sites that moved say so in a few words.
    return len(page.text.split(maxsplit=MIN_DOORWAY_WORDS)) > MIN_DOORWAY_WORDS
