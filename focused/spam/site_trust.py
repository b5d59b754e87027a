"""Site trust: the probability that a site is spam, and from it that each of its pages is.

Four observations, combined as log-odds. A new site starts with the share of spam among sites,
moved towards the sites that link to it: spammers link to each other, and good sites seldom link to
them (Gyöngyi, Garcia-Molina, Pedersen, VLDB 2004, "Combating web spam with TrustRank"). Spam links
to good sites, too, so that this fades with each page that is read, and what stays are the sites
with which a site exchanges links (Wu and Davison, WWW 2005, "Identifying link farm spam pages").
The texts of spam are either made, which the mean evidence of its pages
(:class:`~focused.spam.spam_classifier.SpamClassifier`) tells, or copied, which other sites' pages
tell: a site is as probably spam as the likelier of the two. Sites of seeds and of sample pages were
chosen by a person: they are trusted, and show how good pages score in this crawl.

Evidence is scaled so that good pages have mean 0 and made spam has mean 1.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import filterfalse

from focused.spam.spam_classifier import SpamClassifier
from focused.storage.tables import Tables
from focused.web.host_names import site_key, site_key_of_host
from focused.web.urls import host_of

SPAM_SITE_SHARE = 0.02
"""The share of spam among sites of which nothing is known yet."""
LABELLED_SITE_PROBABILITY = 0.9
"""The probability that a site is spam of which a person labelled a page so, before it is read."""
SPAM_PAGES_OF_SITES = 0.005, 0.97
"""The share of spam pages on good and on spam sites."""
MIN_PAGES_TO_CONVICT = 5
MIN_PROBABILITY_TO_CONVICT = 0.8

_GOOD_SITES_SD, _GOOD_PAGES_SD = 0.2, 0.35
_SPAM_SITES_SD, _SPAM_PAGES_SD = 0.3, 0.3
_SPAM_MEAN = 0.8
"""Of scaled evidence, between and within sites; chosen on the first topic of each of
four recorded webs, beside spam sites (by a benchmark that was removed since)."""

_BASE_SITES = 4.0
"""How many linking sites the share of spam among all sites weighs as much as."""
_PRIOR_LIMITS = 0.002, 0.8
_MAX_PAGE_LOG_ODDS = 4.0
_BASELINE_PAGES = 20.0
"""How many pages of trusted sites the mean of held-out samples weighs as much as."""
_MAX_LINKED_SITES = 20
"""Sites that one page can link to: the first ones count."""
_MAX_CACHED_PAIRS = 100_000
_MAX_CACHED_SITES = 4_096
_MAX_SOURCES = 16
"""Linking sites that are remembered: those with the smallest keys, a fixed sample of them all."""

MIN_SUSPICION = 0.1
"""The probability from which a site is suspect: most sites are new, and new sites are good."""
_COPY_LOG_ODDS, _OWN_LOG_ODDS = math.log(0.475 / 0.3), math.log(0.525 / 0.7)
"""Of a page on topic that copies another site's, and of any other page. Of a scraper's pages 95%
are copies, and of half of these the crawl knows the original; of the pages of a good site that has
copies at all, such as a mirror, 30%."""
_ORIGIN_LOG_ODDS = math.log(0.8 / 0.1)
"""Of each site after the first that a site copies from: most mirrors copy one."""
_MAX_ORIGINS = 3
"""No mirror copies so many sites; they are remembered, the first ones."""
_SCRAPED_SHARES, _COMMON_TEXT_SHARE = (0.15, 0.95), 0.02
"""Of the pages of a site with copies of three sites or more: which are known as copies on a
scraper, and which have much text in common with other sites' pages on a good site."""
_MAX_COPIES_LOG_ODDS = 8.0
_SCRAPER_SHARE = 0.5
"""The share of spam sites whose texts are copies; the texts of the others are made."""
_PARTNER_LOG_ODDS, _PAGE_WITHOUT_PARTNER_LOG_ODDS = 1.0, -0.35
_FREE_PARTNERS = 2
"""Of each site after the second with which a site exchanges links, and of each page."""
_MAX_PARTNERS_LOG_ODDS = 5.0
"""Communities of good sites exchange links, too: that alone convicts no new site."""
_MAX_PARTNERS = 0xFF
_MAX_COUNTED_SIGNS = 0xFFFF
_MAX_PAGES = 0xFFFF

_COUNTS = struct.Struct(">HHf")
_SIGNS = struct.Struct(">BB6xHH")
_SINGLE = struct.Struct(">f")
_KEY_BYTES = 8
_BASELINE_KEY = b"baseline"
_NEW_ROW = _COUNTS.pack(0, 0, 0.0)
"""Of a site of which nothing is known."""


@dataclass(slots=True)
class _SiteEvidence:
    """What is known of a site.

    The number of pages with evidence and its sum; how many have ``no_evidence``; the keys of sites
    that link here; how many pages are ``copies`` of other sites' pages, and how many of these were
    new when they were fetched; ``partners`` counts the sites with which it exchanges links;
    ``origins`` are the keys of sites that it copies from.
    """

    with_evidence: int = 0
    total: float = 0.0
    no_evidence: int = 0
    sources: tuple[bytes, ...] = ()
    copies: int = 0
    taken_over: int = 0
    partners: int = 0
    origins: tuple[bytes, ...] = ()
    _own_probability: float | None = None

    def packed(self) -> bytes:
        counted = _COUNTS.pack(self.no_evidence, self.with_evidence, self.total)
        packed = counted + b"".join(self.sources)
        if not self.has_signs:  # nearly all sites
            return packed
        signs = _SIGNS.pack(
            len(self.origins),
            min(self.partners, _MAX_PARTNERS),
            *(min(n, _MAX_COUNTED_SIGNS) for n in (self.copies, self.taken_over)),
        )
        return packed + b"".join(self.origins) + signs

    @classmethod
    def unpack(cls, raw: bytes) -> _SiteEvidence:
        has_signs = (len(raw) - _COUNTS.size) % _KEY_BYTES > 0
        end = len(raw) - (_SIGNS.size if has_signs else 0)
        layout = _counts_and_keys((end - _COUNTS.size) // _KEY_BYTES)
        no_evidence, with_evidence, total, *keys = layout.unpack_from(raw)
        origins, partners, *counts = _SIGNS.unpack_from(raw, end) if has_signs else (0, 0)
        first = len(keys) - origins
        found = cls(with_evidence, total, no_evidence, tuple(keys[:first]), *counts)
        found.origins, found.partners = tuple(keys[first:]), partners
        return found

    @property
    def has_signs(self) -> bool:
        return bool(self.copies or self.partners)

    def add_page(self, evidence: float | None) -> None:
        """Count a page, up to a number beyond which the mean of the evidence says all."""
        if evidence is None:
            self.no_evidence = min(self.no_evidence + 1, _MAX_PAGES)
        elif self.with_evidence < _MAX_PAGES:
            self.with_evidence += 1
            (self.total,) = _SINGLE.unpack(_SINGLE.pack(self.total + evidence))  # as it is stored

    @property
    def own_probability(self) -> float:
        """The probability that the site is spam, by its pages alone."""
        if self._own_probability is None:
            self._own_probability = _posterior(SPAM_SITE_SHARE, self)
        return self._own_probability

    def forget_probability(self) -> None:
        """Compute :attr:`own_probability` again, after a change."""
        self._own_probability = None

    @property
    def pages(self) -> int:
        """All pages that were read."""
        return self.with_evidence + self.no_evidence

    @property
    def own_pages(self) -> int:
        """Pages that are no copies."""
        return max(self.pages - self.taken_over, 0)

    @property
    def partners_log_odds(self) -> float:
        # Most spam sites exchange no links, so none say nothing.
        log_odds = _PARTNER_LOG_ODDS * max(self.partners - _FREE_PARTNERS, 0)
        log_odds += _PAGE_WITHOUT_PARTNER_LOG_ODDS * self.pages
        return min(max(log_odds, 0.0), _MAX_PARTNERS_LOG_ODDS)

    @property
    def copies_log_odds(self) -> float:
        """Of a scraper against a good site: a mirror, or one that has text in common by chance."""
        own, origins = self.own_pages, len(self.origins)
        if origins < _MAX_ORIGINS:
            log_odds = _COPY_LOG_ODDS * self.copies + _OWN_LOG_ODDS * own
            return log_odds + _ORIGIN_LOG_ODDS * max(origins - 1, 0)
        low, high = _SCRAPED_SHARES
        scraped = min(max(self.copies / (self.copies + own), low), high)
        log_odds = self.copies * math.log(scraped / _COMMON_TEXT_SHARE)
        log_odds += own * math.log((1.0 - scraped) / (1.0 - _COMMON_TEXT_SHARE))
        return min(log_odds, _MAX_COPIES_LOG_ODDS)

    @property
    def text_log_odds(self) -> float:
        """Of a site of made texts against a good one, by the mean evidence of its pages."""
        if not self.with_evidence:
            return 0.0
        good_sd = math.hypot(_GOOD_SITES_SD, _GOOD_PAGES_SD / math.sqrt(self.with_evidence))
        spam_sd = math.hypot(_SPAM_SITES_SD, _SPAM_PAGES_SD / math.sqrt(self.with_evidence))
        return _log_ratio(self.total / self.with_evidence, good_sd, spam_sd)


@cache
def _counts_and_keys(count: int) -> struct.Struct:
    """Return the layout of a row with so many keys."""
    return struct.Struct(_COUNTS.format + f"{_KEY_BYTES}s" * count)


class SiteTrust:
    """Rates pages by their own evidence and their site's; persistent, the caller commits.

    A site is a registered domain, with a row of at most 172 bytes. A page writes the row of its own
    site, and those of sites that its site did not link to before, at most 20.
    """

    def __init__(self, tables: Tables, trusted_urls: Collection[str] = ()) -> None:
        """Pages of ``trusted_urls`` were chosen by a person."""
        self._sites = _SiteTable(tables)
        self._trusted = {site_key(url) for url in trusted_urls}
        self._labelled_spam: frozenset[bytes] = frozenset()
        self._baseline = self._sites.get(_BASELINE_KEY)
        self._linked: set[tuple[bytes, bytes]] = set()  # pairs of sites that were looked up

    def trust(self, urls: Iterable[str]) -> None:
        """Trust the sites of these URLs, too."""
        self._trusted.update(map(site_key, urls))

    def set_spam_sites(self, sites: Iterable[str]) -> None:
        """Suspect these registered domains instead of others; they are not trusted."""
        self._labelled_spam = frozenset(map(site_key_of_host, sites))

    def is_trusted(self, url: str) -> bool:
        """Whether a person chose the site of ``url``."""
        return self._is_trusted(site_key(url))

    def spam_probability(
        self, url: str, evidence: float | None, classifier: SpamClassifier | None
    ) -> float:
        """Return the probability in [0, 1] that a page is spam; writes nothing."""
        of_site = self.site_probability(url)
        if not of_site:
            return 0.0
        on_good, on_spam = SPAM_PAGES_OF_SITES
        prior = of_site * on_spam + (1.0 - of_site) * on_good
        if evidence is None or classifier is None:
            return prior
        scaled = self._scaled(evidence, classifier)
        ratio = _log_ratio(scaled, _GOOD_PAGES_SD, _SPAM_PAGES_SD)
        limited = min(max(ratio, -_MAX_PAGE_LOG_ODDS), _MAX_PAGE_LOG_ODDS)
        return _probability(_log_odds(prior) + limited)

    def site_probability(self, url: str) -> float:
        """Return the probability in [0, 1] that the site of ``url`` is spam; 0 if trusted."""
        key = site_key(url)
        return 0.0 if self._is_trusted(key) else self._site_probability(key, self._sites.get(key))

    def _site_probability(self, key: bytes, found: _SiteEvidence) -> float:
        if key in self._labelled_spam:
            return _posterior(LABELLED_SITE_PROBABILITY, found)
        of_sources = self._sum_of_probabilities(found.sources)
        # Spam links to good sites, too; those that it exchanges links with are counted apart.
        weight = 1.0 / (1 + found.pages)
        linked = (_BASE_SITES * SPAM_SITE_SHARE + weight * of_sources) / (
            _BASE_SITES + weight * len(found.sources)
        )
        least, most = _PRIOR_LIMITS
        return _posterior(min(max(linked, least), most), found)

    def is_spam_site(self, url: str) -> bool:
        """Whether the site of ``url`` is spam beyond doubt, after several pages."""
        key = site_key(url)
        if self._is_trusted(key):
            return False
        found = self._sites.get(key)
        if found.own_pages + found.copies < MIN_PAGES_TO_CONVICT:
            return False
        # Most sites are acquitted by their own evidence, whoever links to them.
        if _posterior(LABELLED_SITE_PROBABILITY, found) < MIN_PROBABILITY_TO_CONVICT:
            return False
        return self._site_probability(key, found) >= MIN_PROBABILITY_TO_CONVICT

    def learn(
        self,
        url: str,
        evidence: float | None,
        linked_urls: Iterable[str],
        classifier: SpamClassifier,
    ) -> None:
        """Add a page to its site, and its site to the sources of those it links to.

        ``evidence`` is None for a page whose text was not rated.
        """
        key = site_key(url)
        own, is_trusted = self._sites.get(key), self._is_trusted(key)
        changed = {key: own}
        own.add_page(None if evidence is None else self._scaled(evidence, classifier))
        if evidence is not None and is_trusted:
            self._baseline.add_page(evidence)
            changed[_BASELINE_KEY] = self._baseline
        hosts = dict.fromkeys(map(host_of, linked_urls))
        linked_keys = dict.fromkeys(map(site_key_of_host, hosts))
        linked_keys.pop(key, None)
        if len(self._linked) > _MAX_CACHED_PAIRS:
            self._linked.clear()
        pairs = [(key, linked_key) for linked_key in list(linked_keys)[:_MAX_LINKED_SITES]]
        new = [linked_key for _, linked_key in filterfalse(self._linked.__contains__, pairs)]
        self._linked.update(pairs)
        for linked_key in new:
            linked = self._sites.get(linked_key)
            if key in linked.sources:
                continue
            sources = tuple(sorted((*linked.sources, key))[:_MAX_SOURCES])
            exchanges = linked_key in own.sources
            if exchanges and not is_trusted | self._is_trusted(linked_key):
                linked.partners += 1
                own.partners += 1
            if exchanges or sources != linked.sources:
                linked.sources = sources
                changed[linked_key] = linked
        self._sites.save(changed)

    def has_signs(self, url: str) -> bool:
        """Whether anything but text and links was learned of the site of ``url``."""
        return self._sites.get(site_key(url)).has_signs

    def is_original(self, url: str, other: str) -> bool:
        """Whether evidence says that of two equal pages ``url`` is the original.

        Its site is trusted and the other is not, or the other's alone is suspect. Which of the two
        came first says nothing.
        """
        key, other_key = site_key(url), site_key(other)
        if key == other_key or self._is_trusted(other_key):
            return False
        if self._is_trusted(key):
            return True
        return self.site_probability(url) < MIN_SUSPICION <= self.site_probability(other)

    def learn_copy(self, url: str, original: str, *, was_new: bool) -> None:
        """Learn that a page on topic is a copy of an ``original`` on another site.

        It ``was_new`` if the original came later.
        """
        key = site_key(url)
        found = self._sites.get(key)
        found.copies += 1
        found.taken_over += was_new
        origin = site_key(original)
        if origin not in found.origins and len(found.origins) < _MAX_ORIGINS:
            found.origins = (*found.origins, origin)
        self._sites.save({key: found})

    def _sum_of_probabilities(self, keys: Sequence[bytes]) -> float:
        """Return the sum of what labels and their own pages tell of several sites."""
        total = 0.0
        for key in keys:
            if key in self._labelled_spam:
                total += _posterior(LABELLED_SITE_PROBABILITY, self._sites.get(key))
            elif key not in self._trusted:
                total += self._sites.get(key).own_probability
        return total

    def _is_trusted(self, key: bytes) -> bool:
        return key in self._trusted and key not in self._labelled_spam

    def _scaled(self, evidence: float, classifier: SpamClassifier) -> float:
        baseline = self._baseline
        good_mean = (_BASELINE_PAGES * classifier.good_mean + baseline.total) / (
            _BASELINE_PAGES + baseline.with_evidence
        )
        return (evidence - good_mean) / (classifier.spam_mean - classifier.good_mean)


class _SiteTable:
    """The evidence of sites in the state, and that of the last sites in memory."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._recent: dict[bytes, _SiteEvidence] = {}

    def get(self, key: bytes) -> _SiteEvidence:
        """Return the evidence of a site; pass it to :meth:`save` after a change."""
        found = self._recent.get(key)
        if found is None:
            found = _SiteEvidence.unpack(self._tables.get("site_trust", key) or _NEW_ROW)
            self._keep(key, found)
        return found

    def save(self, changed: Mapping[bytes, _SiteEvidence]) -> None:
        """Write the evidence of sites by key."""
        self._tables.put_many("site_trust", [(key, each.packed()) for key, each in changed.items()])
        for key, each in changed.items():
            each.forget_probability()
            self._keep(key, each)

    def _keep(self, key: bytes, found: _SiteEvidence) -> None:
        if len(self._recent) >= _MAX_CACHED_SITES:
            self._recent.clear()
        self._recent[key] = found


def _posterior(prior: float, found: _SiteEvidence) -> float:
    """Return a site's probability of being spam: of made texts, or of copied ones, or of neither.

    Each kind has evidence of its own: the text of a copy is that of its original.
    """
    texts, copies = found.text_log_odds, found.copies_log_odds
    made = (1.0 - _SCRAPER_SHARE) * math.exp(min(texts, 30.0))
    copied = _SCRAPER_SHARE * math.exp(copies)
    log_odds = found.partners_log_odds + math.log(made + copied)
    return _probability(_log_odds(prior) + log_odds) if log_odds else prior


def _log_ratio(scaled: float, good_sd: float, spam_sd: float) -> float:
    """Return the log-likelihood ratio of spam against good; values beyond a mean count as it."""
    of_good = max(scaled, 0.0) / good_sd
    of_spam = min(scaled - _SPAM_MEAN, 0.0) / spam_sd
    return 0.5 * (of_good * of_good - of_spam * of_spam) + math.log(good_sd / spam_sd)


def _log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


def _probability(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -30.0), 30.0)))
