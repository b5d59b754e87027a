"""Bootstrap intervals over topics, and over the starts within them.

Starts of one topic are not independent, so topics are resampled first, then starts within each
(Davison, Hinkley: Bootstrap Methods and their Application, 1997, section 3.8; Field, Welsh:
Bootstrapping clustered data, 2007). Intervals are the middle 95% of the resampled means. All
policies share the resamples, which keeps pairs paired.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 2000
CONFIDENCE_LEVEL = 0.95

FloatArray = NDArray[np.float64]


class Estimate(msgspec.Struct, frozen=True):
    """A mean with its 95% interval; ``low`` and ``high`` are None for a single start."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and it excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def bootstrap_weights(
    clusters: Sequence[Hashable], rng: np.random.Generator, resamples: int = RESAMPLES
) -> FloatArray:
    """How often each resample draws each start, shape (resamples, starts).

    ``clusters``, shape (starts,), names each start's cluster. With a single cluster only its starts
    are resampled.
    """
    weights = np.zeros((resamples, len(clusters)))
    if not clusters:
        return weights
    names = list(dict.fromkeys(clusters))
    codes = np.array([names.index(cluster) for cluster in clusters])
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    for code in range(len(names)):
        members = np.flatnonzero(codes == code)
        even = np.full(members.size, 1 / members.size)
        weights[:, members] = rng.multinomial(times[:, code] * members.size, even)
    return weights


def mean_estimates(weights: FloatArray, values: FloatArray) -> list[Estimate | None]:
    """The mean of each column of ``values``, shape (starts, columns); NaN is missing.

    None for an empty column; no interval for a single value.
    """
    totals = _resampled_means(weights, values)
    return [
        _estimate(
            _mean_present(values[:, column]), totals[:, column], _count_present(values[:, column])
        )
        for column in range(values.shape[1])
    ]


def mean_estimate(weights: FloatArray, values: FloatArray) -> Estimate | None:
    """The mean of ``values``, shape (starts,); see :func:`mean_estimates`."""
    return mean_estimates(weights, values[:, None])[0]


def cluster_t_estimate(clusters: Sequence[Hashable], values: FloatArray) -> Estimate | None:
    """The mean of ``values``, shape (starts,), with a t interval over clusters; None if empty.

    The variance is cluster-robust (CR1), with one degree of freedom less than clusters: Cameron,
    Miller, A Practitioner's Guide to Cluster-Robust Inference, Journal of Human Resources 50, 2015,
    section VI.D. With few clusters it is wider than the bootstrap, which is too narrow there. No
    interval for a single cluster.
    """
    if not values.size:
        return None
    mean = float(values.mean())
    sums = pd.Series(values - mean).groupby(pd.factorize(pd.Series(list(clusters)))[0]).sum()
    count = len(sums)
    if count < 2:
        return Estimate(mean)
    error = float(np.sqrt(count / (count - 1) * (sums**2).sum()) / values.size)
    half = float(stats.t.ppf((1 + CONFIDENCE_LEVEL) / 2, count - 1)) * error
    return Estimate(mean, mean - half, mean + half)


def ratio_estimate(
    weights: FloatArray, values: FloatArray, reference: FloatArray
) -> Estimate | None:
    """The ratio of two means over the starts that have both, shapes (starts,).

    None without such a start or when the reference's mean is 0; no interval when resampled
    reference means come too close to 0.
    """
    paired = ~np.isnan(values) & ~np.isnan(reference)
    if not paired.any() or not reference[paired].mean():
        return None
    both = np.where(paired[:, None], np.column_stack([values, reference]), np.nan)
    drawn = _resampled_means(weights, both)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn[:, 0] / drawn[:, 1]
    ratio = float(values[paired].mean() / reference[paired].mean())
    return _estimate(ratio, ratios, int(paired.sum()))


def lower_median(values: FloatArray) -> float | None:
    """The lower median of ``values``, shape (starts,); None if empty or infinite."""
    values = values[~np.isnan(values)]
    if not values.size:
        return None
    return _finite(float(np.quantile(values, 0.5, method="inverted_cdf")))


def median_interval(weights: FloatArray, values: FloatArray) -> tuple[float | None, float | None]:
    """The interval of :func:`lower_median`; NaN is missing, infinity greater than all.

    Both ends are None for fewer than two values; an infinite end is None.
    """
    present = ~np.isnan(values)
    if present.sum() < 2:
        return None, None
    order = np.argsort(values[present], kind="stable")
    sums = np.cumsum(weights[:, present][:, order], axis=1)
    sums = sums[sums[:, -1] > 0]
    # The first value with half of the resample's weight at or below it.
    middle = (2 * sums >= sums[:, -1:]).argmax(axis=1)
    low, high = middle_part(values[present][order][middle])
    return _finite(low), _finite(high)


def interval_bands(weights: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The interval ends of the columns' means, shapes (columns,); NaN below two values."""
    estimates = mean_estimates(weights, values)
    low = [np.nan if each is None or each.low is None else each.low for each in estimates]
    high = [np.nan if each is None or each.high is None else each.high for each in estimates]
    return np.array(low), np.array(high)


def _resampled_means(weights: FloatArray, values: FloatArray) -> FloatArray:
    """The columns' means in each resample, shape (resamples, columns); NaN if none was drawn."""
    present = ~np.isnan(values)
    counts = weights @ present.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(weights @ np.where(present, values, 0.0) / counts)


def middle_part(drawn: FloatArray) -> tuple[float, float]:
    """The ends of the middle 95% of resampled figures."""
    tail = (1 - CONFIDENCE_LEVEL) / 2
    # No interpolation: resampled ratios may be infinite.
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def _estimate(mean: float | None, drawn: FloatArray, observed: int) -> Estimate | None:
    if mean is None:
        return None
    drawn = drawn[~np.isnan(drawn)]
    if observed < 2 or not drawn.size:
        return Estimate(mean)
    low, high = middle_part(drawn)
    return Estimate(mean, low, high) if np.isfinite([low, high]).all() else Estimate(mean)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _mean_present(values: FloatArray) -> float | None:
    return float(np.nanmean(values)) if _count_present(values) else None


def _count_present(values: FloatArray) -> int:
    return int(pd.notna(values).sum())
