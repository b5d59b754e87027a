"""Ablations of the focused ordering: without a family of features, a way of learning or exploring.

A topic file names one as ``focused-without-NAME``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.frontier.queued_link import NO_EXPLORATION
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import LinkPrior, uninformed_prior
from focused.link_scoring.link_features import FEATURE_FAMILIES
from focused.orderings import PolicyInputs, focused_policy


def without_family(inputs: PolicyInputs, *, family: str) -> Policy:
    """Give a family of features no weight."""
    scorer = _apprentice(inputs, without=FEATURE_FAMILIES[family])
    return focused_policy(f"focused-without-{family}", scorer)


def without_prior(inputs: PolicyInputs) -> Policy:
    """Start with all weights at zero."""
    prior = uninformed_prior(_prior(inputs))
    return focused_policy("focused-without-prior", Apprentice(inputs.classifier, prior))


def without_learning(inputs: PolicyInputs) -> Policy:
    """Keep the prior's weights; neighbouring links are still learned."""
    return focused_policy("focused-without-learning", _apprentice(inputs, learns=False))


def without_tunnelling(inputs: PolicyInputs) -> Policy:
    """Don't prefer pages near a host's root while little is found."""
    return focused_policy("focused-without-tunnelling", _apprentice(inputs, depth_penalty=0.0))


def without_meaning_discount(inputs: PolicyInputs) -> Policy:
    """Rank links lower for a meaning unlike the topic's from the first page on, on any site."""
    scorer = _apprentice(inputs, discounts_meaning=False)
    return focused_policy("focused-without-meaning-discount", scorer)


def without_exploration(inputs: PolicyInputs) -> Policy:
    """Rank hosts by their best link, without an exploration bonus."""
    scorer = _apprentice(inputs)
    return focused_policy("focused-without-exploration", scorer, exploration=NO_EXPLORATION)


without_parents = partial(without_family, family="parents")
without_text = partial(without_family, family="text")
without_url = partial(without_family, family="url")
without_meaning = partial(without_family, family="meaning")
without_places = partial(without_family, family="places")


def _apprentice(inputs: PolicyInputs, **options: Any) -> Apprentice:
    """A new apprentice with the live crawl's classifier and prior."""
    return Apprentice(inputs.classifier, _prior(inputs), **options)


def _prior(inputs: PolicyInputs) -> LinkPrior:
    """The live crawl's prior. Raises ConfigurationError when a custom scorer is used.

    A substitute would not know which prior the topic asks for.
    """
    if isinstance(inputs.apprentice, Apprentice):
        return inputs.apprentice.prior
    raise ConfigurationError(
        "focused-without-... are ablations of the built-in apprentice, but "
        f"{type(inputs.apprentice).__name__} scores this crawl's links: choose another policy"
    )
