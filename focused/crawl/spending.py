"""When the budget is spent: whichever limit is reached first."""

from __future__ import annotations

from focused.topic import Budget


def spent(budget: Budget, *, pages: int, bytes_: int, active_s: float) -> str | None:
    """Name the limit that is reached, or None. ``pages`` counts those under way, too."""
    if budget.pages is not None and pages >= budget.pages:
        return "page budget spent"
    if budget.bytes is not None and bytes_ >= budget.bytes:
        return "byte budget spent"
    if budget.hours is not None and active_s >= budget.hours * 3600:
        return "time budget spent"
    return None
