"""Format figures for tables and sentences; a dash means not measured."""

from __future__ import annotations

from collections.abc import Callable

from focused_lab.analysis.inference import Estimate

NONE, NEVER = "–", "never"


def share(value: float | None) -> str:
    """A share in [0, 1]: ``33.2%``."""
    return NONE if value is None else f"{value:.1%}"


def format_bare_share(value: float | None) -> str:
    """A share in per cent without the sign, for narrow columns: ``33.2``."""
    return NONE if value is None else f"{100 * value:.1f}"


def format_number(value: float | None, digits: int = 0) -> str:
    """``1,234``, or with so many digits after the point."""
    return NONE if value is None else f"{value:,.{digits}f}"


def format_points(value: float) -> str:
    """A difference of shares in percentage points, signed: ``+21.0``."""
    return format_signed(100 * value, 1)


def format_signed(value: float, digits: int) -> str:
    """A difference: ``+0.711``, ``−0.711``."""
    return f"{value:+.{digits}f}".replace("-", "−")


def format_mean_share(estimate: Estimate | None) -> str:
    """``33.2%``."""
    return NONE if estimate is None else share(estimate.mean)


def format_mean_number(estimate: Estimate | None, digits: int = 2) -> str:
    """``2.73``."""
    return NONE if estimate is None else format_number(estimate.mean, digits)


def _interval(estimate: Estimate | None, between: str, format_end: Callable[[float], str]) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return NONE
    return format_end(estimate.low) + between + format_end(estimate.high)


def format_share_interval(estimate: Estimate | None) -> str:
    """``27.4–39.0``, in per cent."""
    return _interval(estimate, "–", format_bare_share)


def format_points_interval(estimate: Estimate | None) -> str:
    """``+17.4 to +24.7``, in percentage points."""
    return _interval(estimate, " to ", format_points)


def format_signed_interval(estimate: Estimate | None, digits: int) -> str:
    """``+0.174 to +0.247``."""
    return _interval(estimate, " to ", lambda end: format_signed(end, digits))


def format_marked_points(estimate: Estimate) -> str:
    """``+21.0``, with ``?`` where the interval holds zero or there is none."""
    return format_points(estimate.mean) + ("  " if estimate.excludes_zero else " ?")


def format_median_pages(median: float | None, starts: int) -> str:
    """A median number of pages: ``84``, or ``never`` if half of the runs never got there."""
    return (NEVER if starts else NONE) if median is None else format_number(median)


def format_median_share(median: float | None, starts: int) -> str:
    """A median of shares: ``31%``, or ``never``."""
    return (NEVER if starts else NONE) if median is None else f"{median:.0%}"


def format_pages_interval(low: float | None, high: float | None) -> str:
    """``70–120``, ``70–never``; a dash where there is no interval."""
    return _format_median_interval(low, high, format_number)


def format_median_share_interval(low: float | None, high: float | None) -> str:
    """Shares in per cent: ``31–45``, ``31–never``; a dash where there is no interval."""
    return _format_median_interval(low, high, lambda share: f"{100 * share:.0f}")


def _format_median_interval(
    low: float | None, high: float | None, format_end: Callable[[float], str]
) -> str:
    if low is None:
        return NONE
    return f"{format_end(low)}–{NEVER if high is None else format_end(high)}"


def format_count(count: int, thing: str) -> str:
    """``1 topic``, ``12 topics``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def format_host_cap(cap: int | None) -> str:
    """A host cap: ``300``, or ``none``."""
    return "none" if cap is None else f"{cap:,}"


def format_p_value(p: float) -> str:
    """``p = 0.031``, ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
