"""One person's word on one page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from focused.text.hash_sampling import hash_fraction

Verdict = Literal["yes", "no", "skip"]
"""On topic, off topic, or left open."""

Role = Literal["evaluation", "training"]
"""What a label may be used for: to measure models, or to teach them; never both."""

Reason = Literal["random", "uncertain", "doubtful", "high", "searched", "given"]
"""Why the page was shown; ``given`` are labels that no choice of ours asked for."""


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody said of a page, and what the model had said of it.

    ``category`` is where the person put the page, as in the directory, or empty.
    ``relevance`` (0 to 1) and ``model`` (the beginning of its digest) are those of the
    moment the page was shown; None and empty when no model had judged it. ``at`` is in
    seconds since the epoch.
    """

    url: Annotated[str, msgspec.Meta(min_length=1)]
    verdict: Verdict
    role: Role
    at: float
    category: str = ""
    reason: Reason = "given"
    relevance: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    model: str = ""
    title: str = ""


EVALUATION_SHARE = 0.2
"""Of all pages, the share that is the evaluation set's."""

_ROLE_SEED = 20  # any number that no other lot uses


def evaluation_hash(url: str) -> float:
    """The page's place in the evaluation set's queue, in [0, 1): the lower, the sooner it is shown."""
    return hash_fraction(url, _ROLE_SEED)


def role_of(url: str) -> Role:
    """Whether a label of this page judges or teaches."""
    return "evaluation" if evaluation_hash(url) < EVALUATION_SHARE else "training"


def training_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The labels that models may learn from: said yes or no, and never the evaluation set's."""
    return tuple(one for one in labels if one.role == "training" and one.verdict != "skip")


def evaluation_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The labels that models are measured by: said yes or no of pages drawn at random."""
    return tuple(one for one in labels if one.role == "evaluation" and one.verdict != "skip")
