"""How sure a mean is: the bootstrap over topics, and over the starts within them.

Starts of one topic resemble each other, so topics are drawn first, with
replacement, then starts within each drawn topic, with replacement (Davison,
Hinkley: Bootstrap Methods and their Application, 1997, section 3.8; Field, Welsh:
Bootstrapping clustered data, 2007). Intervals hold the middle 95% of the means
so drawn. All policies are drawn together, which keeps pairs paired.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

RESAMPLES = 2000
CONFIDENCE_LEVEL = 0.95

FloatArray = NDArray[np.float64]


class Estimate(msgspec.Struct, frozen=True):
    """A mean with its 95% interval; ``low`` and ``high`` are None of a single start."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval leaves zero out; an estimate without one decides nothing."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def bootstrap_weights(
    clusters: Sequence[Hashable], rng: np.random.Generator, resamples: int = RESAMPLES
) -> FloatArray:
    """How often each start is drawn in each resample, shape (resamples, starts).

    ``clusters`` names the cluster of each start, shape (starts,). With a single
    cluster only the starts within it are drawn.
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

    None for a column without any value; no interval for one with a single value.
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


def ratio_estimate(
    weights: FloatArray, values: FloatArray, reference: FloatArray
) -> Estimate | None:
    """The ratio of two means over the starts that have both, shapes (starts,).

    None without such a start, or when the reference's mean is 0; no interval
    when the reference's drawn means come too close to 0 to bound the ratio.
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
    """The median of ``values``, shape (starts,): of an even number the lower one.

    None of no value, and where it is infinite.
    """
    values = values[~np.isnan(values)]
    if not values.size:
        return None
    return _finite(float(np.quantile(values, 0.5, method="inverted_cdf")))


def median_interval(weights: FloatArray, values: FloatArray) -> tuple[float | None, float | None]:
    """The ends of the interval of :func:`lower_median`; NaN is missing, infinity beyond all.

    Both are None of fewer than two values; an end that is infinite is None.
    """
    present = ~np.isnan(values)
    if present.sum() < 2:
        return None, None
    order = np.argsort(values[present], kind="stable")
    sums = np.cumsum(weights[:, present][:, order], axis=1)
    sums = sums[sums[:, -1] > 0]
    # The first value with half of the resample's weight at or below it
    middle = (2 * sums >= sums[:, -1:]).argmax(axis=1)
    tail = (1 - CONFIDENCE_LEVEL) / 2
    drawn = values[present][order][middle]
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    return _finite(float(low)), _finite(float(high))


def interval_bands(weights: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of the intervals of the columns' means, shapes (columns,).

    NaN for a column with fewer than two values.
    """
    estimates = mean_estimates(weights, values)
    low = [np.nan if each is None or each.low is None else each.low for each in estimates]
    high = [np.nan if each is None or each.high is None else each.high for each in estimates]
    return np.array(low), np.array(high)


def _resampled_means(weights: FloatArray, values: FloatArray) -> FloatArray:
    """The columns' means in each resample, shape (resamples, columns); NaN of none drawn."""
    present = ~np.isnan(values)
    counts = weights @ present.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(weights @ np.where(present, values, 0.0) / counts)


def _estimate(mean: float | None, drawn: FloatArray, observed: int) -> Estimate | None:
    if mean is None:
        return None
    drawn = drawn[~np.isnan(drawn)]
    if observed < 2 or not drawn.size:
        return Estimate(mean)
    tail = (1 - CONFIDENCE_LEVEL) / 2
    # No interpolation: a ratio's drawn values may be infinite
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    if not np.isfinite([low, high]).all():
        return Estimate(mean)
    return Estimate(mean, float(low), float(high))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _mean_present(values: FloatArray) -> float | None:
    return float(np.nanmean(values)) if _count_present(values) else None


def _count_present(values: FloatArray) -> int:
    return int(pd.notna(values).sum())
