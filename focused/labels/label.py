"""Labels and their roles.

An honest evaluation needs pages that were drawn independently of any model and that no
model was trained on. One page in five is reserved for evaluation, by the hash of its URL;
page selection picks from the other four.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from focused.text.hash_sampling import hash_fraction

Verdict = Literal["yes", "no", "skip"]
"""On topic, off topic, or skipped."""

Role = Literal["evaluation", "training"]
"""Labels evaluate models or train them, never both."""

Reason = Literal["random", "uncertain", "doubtful", "high", "searched", "given"]
"""Why the page was shown; ``given`` for labels from outside."""


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's answer for one page, and what the model predicted.

    ``category`` is the person's category for the page, or "". ``relevance`` (0 to 1) and
    ``model`` (prefix of its digest) are those when the page was shown; None and "" without a
    model. ``at`` is in seconds since the epoch.
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
"""Share of all pages reserved for evaluation."""

_ROLE_SEED = 20  # distinct from the seeds of other samples


def evaluation_hash(url: str) -> float:
    """Return the page's position in the evaluation queue, in [0, 1): lower is shown sooner."""
    return hash_fraction(url, _ROLE_SEED)


def role_of(url: str) -> Role:
    """Return whether a label of this page evaluates or trains."""
    return "evaluation" if evaluation_hash(url) < EVALUATION_SHARE else "training"


def training_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels that models may learn from: yes or no, with role training."""
    return tuple(one for one in labels if one.role == "training" and one.verdict != "skip")


def evaluation_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels that evaluate models: yes or no, of randomly drawn pages."""
    return tuple(one for one in labels if one.role == "evaluation" and one.verdict != "skip")
