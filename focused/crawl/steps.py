"""What the crawl asks of its driver, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from focused.frontier.queued_link import QueuedLink
from focused.text.documents import HashedPage
from focused.web.page import Classification, FailureKind, Link, Page


class FetchPurpose(StrEnum):
    """What a fetch is for."""

    PAGE = "page"
    ROBOTS = "robots"


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask for ``url`` now; settle ``lease`` with what came."""

    lease: int
    url: str
    purpose: FetchPurpose
    link: QueuedLink


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A driver's own request is settled without a fetch: the driver tells whoever made it.

    ``failure`` is why: of the host, where that was given up or is suspended.
    """

    link: QueuedLink
    failure: FailureKind


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may be asked before ``until``; None: only when a fetch under way ends.

    ``hosts_backing_off`` hosts fail, or ask for a crawl-delay above an hour, where none but those have links
    left; 0 where others have.
    """

    until: float | None
    hosts_backing_off: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The crawl is over."""

    reason: str


Step = Fetch | RefusedRequest | Wait | Done


class ScoredLink(msgspec.Struct, frozen=True, gc=False):
    """A link of a judged page with the apprentice's prediction for it.

    ``rank_score`` is what orders: the score, or what a scorer that learns says.
    ``before`` is the link as it waits, where it does and told more than this one.
    """

    link: Link
    score: float
    features: tuple[float, ...]
    rank_score: float
    tag_path_key: int = 0
    before: QueuedLink | None = None


@dataclass(frozen=True, slots=True)
class SettledFetch:
    """What became of a fetch. ``page`` and ``classification`` are there when a page came.

    A page that is ``left_out`` asked not to be indexed: it guides the crawl and is no harvest.
    ``duplicate_of`` is the page that it repeats, itself no copy; ``exact_duplicate_of`` the first one, copy or
    not, that it repeats word for word. ``words`` are the page's, where they were hashed.
    ``redirect_refusal`` is why the target of a redirect was not queued.
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
    left_out: bool = False
    scored: Mapping[str, ScoredLink] = field(default_factory=dict)
    words: HashedPage | None = None

    @property
    def brought(self) -> float:
        """The relevance that came, in [0, 1]; failures, copies, what none could classifier bring 0."""
        judged = self.classification
        if judged is None or not judged.known or self.duplicate_of is not None:
            return 0.0
        return judged.relevance
