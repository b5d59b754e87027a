"""Features and scores of links: means of words, merging with earlier in-links, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

from librt.strings import read_f32_le


def word_features(
    counts: bytes,
    lengths: list[int],
    limits: list[int],
    mean: float,
    prior_relevance: float,
    most: float,
) -> list[float]:
    """Return the feature of each text's words in nats within ±``most``; 0 if no word is known.

    ``counts`` has two 32-bit floats per word: its observations and the sum of their relevance.
    ``lengths`` is the number of words per text, of which the first ``limits`` count; ``mean`` in
    (0, 1) the mean of all observations, of which each word has prior ones with ``prior_relevance``
    in total. The feature is the sum of the known words' log-odds relative to the mean, over the
    root of their number: words of one text repeat each other.
    """
    mean_log_odds = log(mean / (1.0 - mean))
    prior_cases = prior_relevance / mean
    features: list[float] = []
    end = 0
    for text, length in enumerate(lengths):
        total = 0.0
        known = 0
        place = end
        end += 8 * length
        for _ in range(min(length, limits[text])):
            cases = read_f32_le(counts, place)
            if cases > 0.0:
                relevance = read_f32_le(counts, place + 4)
                share = clip_mean((relevance + prior_relevance) / (cases + prior_cases))
                total += log(share / (1.0 - share)) - mean_log_odds
                known += 1
            place += 8
        feature = total / sqrt(float(max(known, 1)))
        features.append(max(-most, min(most, feature)))
    return features


def clip_mean(mean: float) -> float:
    """Clip a mean relevance away from 0 and 1."""
    return min(max(mean, 1e-4), 1.0 - 1e-4)


def merge_rows(
    rows: list[list[float]],
    queued: list[Sequence[float] | None],
    columns: tuple[int, int, int, int],
    minimum_columns: list[int],
    maximum_columns: list[int],
    max_in_links: float,
) -> list[bool]:
    """Merge each row with the features of the queued link, if there is one, in place.

    ``columns`` are those of the best and the mean parent, the number of in-links (at least 1) and
    the out-degree. Return which rows have a better parent than the queued link.
    """
    best_column, mean_column, count_column, out_degree_column = columns
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
        if not is_better:
            row[out_degree_column] = earlier[out_degree_column]
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
