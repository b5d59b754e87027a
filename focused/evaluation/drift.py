"""Does the classifier still say what people would say? What labels tell of one crawl.

A crawl follows its classifier, so where that errs the crawl goes, too, and the harvest
that is counted by verdict stays high while the true one falls. Pages drawn by lot
(:mod:`focused.labels.roles`) and labelled by people tell the true harvest, each of the
classifier's verdicts a stratum of its own (:mod:`focused.labels.estimate`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from focused.labels.estimate import MIN_ANSWERS, Share, Stratum, share_of, total_share
from focused.labels.label import Label
from focused.labels.roles import judging, role_of

_CHANCE = 0.05


@dataclass(frozen=True, slots=True)
class Drift:
    """What people's labels say of a crawl's harvest, beside what its classifier says.

    ``set_aside`` pages were drawn for the judge, ``labelled`` of them are labelled.
    ``by_verdict`` is the harvest by the classifier in [0, 1], of the pages that repeat none;
    ``harvest`` and ``precision`` are by labels, None while they cannot be told.
    ``halves`` are the good and the labelled among pages called on topic, of the earlier and of
    the later half of the crawl. ``warnings`` are sentences.
    """

    set_aside: int
    labelled: int
    by_verdict: float
    harvest: Share | None
    precision: Share | None
    halves: tuple[tuple[int, int], tuple[int, int]]
    warnings: tuple[str, ...]


def drift_of(pages: pd.DataFrame, labels: Iterable[Label]) -> Drift | None:
    """What the labels say of ``pages``, a crawl's in the order of settling; None without pages.

    ``pages`` has the columns of :data:`focused.archive_schema.PAGES_SCHEMA`; training samples,
    duplicates and what was not judged are passed over. Only the judge's labels count.
    """
    is_judged = (pages["outcome"] == "fetched") & pages["relevance"].notna()
    judged = pages[is_judged & ~pages["training"] & pages["duplicate_of"].isna()]
    if judged.empty:
        return None
    said = {label.url: label.verdict == "yes" for label in judging(labels)}
    frame = pd.DataFrame(
        {
            "on_topic": judged["on_topic"].to_numpy(dtype=bool),
            "drawn": [role_of(url) == "judge" for url in judged["url"]],
            "good": [said.get(url) for url in judged["url"]],
        }
    )
    on_topic, off_topic = _stratum(frame[frame["on_topic"]]), _stratum(frame[~frame["on_topic"]])
    middle = len(frame) // 2
    halves = _half(frame[:middle]), _half(frame[middle:])
    by_verdict = float(frame["on_topic"].mean())
    harvest = total_share([on_topic, off_topic])
    return Drift(
        set_aside=int(frame["drawn"].sum()),
        labelled=on_topic.drawn + off_topic.drawn,
        by_verdict=by_verdict,
        harvest=harvest,
        precision=share_of(on_topic),
        halves=halves,
        warnings=tuple(_warnings(by_verdict, harvest, halves)),
    )


def _stratum(part: pd.DataFrame) -> Stratum:
    labelled = part["good"].dropna()
    return Stratum(len(part), len(labelled), int(labelled.sum()))


def _half(part: pd.DataFrame) -> tuple[int, int]:
    called = _stratum(part[part["on_topic"]])
    return called.good, called.drawn


def _warnings(
    by_verdict: float, harvest: Share | None, halves: Sequence[tuple[int, int]]
) -> Iterable[str]:
    if harvest is not None and harvest.drawn >= MIN_ANSWERS:
        if by_verdict > harvest.high:
            yield (
                f"the classifier calls {by_verdict:.0%} of the pages on topic, people at most "
                f"{harvest.high:.0%}: it takes in what is not the topic"
            )
        if by_verdict < harvest.low:
            yield (
                f"the classifier calls {by_verdict:.0%} of the pages on topic, people at least "
                f"{harvest.low:.0%}: it misses pages of the topic"
            )
    (early, early_of), (late, late_of) = halves
    if early_of + late_of < MIN_ANSWERS or not early_of or not late_of:
        return
    from scipy.stats import fisher_exact  # slow to import, and seldom asked

    table = [[early, early_of - early], [late, late_of - late]]
    if fisher_exact(table, alternative="greater").pvalue < _CHANCE:
        yield (
            f"of the pages called on topic {early}/{early_of} were so in the crawl's first half, "
            f"{late}/{late_of} in its second: the crawl is drifting away from the topic"
        )
