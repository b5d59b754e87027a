"""Features and scores of links: merging with earlier in-links, prediction, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log


def merge_rows(
    rows: list[list[float]],
    queued: list[Sequence[float] | None],
    columns: tuple[int, int, int],
    minimum_columns: list[int],
    maximum_columns: list[int],
    max_in_links: float,
) -> list[bool]:
    """Merge each row with the features of the queued link, if there is one, in place.

    ``columns`` are those of the best and the mean parent, and of the number of in-links (at least
    1). Return which rows have a better parent than the queued link.
    """
    best_column, mean_column, count_column = columns
    is_best: list[bool] = []
    for i, row in enumerate(rows):
        earlier = queued[i]
        if earlier is None:
            is_best.append(True)
            continue
        is_better = row[best_column] > earlier[best_column]
        is_best.append(is_better)
        count = earlier[count_column] + 1.0
        if count > max_in_links and not is_better:
            rows[i] = list(earlier)
            continue
        for column in minimum_columns:
            row[column] = min(row[column], earlier[column])
        for column in maximum_columns:
            row[column] = max(row[column], earlier[column])
        mean = earlier[mean_column]
        row[mean_column] = mean + (row[mean_column] - mean) / count
        row[count_column] = min(count, max_in_links)
    return is_best


def predict(
    rows: list[list[float]],
    levels: list[int],
    weights: list[float],
    bias: float,
    most: float,
    depth_penalty: float,
    discounted: list[int],
    discount: float,
) -> tuple[list[float], list[float]]:
    """Return a score in (0, 1) and a rank score per row of features.

    The score is the probability of the log-odds ``weights`` · row + ``bias``, within ±``most``; of
    a row that has no number, that of ``bias``. The rank score is the log-odds less
    ``depth_penalty`` per level; of values below 0 in the ``discounted`` columns only
    1 - ``discount`` counts in it.
    """
    scores: list[float] = []
    rank_scores: list[float] = []
    for i, row in enumerate(rows):
        log_odds = bias
        for column, weight in enumerate(weights):
            log_odds += weight * row[column]
        is_number = log_odds == log_odds
        log_odds = max(-most, min(most, log_odds if is_number else bias))
        rank_score = log_odds - depth_penalty * levels[i]
        if is_number:
            for column in discounted:
                rank_score -= discount * min(row[column], 0.0) * weights[column]
        scores.append(1.0 / (1.0 + exp(-log_odds)))
        rank_scores.append(rank_score)
    return scores, rank_scores


def recalibrate(
    scores: list[float], slope: float, intercept: float, least_score: float
) -> list[float]:
    """Return the probabilities of log-odds ``slope`` · logit(score) + ``intercept``.

    Scores in [0, 1] are clipped to ``least_score`` from both ends.
    """
    calibrated: list[float] = []
    for score in scores:
        clipped = min(max(score, least_score), 1.0 - least_score)
        log_odds = intercept + slope * log(clipped / (1.0 - clipped))
        calibrated.append(1.0 / (1.0 + exp(-log_odds)))
    return calibrated
