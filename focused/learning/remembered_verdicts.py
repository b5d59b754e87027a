"""What a judge said of short texts: a site repeats its menus on each page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

MAX_REMEMBERED = 40_000
"""Texts, some 200 bytes each; beyond it all are forgotten."""

Floats = NDArray[np.float64]


class RememberedVerdicts:
    """Asks about each text once, for judges that take their time."""

    def __init__(self, ask: Callable[[Sequence[str]], Floats], most: int = MAX_REMEMBERED) -> None:
        """``ask`` gives verdicts of n texts, shape (n,), each by its text alone."""
        self._ask = ask
        self._most = most
        self._known: dict[str, float] = {}

    def of(self, texts: Sequence[str]) -> Floats:
        """The verdicts of texts, shape (n,)."""
        known = self._known
        if len(known) > self._most:
            known.clear()
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, self._ask(new).tolist(), strict=True))
        return np.fromiter(map(known.__getitem__, texts), np.float64, len(texts))
