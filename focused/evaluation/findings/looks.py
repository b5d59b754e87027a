"""How a policy is drawn, the same in every picture and table."""

from __future__ import annotations

from collections.abc import Sequence

from focused.evaluation.drawing import INK, PALETTE, REST, Look
from focused.evaluation.findings.grid import BASELINE, ORACLES, OURS

_OURS, _BASELINE, *_OTHERS = PALETTE


def looks(policies: Sequence[str]) -> dict[str, Look]:
    """A look for each of ``policies``, which come best first.

    Ours, breadth-first and the best others have a colour, six in all; oracles
    are dashed and dotted; the rest is grey.
    """
    chosen = {OURS: _OURS, BASELINE: _BASELINE}
    others = [name for name in policies if name not in ORACLES and name not in chosen]
    others.sort(key=lambda name: name.startswith(f"{OURS}-"))  # ablations: where colours remain
    chosen |= dict(zip(others, _OTHERS, strict=False))
    styles = dict(zip(ORACLES, (":", "--", "-."), strict=True))
    return {
        name: Look(INK, styles[name], 1.6, True)
        if name in styles
        else Look(chosen[name], "-", 2.4 if name == OURS else 1.8, True)
        if name in chosen
        else Look(REST, "-", 0.8, False)
        for name in policies
    }
