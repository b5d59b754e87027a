"""Ablations of the focused ordering: without a family of features, a way of learning or exploring.

A topic file names one as ``focused-without-NAME``.
"""

from __future__ import annotations

from functools import partial

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.frontier.queued_link import NO_EXPLORATION
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import uninformed_prior
from focused.link_scoring.link_features import FEATURE_FAMILIES
from focused.orderings import PolicyInputs, focused_policy


def without_family(inputs: PolicyInputs, *, family: str) -> Policy:
    """Give a family of features no weight."""
    scorer = _built_in_apprentice(inputs).variant(without=FEATURE_FAMILIES[family])
    return focused_policy(f"focused-without-{family}", scorer)


def without_prior(inputs: PolicyInputs) -> Policy:
    """Start with all weights at zero."""
    apprentice = _built_in_apprentice(inputs)
    scorer = apprentice.variant(prior=uninformed_prior(apprentice.prior))
    return focused_policy("focused-without-prior", scorer)


def without_learning(inputs: PolicyInputs) -> Policy:
    """Keep the prior's weights; words and neighbouring links are still learned."""
    return focused_policy(
        "focused-without-learning", _built_in_apprentice(inputs).variant(learns=False)
    )


def without_tunnelling(inputs: PolicyInputs) -> Policy:
    """Don't prefer pages near a host's root while little is found."""
    return focused_policy(
        "focused-without-tunnelling", _built_in_apprentice(inputs).variant(depth_penalty=0.0)
    )


def without_meaning_discount(inputs: PolicyInputs) -> Policy:
    """Rank links lower for a meaning unlike the topic's from the first page on, on any site."""
    return focused_policy(
        "focused-without-meaning-discount",
        _built_in_apprentice(inputs).variant(discounts_meaning=False),
    )


def without_exploration(inputs: PolicyInputs) -> Policy:
    """Rank hosts by their best link, without an exploration bonus."""
    return focused_policy(
        "focused-without-exploration",
        _built_in_apprentice(inputs).variant(),
        exploration=NO_EXPLORATION,
    )


without_parents = partial(without_family, family="parents")
without_text = partial(without_family, family="text")
without_url = partial(without_family, family="url")
without_meaning = partial(without_family, family="meaning")
without_crawl_words = partial(without_family, family="crawl-words")
without_places = partial(without_family, family="places")
without_shape = partial(without_family, family="shape")


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
