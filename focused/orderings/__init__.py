"""The orderings of a crawl: our own, best-first and breadth-first.

A policy is a function ``make_policy(inputs) -> Policy``. Live and simulated crawls use the same
:class:`focused.crawl.policy.Policy`, and no policy sees a label. Orderings of the literature are
entry points of the group ``focused.orderings``, which any distribution may have.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.errors import ConfigurationError, FocusedError
from focused.frontier.queued_link import Exploration
from focused.frontier.queued_link import breadth_first as earliest_first
from focused.installed_features import installed_parts, load_entry_point, more_from_lab
from focused.link_scoring.protocols import LinkScorer, OnlineLinkScorer, PageContext, ScoredLinks
from focused.web.page import Link


@dataclass(frozen=True, slots=True)
class PolicyInputs:
    """What a policy may use; never a label.

    ``classifier`` and ``apprentice`` are those of the live crawl. ``seed`` seeds random orders.
    ``preliminary_crawl`` crawls the same seeds with the same budget under another policy and
    returns the settled fetches in order; None in a live crawl.
    """

    classifier: TopicClassifier
    apprentice: LinkScorer
    seed: int = 0
    preliminary_crawl: Callable[[Policy], Sequence[SettledFetch]] | None = None


PolicyFactory = Callable[[PolicyInputs], Policy]
"""Creates a policy for one crawl; its state, if any, belongs to that crawl."""


ScoreFunction = Callable[[PageContext, Sequence[Link]], ArrayLike]
"""``(page context, its links) -> scores in [0, 1], shape (n,) or one for all``."""


class FunctionScorer:
    """Scores links by a function; a :class:`focused.link_scoring.protocols.LinkScorer`."""

    feature_names: tuple[str, ...] = ()

    def __init__(self, scores: ScoreFunction) -> None:
        self._scores = scores

    def score(self, page_context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page."""
        scores = np.broadcast_to(
            np.asarray(self._scores(page_context, links), dtype=np.float64), (len(links),)
        )
        return ScoredLinks(scores, np.empty((len(links), 0)))


def constant_scorer() -> FunctionScorer:
    """Score all links the same."""
    return FunctionScorer(lambda page_context, links: 0.0)


def breadth_first(inputs: PolicyInputs) -> Policy:
    """Fetch the earliest found link first, the baseline (Najork, Wiener: WWW 2001)."""
    return Policy("bfs", constant_scorer(), ordering=earliest_first, patient=False)


def best_first(inputs: PolicyInputs) -> Policy:
    """Score a link by the relevance of its page; the best of several parents counts.

    Menczer, Pant, Srinivasan: Topical Web Crawlers, ACM TOIT 4(4), 2004; soft focus of
    Chakrabarti, van den Berg, Dom 1999.
    """
    scorer = FunctionScorer(lambda page, links: page.classification.guiding_relevance)
    return Policy("best-first", scorer)


EXPLORATION = Exploration(new_host_bonus=3.0, unproductive_penalty=2.0)
"""In nats. Measured on recorded webs from seeds off topic (docs/explanation/apprentice.md)."""

WORTH_WAITING_FOR = 0.5
"""In nats: about 1.6 times the odds of being on topic."""


def make_focused_policy(inputs: PolicyInputs) -> Policy:
    """Create our own policy from the live crawl's link scorer: its highest score first.

    A custom scorer that does not learn orders by its scores, which are no nats, and without an
    exploration bonus.
    """
    if not isinstance(inputs.apprentice, OnlineLinkScorer):
        return Policy("focused", inputs.apprentice)
    return focused_policy("focused", inputs.apprentice)


def focused_policy(name: str, scorer: LinkScorer, exploration: Exploration = EXPLORATION) -> Policy:
    """Create the policy, or an ablation of it, from a scorer whose scores are nats."""
    return Policy(name, scorer, worth_waiting_for=WORTH_WAITING_FOR, exploration=exploration)


ENTRY_POINT_GROUP = "focused.orderings"

POLICIES: Mapping[str, PolicyFactory] = MappingProxyType(
    {
        "focused": make_focused_policy,
        "best-first": best_first,
        "bfs": breadth_first,
    }
)
"""The policies of the crawler. Others are entry points of installed distributions."""


def ordering_names() -> tuple[str, ...]:
    """Return the names of all policies: ours first, then those of installed distributions."""
    return tuple(dict.fromkeys((*POLICIES, *installed_parts(ENTRY_POINT_GROUP))))


def find_policy(name: str) -> PolicyFactory:
    """Return the factory of a policy.

    ``name`` is one of ours, that of an entry point, or a custom ``package.module.function``. Raises
    ConfigurationError for an unknown name.
    """
    if name in POLICIES:
        return POLICIES[name]
    if "." in name:
        return _import_policy(name)
    if (point := installed_parts(ENTRY_POINT_GROUP).get(name)) is not None:
        return partial(_make_checked_policy, load_entry_point(point), point.value)
    raise ConfigurationError(
        f"no policy is named {name!r}; there are {', '.join(ordering_names())}, "
        f"and custom ones as package.module.function{more_from_lab()}"
    )


def _import_policy(path: str) -> PolicyFactory:
    module, _, function = path.rpartition(".")
    try:
        factory: Callable[[PolicyInputs], object] = getattr(
            importlib.import_module(module), function
        )
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"the policy {path!r} cannot be imported: {error}") from error
    if not callable(factory):
        raise ConfigurationError(f"the policy {path!r} is not a function")
    return partial(_make_checked_policy, factory, path)


def _make_checked_policy(
    factory: Callable[[PolicyInputs], object], path: str, inputs: PolicyInputs
) -> Policy:
    try:
        made = factory(inputs)
    except FocusedError:
        raise
    except Exception as error:  # custom code may raise anything
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigurationError(
            f"the policy {path!r} could not be created: {type(error).__name__}: {error} "
            f"({frame.filename}, line {frame.lineno})"
        ) from error
    if not isinstance(made, Policy):
        raise ConfigurationError(
            f"the policy {path!r} is a function that returns {type(made).__name__}, "
            "not focused.crawl.policy.Policy"
        )
    return made
