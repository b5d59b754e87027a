"""Our own: the apprentice's prediction, most promising first, as the live crawl has it.

Its ablations leave out a family of evidence, or one of the ways in which it
learns and explores.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.frontier.exploration import NONE, Exploration
from focused.learning.apprentice import Apprentice
from focused.learning.link_prior import without_experience
from focused.learning.protocols import LearningScorer, LinkScorer
from focused.policies.policy import Aids, PolicyMaker

EXPLORATION = Exploration(unknown=3.0, dry=2.0)
"""In nats. Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md)."""

WORTH_WAITING_FOR = 0.5
"""In nats: half as likely again to be on topic."""

FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "parents": ("parent", "parents", "in_links", "since"),
        "text": ("anchor", "context"),
        "url": ("url",),
        "crawl-words": ("anchor_words", "url_words", "page_words", "context_words"),
        "places": ("siblings", "tag_path"),
        "shape": ("out_degree", "navigation"),
    }
)
"""Features of :mod:`focused.learning.evidence` that tell of the same thing."""


def policy(aids: Aids) -> Policy:
    """Make the policy from the live crawl's own link scorer.

    A user's own that does not learn orders by its scores, which are no nats:
    nothing is added for hosts that are little known.
    """
    if not isinstance(aids.apprentice, LearningScorer):
        return Policy("focused", aids.apprentice)
    return _policy("focused", aids.apprentice)


def without_family(aids: Aids, *, family: str) -> Policy:
    """A family of evidence is given no weight."""
    scorer = _apprentice_of(aids).variant(without=FAMILIES[family])
    return _policy(f"focused-without-{family}", scorer)


def without_prior(aids: Aids) -> Policy:
    """All weights start at zero: what the crawl does not teach, nobody knows."""
    apprentice = _apprentice_of(aids)
    scorer = apprentice.variant(prior=without_experience(apprentice.prior))
    return _policy("focused-without-prior", scorer)


def without_learning(aids: Aids) -> Policy:
    """The prior's weights stay as they are; words and places are still learned."""
    return _policy("focused-without-learning", _apprentice_of(aids).variant(learns=False))


def without_tunnelling(aids: Aids) -> Policy:
    """A crawl that has found little does not prefer the pages near a host's root."""
    return _policy("focused-without-tunnelling", _apprentice_of(aids).variant(rootward=0.0))


def without_exploration(aids: Aids) -> Policy:
    """A host is worth what its best link is, be it little known or dry."""
    return _policy("focused-without-exploration", _apprentice_of(aids).variant(), exploration=NONE)


ABLATIONS: Mapping[str, PolicyMaker] = MappingProxyType(
    {
        **{
            f"focused-without-{family}": partial(without_family, family=family)
            for family in FAMILIES
        },
        "focused-without-prior": without_prior,
        "focused-without-learning": without_learning,
        "focused-without-tunnelling": without_tunnelling,
        "focused-without-exploration": without_exploration,
    }
)


def _policy(name: str, scorer: LinkScorer, exploration: Exploration = EXPLORATION) -> Policy:
    return Policy(name, scorer, worth_waiting_for=WORTH_WAITING_FOR, exploration=exploration)


def _apprentice_of(aids: Aids) -> Apprentice:
    """The live crawl's apprentice. Raises ConfigurationError when a user's own scorer guides.

    One of ours in its stead would not know which prior the topic asks for.
    """
    if isinstance(aids.apprentice, Apprentice):
        return aids.apprentice
    raise ConfigurationError(
        "focused-without-... take the built-in apprentice apart, but "
        f"{type(aids.apprentice).__name__} scores this crawl's links: choose another policy"
    )
