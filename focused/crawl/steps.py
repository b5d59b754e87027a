"""The crawl's messages to its driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from focused.frontier.queued_link import QueuedLink
from focused.web.page import Classification, FailureKind, Link, Page

ROBOTS = "robots"
"""The purpose of requests for robots.txt."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Request ``url`` now, then settle ``lease`` with the outcome.

    ``purpose`` is that of ``link``, or :data:`ROBOTS`. ``is_page``: the page of
    ``link`` is fetched, new or again. ``headers`` make the request conditional (RFC 9110,
    section 13).
    """

    lease: int
    url: str
    purpose: str
    link: QueuedLink
    headers: Mapping[str, str] = field(default_factory=dict)
    is_page: bool = True


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request of the driver's own that was settled without a fetch.

    The driver tells the sender. ``failure`` may be that of a dead or suspended host.
    """

    link: QueuedLink
    failure: FailureKind


@dataclass(frozen=True, slots=True)
class Wait:
    """Send no request before ``until``; None: until a fetch in flight ends.

    ``hosts_backing_off`` counts hosts that fail or have a crawl-delay above an hour, if no other
    host has links; otherwise it is 0.
    """

    until: float | None
    hosts_backing_off: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The crawl is finished."""

    reason: str


Step = Fetch | RefusedRequest | Wait | Done


class ScoredLink(msgspec.Struct, frozen=True, gc=False):
    """A link of a classified page with its predicted score.

    ``rank_score`` determines the priority: the score, or an online scorer's own value. ``before``
    is the queued link, where that has more information than this one.
    """

    link: Link
    score: float
    features: tuple[float, ...]
    rank_score: float
    tag_path_key: int = 0
    before: QueuedLink | None = None


@dataclass(frozen=True, slots=True)
class SettledFetch:
    """The result of a fetch; ``page`` and ``classification`` are None when no page came.

    ``is_noindex``: the page asks not to be indexed; it guides the crawl and isn't harvest.
    ``duplicate_of`` is the original that the page duplicates, ``exact_duplicate_of`` the first page
    with the same text. ``redirect_refusal`` is why the target of a redirect was not queued.
    ``findings`` are what the page analysers of features found, by feature. ``rendered`` is the HTML
    of a page that a browser rendered.
    """

    link: QueuedLink
    outcome: str
    failure: str = ""
    will_retry: bool = False
    redirect_refusal: str = ""
    page: Page | None = None
    classification: Classification | None = None
    duplicate_of: str | None = None
    exact_duplicate_of: str | None = None
    is_noindex: bool = False
    scored: Mapping[str, ScoredLink] = field(default_factory=dict)
    findings: Mapping[str, Any] = field(default_factory=dict)
    rendered: bytes | None = None

    @property
    def new_relevance(self) -> float:
        """The new relevance in [0, 1]; 0 for failures, duplicates and unclassified pages."""
        classification = self.classification
        if classification is None or not classification.known or self.duplicate_of is not None:
            return 0.0
        return classification.guiding_relevance
