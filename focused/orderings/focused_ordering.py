"""Our own policy, that of the live crawl: highest score of the apprentice first.

Its ablations leave out a family of features, or a way of learning or exploring.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.frontier.priorities import NO_EXPLORATION, Exploration
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import uninformed_prior
from focused.link_scoring.protocols import LinkScorer, OnlineLinkScorer
from focused.orderings.base import PolicyFactory, PolicyInputs

EXPLORATION = Exploration(new_host_bonus=3.0, unproductive_penalty=2.0)
"""In nats. Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md)."""

WORTH_WAITING_FOR = 0.5
"""In nats: about 1.6 times the odds of being on topic."""

FEATURE_FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "parents": ("parent", "parents", "in_links", "since"),
        "text": ("anchor", "context"),
        "url": ("url",),
        "meaning": ("anchor_meaning", "context_meaning", "url_meaning"),
        "crawl-words": ("anchor_words", "url_words", "page_words", "context_words"),
        "places": ("siblings", "tag_path"),
        "shape": ("out_degree", "navigation"),
    }
)
"""Features of :mod:`focused.link_scoring.link_features` with the same kind of information."""


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy from the live crawl's link scorer.

    A custom scorer that does not learn orders by its scores, which are no nats, and without an
    exploration bonus.
    """
    if not isinstance(inputs.apprentice, OnlineLinkScorer):
        return Policy("focused", inputs.apprentice)
    return _focused_policy("focused", inputs.apprentice)


def without_family(inputs: PolicyInputs, *, family: str) -> Policy:
    """Give a family of features no weight."""
    scorer = _built_in_apprentice(inputs).variant(without=FEATURE_FAMILIES[family])
    return _focused_policy(f"focused-without-{family}", scorer)


def without_prior(inputs: PolicyInputs) -> Policy:
    """Start with all weights at zero."""
    apprentice = _built_in_apprentice(inputs)
    scorer = apprentice.variant(prior=uninformed_prior(apprentice.prior))
    return _focused_policy("focused-without-prior", scorer)


def without_learning(inputs: PolicyInputs) -> Policy:
    """Keep the prior's weights; words and neighbouring links are still learned."""
    return _focused_policy(
        "focused-without-learning", _built_in_apprentice(inputs).variant(learns=False)
    )


def without_tunnelling(inputs: PolicyInputs) -> Policy:
    """Don't prefer pages near a host's root while little is found."""
    return _focused_policy(
        "focused-without-tunnelling", _built_in_apprentice(inputs).variant(depth_penalty=0.0)
    )


def without_meaning_discount(inputs: PolicyInputs) -> Policy:
    """Rank links lower for a meaning unlike the topic's from the first page on, on any site."""
    return _focused_policy(
        "focused-without-meaning-discount",
        _built_in_apprentice(inputs).variant(discounts_meaning=False),
    )


def without_exploration(inputs: PolicyInputs) -> Policy:
    """Rank hosts by their best link, without an exploration bonus."""
    return _focused_policy(
        "focused-without-exploration",
        _built_in_apprentice(inputs).variant(),
        exploration=NO_EXPLORATION,
    )


ABLATIONS: Mapping[str, PolicyFactory] = MappingProxyType(
    {
        **{
            f"focused-without-{family}": partial(without_family, family=family)
            for family in FEATURE_FAMILIES
        },
        "focused-without-prior": without_prior,
        "focused-without-learning": without_learning,
        "focused-without-tunnelling": without_tunnelling,
        "focused-without-meaning-discount": without_meaning_discount,
        "focused-without-exploration": without_exploration,
    }
)


def _focused_policy(
    name: str, scorer: LinkScorer, exploration: Exploration = EXPLORATION
) -> Policy:
    return Policy(name, scorer, worth_waiting_for=WORTH_WAITING_FOR, exploration=exploration)


def _built_in_apprentice(inputs: PolicyInputs) -> Apprentice:
    """The live crawl's apprentice. Raises ConfigurationError when a custom scorer is used.

    A substitute would not know which prior the topic asks for.
    """
    if isinstance(inputs.apprentice, Apprentice):
        return inputs.apprentice
    raise ConfigurationError(
        "focused-without-... are ablations of the built-in apprentice, but "
        f"{type(inputs.apprentice).__name__} scores this crawl's links: choose another policy"
    )
