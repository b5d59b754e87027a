"""Which pages of a first crawl, steered by keywords alone, are taken for samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import ceil

from focused.labels.roles import role_of
from focused.web.page import Page

MAX_GOOD = 60
MAX_OTHER = 180

# Of the pages found, the shares that are proposed: few good ones, for half of the next best are
# wrong, and many others, for neighbours tell more than the general background. Measured on ten
# topics that benchmarks/topic_from_keywords.py does not have; flat from an eighth to a third.
_GOOD_SHARE, _OTHER_SHARE = 0.2, 0.5
_LEAST_GOOD = 12  # of a small crawl more than a fifth
_SURELY_GOOD = 0.5
"""From this relevance on no page is proposed as an other, be all pages better."""


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
    """The best of those from ``threshold`` on as good, the worst as other; ``seeds`` are URLs.

    Around a good seed nearly all pages have a keyword; those with the fewest are others
    nevertheless, so that the classifier learns to tell the topic from its neighbours. None of
    the pages found is proposed that is the judge's (:mod:`focused.labels.roles`):
    a model that has learned from it cannot be measured by it.
    """
    ranked = sorted(judged, key=lambda each: (-each[1], each[0].url))
    found = [
        each for each in ranked if each[0].url not in seeds and role_of(each[0].url) == "teach"
    ]
    most_good = max(ceil(_GOOD_SHARE * len(found)), _LEAST_GOOD)
    most_other = ceil(_OTHER_SHARE * len(found))
    good = [each for each in found if each[1] >= threshold][:most_good]
    rest = found[len(good) :]
    other = [each for each in reversed(rest) if each[1] < _SURELY_GOOD][:most_other]
    return Proposals(
        seeds=tuple(page for page, relevance in ranked if page.url in seeds and relevance > 0.0),
        good=tuple(good[:MAX_GOOD]),
        other=tuple(other[:MAX_OTHER]),
    )
