"""Which pages of a first crawl, steered by keywords alone, are taken for samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from focused.labels.roles import role_of
from focused.web.page import Page

MAX_GOOD = 60
MAX_OTHER = 180
_FAR_OFF = 0.05
"""Pages below this relevance speak of other things."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """Pages with the relevance that the keywords give them, in [0, 1], most telling first.

    ``seeds`` are those that speak of a keyword at all: others are hubs, perhaps.
    """

    seeds: tuple[Page, ...]
    good: tuple[tuple[Page, float], ...]
    other: tuple[tuple[Page, float], ...]


def propose(
    judged: Iterable[tuple[Page, float]], seeds: Collection[str], threshold: float
) -> Proposals:
    """Those from ``threshold`` on as good, those far below as other; ``seeds`` are URLs.

    Of the pages found none is proposed that is the judge's (:mod:`focused.labels.roles`):
    a model that has learned from it cannot be measured by it.
    """
    ranked = sorted(judged, key=lambda each: (-each[1], each[0].url))
    found = [
        each for each in ranked if each[0].url not in seeds and role_of(each[0].url) == "teach"
    ]
    good = [each for each in found if each[1] >= threshold]
    other = [each for each in reversed(found) if each[1] < min(_FAR_OFF, threshold)]
    return Proposals(
        seeds=tuple(page for page, relevance in ranked if page.url in seeds and relevance > 0.0),
        good=tuple(good[:MAX_GOOD]),
        other=tuple(other[:MAX_OTHER]),
    )
