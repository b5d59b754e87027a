"""Estimate the true harvest from human labels, and warn when the classifier drifts off topic.

A crawl follows its classifier, errors included, so the harvest that the classifier counts can stay
high while the true one falls. People label a random sample of pages
(:mod:`focused.labels.label_file`); :mod:`focused.labels.precision_estimate` estimates the harvest,
stratified by the classifier's verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from focused.labels.label_file import Label, evaluation_labels, role_of
from focused.labels.precision_estimate import (
    MIN_ANSWERS,
    ShareEstimate,
    Stratum,
    estimate_share,
    estimate_stratified_share,
)

_SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ClassifierDrift:
    """The harvest according to human labels beside the classifier's own.

    ``sampled`` pages belong to the evaluation set, ``labelled`` of them have a label.
    ``harvest_by_classifier`` in [0, 1] leaves duplicates out. ``harvest`` and ``precision`` come
    from labels, None without enough of them. ``precision_by_half`` holds (good, labelled) counts of
    the pages called on topic in the first and in the second half of the crawl. ``warnings`` are
    sentences.
    """

    sampled: int
    labelled: int
    harvest_by_classifier: float
    harvest: ShareEstimate | None
    precision: ShareEstimate | None
    precision_by_half: tuple[tuple[int, int], tuple[int, int]]
    warnings: tuple[str, ...]


def measure_drift(pages: pd.DataFrame, labels: Iterable[Label]) -> ClassifierDrift | None:
    """Compare ``pages``, in the order they were settled, with ``labels``; None without classified
    pages.

    ``pages`` has the columns of :data:`focused.archive.parquet.PAGES_SCHEMA`. Training samples,
    duplicates and unclassified pages are ignored, and so are labels outside the evaluation set.
    """
    is_classified = (pages["outcome"] == "fetched") & pages["relevance"].notna()
    classified = pages[is_classified & ~pages["training"] & pages["duplicate_of"].isna()]
    if classified.empty:
        return None
    is_good = {label.url: label.verdict == "yes" for label in evaluation_labels(labels)}
    frame = pd.DataFrame(
        {
            "on_topic": classified["on_topic"].to_numpy(dtype=bool),
            "drawn": [role_of(url) == "evaluation" for url in classified["url"]],
            "good": [is_good.get(url) for url in classified["url"]],
        }
    )
    on_topic, off_topic = (
        _stratum_of(frame[frame["on_topic"]]),
        _stratum_of(frame[~frame["on_topic"]]),
    )
    middle = len(frame) // 2
    precision_by_half = _precision_counts(frame[:middle]), _precision_counts(frame[middle:])
    harvest_by_classifier = float(frame["on_topic"].mean())
    harvest = estimate_stratified_share([on_topic, off_topic])
    return ClassifierDrift(
        sampled=int(frame["drawn"].sum()),
        labelled=on_topic.drawn + off_topic.drawn,
        harvest_by_classifier=harvest_by_classifier,
        harvest=harvest,
        precision=estimate_share(on_topic),
        precision_by_half=precision_by_half,
        warnings=tuple(_warnings(harvest_by_classifier, harvest, precision_by_half)),
    )


def _stratum_of(part: pd.DataFrame) -> Stratum:
    labelled = part["good"].dropna()
    return Stratum(len(part), len(labelled), int(labelled.sum()))


def _precision_counts(part: pd.DataFrame) -> tuple[int, int]:
    called = _stratum_of(part[part["on_topic"]])
    return called.good, called.drawn


def _warnings(
    harvest_by_classifier: float,
    harvest: ShareEstimate | None,
    precision_by_half: Sequence[tuple[int, int]],
) -> Iterable[str]:
    if harvest is not None and harvest.drawn >= MIN_ANSWERS:
        if harvest_by_classifier > harvest.high:
            yield (
                f"the classifier calls {harvest_by_classifier:.0%} of the pages on topic, people "
                "at most "
                f"{harvest.high:.0%}: it accepts pages off topic"
            )
        if harvest_by_classifier < harvest.low:
            yield (
                f"the classifier calls {harvest_by_classifier:.0%} of the pages on topic, people "
                "at least "
                f"{harvest.low:.0%}: it misses pages on topic"
            )
    (early, early_of), (late, late_of) = precision_by_half
    if early_of + late_of < MIN_ANSWERS or not early_of or not late_of:
        return
    from scipy.stats import fisher_exact  # slow to import and rarely needed

    table = [[early, early_of - early], [late, late_of - late]]
    if fisher_exact(table, alternative="greater").pvalue < _SIGNIFICANCE_LEVEL:
        yield (
            f"of the pages called on topic {early}/{early_of} were on topic in the crawl's first "
            "half, "
            f"{late}/{late_of} in its second: the crawl is drifting away from the topic"
        )
