"""Options of a changing web: its period, and how its hosts answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from focused.durations import YEAR_S
from focused.errors import ConfigurationError
from focused.text import hash_fraction
from focused_lab.changing_web.assigned_changes import ReplayPeriod

DEFAULT_START = 1_704_067_200.0
"""2024-01-01T00:00:00Z."""

MAX_YEARS = 100

HostValidators = Literal["strong", "weak", "date", "none"]


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """How a changing web behaves; all numbers but the first three are shares in [0, 1].

    ``start`` is in seconds since the epoch; the histories end ``years`` later. ``sitemaps`` and
    ``feeds`` are shares of hosts. Half of these hosts announce all their changes, the others
    ``announced`` of them. ``noise`` is the share of hosts whose pages contain the date, a counter
    and a rotating navigation.
    """

    seed: int = 0
    start: float = DEFAULT_START
    years: float = 1.0
    sitemaps: float = 0.5
    feeds: float = 0.25
    announced: float = 0.5
    noise: float = 0.25

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a value that is out of range."""
        shares = (self.sitemaps, self.feeds, self.announced, self.noise)
        if not all(0 <= share <= 1 for share in shares):
            raise ConfigurationError(f"shares must be between 0 and 1: {self}")
        if not 0 < self.years <= MAX_YEARS:
            raise ConfigurationError(f"years must be above 0 and at most {MAX_YEARS}: {self.years}")

    @property
    def period(self) -> ReplayPeriod:
        """The time from the start to the end of the histories."""
        return ReplayPeriod(self.start, self.start + self.years * YEAR_S)


@dataclass(frozen=True, slots=True)
class HostBehaviour:
    """How one host answers.

    ``validators``: a strong or weak ETag with Last-Modified, Last-Modified alone (``date``), or
    none. ``announced`` is the share of changes in sitemap and feed.
    """

    validators: HostValidators
    gone_status: int
    has_sitemap: bool
    has_feed: bool
    announced: float
    has_noise: bool


def host_behaviour(host: str, options: ChangeOptions) -> HostBehaviour:
    """Draw how a host answers; depends only on the host and the options."""

    def draw(what: str) -> float:
        return hash_fraction(f"{host} {what}", options.seed)

    has_noise = draw("noise") < options.noise
    kinds: Sequence[HostValidators] = ("strong", "strong", "weak", "date", "none")
    if has_noise:
        # The bytes of the pages differ each time.
        kinds = ("weak", "none")
    return HostBehaviour(
        validators=kinds[int(draw("validators") * len(kinds))],
        gone_status=404 if draw("gone") < 0.5 else 410,
        has_sitemap=draw("sitemap") < options.sitemaps,
        has_feed=draw("feed") < options.feeds,
        announced=1.0 if draw("announced") < 0.5 else options.announced,
        has_noise=has_noise,
    )


def is_announced(url: str, number: int, share: float, seed: int) -> bool:
    """Whether the sitemap and feed of a host announce a page's event; numbers are from 0 on.

    ``share`` is that of the host's announced changes.
    """
    return hash_fraction(f"{url} announced {number}", seed) < share
