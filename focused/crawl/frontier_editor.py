"""Edit the frontier of a crawl, running or stopped: add, drop, move and import links.

No host is requested. Changes are committed every 10,000 links, because a frontier may not fit into
memory; an interrupted edit has done a part, and can be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from msgspec.structs import replace

from focused.crawl.hosts.failures import DeadHosts
from focused.crawl.hosts.host_policy import host_limits
from focused.crawl.policy import LinkOrder, load_link_order
from focused.errors import ConfigurationError
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import InvalidRow, QueuedLink, link_key
from focused.storage.tables import Tables
from focused.topic import Scope
from focused.web.scope_filter import ScopeFilter
from focused.web.urls import host_of, normalize_url

_CHANGES_PER_COMMIT = 10_000
_T = TypeVar("_T")


def load_frontier(tables: Tables, scope: Scope | None) -> tuple[DiskFrontier, LinkOrder]:
    """Return the frontier of a stored crawl and the order of its links.

    Raises StateError without an order.
    """
    order = load_link_order(tables)
    limits = host_limits(scope or Scope())
    return DiskFrontier(tables, exploration=order.exploration, limits=limits), order


class AddResult(StrEnum):
    """The result of adding a URL."""

    ADDED = "added"
    ALREADY_QUEUED = "waits already"
    ALREADY_SETTLED = "fetched, failed or dropped before"
    REFUSED = "out of the topic's scope"
    DEAD_HOST = "its host is dead"
    INVALID_URL = "no URL that can be crawled"


@dataclass(frozen=True, slots=True)
class AddedUrl:
    """A URL, normalised if possible, and the result of adding it."""

    url: str
    result: AddResult
    details: str = ""


@dataclass(slots=True)
class ImportResult:
    """The results of importing a file's rows."""

    added: int = 0
    known: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    bad: int = 0


class FrontierEditor:
    """Edits the frontier of one crawl; links in flight stay as they are."""

    def __init__(
        self,
        frontier: DiskFrontier,
        order: LinkOrder,
        scope: Scope | None,
        dead_hosts: DeadHosts,
        commit: Callable[[], object],
        now: float,
        changes_per_commit: int = _CHANGES_PER_COMMIT,
    ) -> None:
        """``scope`` None accepts all URLs; ``now`` is in seconds since the epoch.

        ``commit`` saves the frontier and commits its store.
        """
        self._frontier = frontier
        self._order = order
        self._filter = ScopeFilter(scope or Scope(private_addresses=True))
        self._dead_hosts = dead_hosts
        self._commit = commit
        self._now = now
        self._changes_per_commit = changes_per_commit

    def add(
        self, urls: Iterable[str], *, score: float | None = None, again: bool = False
    ) -> Iterator[AddedUrl]:
        """Queue URLs like seeds and yield the result for each.

        ``score`` in [0, 1] determines the priority; without it they come first. ``again`` accepts
        settled URLs again and revives dead hosts. Raises ConfigurationError for a score if scores
        don't determine the crawl's order.
        """
        priority = self._top_priority() if score is None else self.priority(score)
        for text in self._committing(urls):
            url = normalize_url(text)
            if url is None:
                yield AddedUrl(text, AddResult.INVALID_URL)
                continue
            if again:
                self._dead_hosts.revive(host_of(url))
            refused = self._refusal(url, 0)
            if refused is not None:
                yield AddedUrl(url, *refused)
            else:
                yield AddedUrl(url, self._push(self._link(url, priority, score), again=again))

    def drop(self, links: Iterable[QueuedLink]) -> int:
        """Remove links without a fetch; they stay seen. Return how many."""
        return sum(self._frontier.drop(link, self._now) for link in self._committing(links))

    def move(self, links: Iterable[QueuedLink], to: Callable[[float], float]) -> int:
        """Change the priorities of links by ``to``; return how many changed.

        An online scorer computes priorities from features whenever a link is offered, so a moved
        link loses its features and keeps the new priority, like a seed. Its score stays as
        predicted.
        """
        moved = 0
        for link in self._committing(links):
            priority = to(link.priority)
            features = () if self._order.learns else link.features
            if priority == link.priority and features == link.features:
                continue
            # Queued as a new link, so it comes later in the order of discovery.
            if self._frontier.drop(link, self._now):
                self._frontier.forget(link.host, link.key)
                self._frontier.push(replace(link, priority=priority, features=features), self._now)
                moved += 1
        return moved

    def import_links(
        self,
        rows: Iterable[QueuedLink | InvalidRow],
        report_invalid: Callable[[InvalidRow], object],
    ) -> ImportResult:
        """Import the links of another frontier and return the results.

        Scope and URL-seen test apply. An already queued link keeps the higher priority. Calls
        ``report_invalid`` for invalid rows.
        """
        done = ImportResult()
        for row in self._committing(rows):
            if isinstance(row, InvalidRow):
                done.bad += 1
                report_invalid(row)
            elif refused := self._refusal(row.url, row.depth):
                done.refused[" ".join(refused)] += 1
            elif self._frontier.push(row, self._now):
                done.added += 1
            else:
                done.known += 1
        return done

    def priority(self, score: float) -> float:
        """Return the priority of a score; ConfigurationError if scores don't order."""
        priority = self._order.priority(score)
        if priority is None:
            raise ConfigurationError(
                "the policy of this crawl doesn't order by scores, so a score determines no "
                "position: change priorities with --by"
            )
        return priority

    def _refusal(self, url: str, depth: int) -> tuple[AddResult, str] | None:
        """Return why a URL is not queued, with details, or None."""
        reason = self._filter.refusal_reason(url, depth)
        if reason is not None:
            return AddResult.REFUSED, f"({reason})"
        trouble = self._dead_hosts.why(host_of(url))
        return None if trouble is None else (AddResult.DEAD_HOST, f"({trouble})")

    def _link(self, url: str, priority: float, score: float | None) -> QueuedLink:
        link_score = 1.0 if score is None else score
        return QueuedLink(
            link_key(url), url, host_of(url), priority, link_score, found_at=self._now
        )

    def _top_priority(self) -> float:
        """A priority above most queued links; where scores determine the order, a seed's."""
        seed = self._order.priority(1.0)
        if seed is not None:
            return seed
        hosts = (host for host in self._frontier.hosts if not host.best_is_exempt)
        return max((host.best for host in hosts if host.best is not None), default=0.0) + 1.0

    def _push(self, link: QueuedLink, *, again: bool) -> AddResult:
        known = self._frontier.lookup_links([(link.host, link.key)])
        if link.key in known.settled:
            if not again:
                return AddResult.ALREADY_SETTLED
            self._frontier.forget(link.host, link.key)
        elif link.key in known.waiting:
            return AddResult.ALREADY_QUEUED
        self._frontier.push(link, self._now)
        return AddResult.ADDED

    def _committing(self, each: Iterable[_T]) -> Iterator[_T]:
        """Yield the same, committing every so often and at the end."""
        for number, one in enumerate(each, start=1):
            yield one
            if number % self._changes_per_commit == 0:
                self._commit()
        self._commit()
