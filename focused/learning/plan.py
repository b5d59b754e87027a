"""How a topic classifier is to be fitted."""

from __future__ import annotations

from dataclasses import dataclass, field

from focused.learning.thresholds import Wish


@dataclass(frozen=True, slots=True)
class Plan:
    """How to fit: what weighs the words, what the threshold is for, the prior, and the seed.

    ``prior`` in (0, 1) is the share of good pages among those to be judged;
    None takes the samples' own, held within 0.02 to 0.5. ``keywords`` are what the
    topic began with, if anything.
    """

    estimator: str
    wish: Wish = field(default_factory=Wish)
    prior: float | None = None
    seed: int = 0
    keywords: tuple[str, ...] = ()
