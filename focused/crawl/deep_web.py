"""The deep web: pages that only a search form leads to.

:class:`FormProber` finds the search form of a host that the topic names, sends one-word queries by
it, and learns which words bring new relevant pages. Only forms with the method GET are used. A
query is a link of the frontier, at the score of a seed: robots.txt, delays and budgets apply. Its
results are links of the results page like others: the link scorer decides which of them are fetched
first. The next query of a form is sent when most results of the last ones were fetched, so that
what they brought counts for its selection.

:class:`QuerySelector` is a greedy selection after Ntoulas, Zerfos and Cho (2005), "Downloading
textual hidden web content through keyword queries": words of the pages found so far are candidates,
and the word with the largest expected number of new relevant pages is next. The expectation is
learned: words are grouped by how many found pages have them (a group per power of two), the yield
of a group is the discounted mean of its queries, and an upper confidence bound lets groups be
tried. Within a group words of relevant pages come first.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from focused.crawl.features import CrawlCore, FeatureParts
from focused.crawl.listeners import SettledEvent
from focused.crawl.steps import SettledFetch
from focused.storage.tables import Tables
from focused.text.tokens import tokenize
from focused.topic import DeepWeb, covers_host
from focused.web.html.parse import needs_parser_process
from focused.web.html.search_forms import SearchForm, find_search_forms
from focused.web.page import Fetched, Page
from focused.web.urls import host_of

MAX_CANDIDATES = 4_000
MIN_WORD_CHARS = 3

_DISCOUNT = 0.9
_BONUS = 0.5


@dataclass(slots=True)
class _Word:
    """A word of the pages found: how many have it, and the sum of their relevance."""

    pages: int = 0
    relevance: float = 0.0


@dataclass(slots=True)
class _Group:
    """The queries of words with about as many pages; weights and yields are discounted."""

    weight: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class QuerySelector:
    """Proposes one-word queries; deterministic.

    ``keywords`` are the first queries. The fields are its state, plain data.
    """

    keywords: Sequence[str] = ()
    asked: dict[str, float] = field(default_factory=dict)
    """New relevance that each query brought, in the order asked."""
    words: dict[str, _Word] = field(default_factory=dict)
    groups: dict[int, _Group] = field(default_factory=dict)
    group_of: dict[str, int] = field(default_factory=dict)

    def observe(self, words: Iterable[str], relevance: float) -> None:
        """Learn the words of a page that a query found; ``relevance`` in [0, 1]."""
        for word in set(words):
            if len(word) < MIN_WORD_CHARS or not word.isalpha():
                continue
            known = self.words.get(word)
            if known is None:
                known = self.words[word] = _Word()
            known.pages += 1
            known.relevance += relevance
        if len(self.words) > MAX_CANDIDATES:
            self._forget_rare_words()

    def next_query(self) -> str | None:
        """Return the next query and count it as asked; None without candidates."""
        query = next((each for each in self.keywords if each not in self.asked), None)
        if query is None:
            query = self._best_word()
        if query is None:
            return None
        known = self.words.get(query)
        group = _group_number(known.pages) if known is not None else 0
        for each in self.groups.values():
            each.weight *= _DISCOUNT
            each.total *= _DISCOUNT
        self.groups.setdefault(group, _Group()).weight += 1.0
        self.group_of[query] = group
        self.asked[query] = 0.0
        return query

    def credit(self, query: str, relevance: float) -> None:
        """Record a new page that a query found, by its relevance in [0, 1]."""
        if query in self.asked:
            self.asked[query] += relevance
            self.groups[self.group_of[query]].total += relevance

    def last_yields(self, count: int) -> Sequence[float]:
        """Return the new relevance of the last ``count`` queries, or of fewer."""
        return list(self.asked.values())[-count:]

    def _best_word(self) -> str | None:
        expected = self._expected_yields()
        mean = self._mean_relevance()
        best, best_value = None, (-math.inf, -math.inf, "")
        for word, known in self.words.items():
            if word in self.asked:
                continue
            share = (known.relevance + mean) / (known.pages + 1.0)
            value = (expected[_group_number(known.pages)] * share, known.relevance, word)
            if value > best_value:
                best, best_value = word, value
        return best

    def _expected_yields(self) -> dict[int, float]:
        """Return the expected yield of each group of words, with its confidence bonus."""
        numbers = {_group_number(each.pages) for each in self.words.values()}
        asked = sum(each.weight for each in self.groups.values()) + 1.0
        mean = sum(each.total for each in self.groups.values()) / asked
        expected = {}
        for number in numbers:
            group = self.groups.get(number) or _Group()
            value = (group.total + mean) / (group.weight + 1.0)
            bonus = (
                _BONUS * max(mean, 1.0) * math.sqrt(math.log(asked + 1.0) / (group.weight + 1.0))
            )
            expected[number] = value + bonus
        return expected

    def _mean_relevance(self) -> float:
        pages = sum(each.pages for each in self.words.values())
        return sum(each.relevance for each in self.words.values()) / pages if pages else 0.5

    def _forget_rare_words(self) -> None:
        order = sorted(self.words, key=lambda word: (-self.words[word].relevance, word))
        self.words = {word: self.words[word] for word in order[: MAX_CANDIDATES // 2]}


def _group_number(pages: int) -> int:
    return max(1, pages).bit_length()


logger = logging.getLogger(__name__)

SEARCH_RESULTS = "search results"
"""The reason counted for links to result pages of queries, which the crawl queues itself."""

MAX_OPEN_QUERIES = 2
MAX_OPEN_RESULTS = 20

_META = "deep_web"
_RELEVANT = 0.5
_MAX_WORD_CHARS = 40


class ProbedForm(msgspec.Struct):
    """One form and what its queries brought; ``ended`` says why no more are sent."""

    form: SearchForm
    selector: QuerySelector
    pages: dict[str, int] = {}
    ended: str = ""
    open_queries: set[str] = set()
    open_results: int = 0


class FormProber:
    """Probes one form of each host; a listener of settled links. Persistent, the caller commits."""

    def __init__(
        self,
        settings: DeepWeb,
        keywords: Iterable[str],
        tables: Tables,
        enqueue: Callable[[str, float], bool],
    ) -> None:
        """``enqueue`` queues a URL like a seed, at a time; it returns whether the URL is new."""
        self._settings = settings
        words = (word for each in keywords for word in tokenize(each.replace("*", " ")))
        self._keywords = tuple(dict.fromkeys(words))
        self._tables = tables
        self._enqueue = enqueue
        stored: Any = tables.get_meta(_META) or {}
        self.forms = msgspec.convert(stored, dict[str, ProbedForm], str_keys=True)
        """The forms by the host that they send queries to."""
        for probed in self.forms.values():
            probed.open_queries, probed.open_results = set(), 0

    def on_settled(self, event: SettledEvent) -> None:
        """Learn from a settled link, and send the next query if it is time."""
        settled = event.settled
        parent = settled.link.parent
        probed = self.forms.get(settled.link.host)
        if probed is None and parent is not None:
            probed = self.forms.get(host_of(parent))
        if probed is None:
            probed = self._find_form(event)
            if probed is None:
                return
            self.forms[host_of(probed.form.action)] = probed
        if probed.ended:
            return
        if (query := probed.form.query_of(settled.link.url)) in probed.selector.asked:
            self._take_results(probed, str(query), settled, event.now)
        else:
            self._take_page(probed, settled)
        queue_is_empty = event.offer is not None and event.offer.host.best is None
        if len(probed.open_queries) < MAX_OPEN_QUERIES and (
            probed.open_results < MAX_OPEN_RESULTS or queue_is_empty
        ):
            self._ask(probed, event.now)

    def is_results_page(self, url: str) -> bool:
        """Whether a URL shows results of a query that was sent."""
        probed = self.forms.get(host_of(url))
        return probed is not None and probed.form.query_of(url) in probed.selector.asked

    def _find_form(self, event: SettledEvent) -> ProbedForm | None:
        page, outcome = event.settled.page, event.outcome
        if not covers_host(self._settings.hosts, event.settled.link.host):
            return None
        if page is None or not isinstance(outcome, Fetched) or needs_parser_process(outcome):
            return None
        for form in find_search_forms(outcome):
            host = host_of(form.action)
            if host not in self.forms and covers_host(self._settings.hosts, host):
                logger.info(
                    "found a search form on %s: %s, field %s", page.url, form.action, form.field
                )
                return ProbedForm(form, QuerySelector(self._keywords))
        return None

    def _take_results(
        self, probed: ProbedForm, query: str, settled: SettledFetch, now: float
    ) -> None:
        """Count the new results of a results page, and queue the next page of the same query."""
        probed.open_queries.discard(query)
        page = settled.page
        if page is None or settled.duplicate_of is not None:
            return
        form = probed.form
        new = [each for each in settled.scored.values() if each.before is None]
        results = sum(form.query_of(each.link.url) is None for each in new)
        probed.open_results += results
        fetched = probed.pages[query] = probed.pages.get(query, 0) + 1
        onward = form.next_page(settled.link.url, page.links)
        if results and onward and fetched < self._settings.result_pages:
            self._enqueue(onward, now)

    def _take_page(self, probed: ProbedForm, settled: SettledFetch) -> None:
        """Credit a result to its query; a page that other links led to gives words only."""
        query = probed.form.query_of(settled.link.parent or "")
        if query in probed.selector.asked:
            probed.open_results = max(0, probed.open_results - 1)
            if settled.page is not None and settled.duplicate_of is None:
                probed.selector.observe(words_of(settled.page), settled.new_relevance)
                probed.selector.credit(str(query), settled.new_relevance)
        elif settled.page is not None and not probed.selector.asked:
            probed.selector.observe(words_of(settled.page), settled.new_relevance)

    def _ask(self, probed: ProbedForm, now: float) -> None:
        """Queue the next query whose results are not known, or end if there is none.

        Before it ends, the results that are still to come may say otherwise.
        """
        selector, reason = probed.selector, self._reason_to_end(probed)
        while not reason:
            query = selector.next_query()
            if query is None:
                reason = "no word is left to ask for"
            elif (url := probed.form.url(query)) is not None and self._enqueue(url, now):
                probed.open_queries.add(query)
                break
            else:
                reason = self._reason_to_end(probed)
        if reason:
            if probed.open_queries or probed.open_results:
                return
            probed.ended = reason
            logger.info(
                "%s: %d queries brought %.0f relevant pages; %s",
                *(probed.form.action, len(selector.asked), sum(selector.asked.values()), reason),
            )
        self._tables.put_meta(_META, self.forms)

    def _reason_to_end(self, probed: ProbedForm) -> str:
        stop_after = self._settings.stop_after
        yields = probed.selector.last_yields(stop_after)
        if len(probed.selector.asked) >= self._settings.queries:
            return "the budget of queries is spent"
        if len(yields) == stop_after and max(yields) < _RELEVANT:
            return f"the last {stop_after} queries brought nothing new"
        return ""


def words_of(page: Page) -> list[str]:
    """Return the words of a page that may be queries."""
    return [word for word in tokenize(f"{page.title} {page.text}") if len(word) <= _MAX_WORD_CHARS]


def connect(core: CrawlCore) -> FeatureParts:
    """Build the prober; links to result pages are left to it."""
    if not core.follow_links:
        return FeatureParts()

    topic = core.topic
    prober = FormProber(
        topic.deep_web, topic.training.keywords, core.state.store.tables, core.enqueuer.offer_feed
    )
    core.link_filter.refusals.append(
        lambda url: SEARCH_RESULTS if prober.is_results_page(url) else None
    )
    return FeatureParts(listeners=[prober])
