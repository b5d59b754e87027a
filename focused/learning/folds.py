"""Which samples are left out together in cross-validation: hosts kept whole, or single pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from focused.learning.calibration import Bools

FOLDS = 5
# Balancing sides over folds takes time by hosts; so many even out by themselves.
_MANY_HOSTS = 2_000


def host_folds(good: Bools, hosts: Sequence[str], seed: int) -> NDArray[np.intp] | None:
    """Each sample's fold, shape (n,), with hosts kept whole.

    None where that cannot be: good or other samples come from one host, or a
    fold's training part would lack a side.
    """
    names = np.array(hosts)
    sides = [len(set(names[good])), len(set(names[~good]))]
    if min(sides) < 2:
        return None
    folds = _dealt_hosts(good, names, min(FOLDS, *sides), seed)
    for fold in np.unique(folds):
        if not 0 < good[folds != fold].sum() < (folds != fold).sum():
            return None
    return folds


def _dealt_hosts(good: Bools, names: NDArray[np.str_], count: int, seed: int) -> NDArray[np.intp]:
    unique, host = np.unique(names, return_inverse=True)
    if len(unique) > _MANY_HOSTS:
        return np.asarray(np.random.default_rng(seed).permutation(len(unique))[host] % count)
    splitter = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    return _dealt(splitter.split(names, good, names), len(names))


def page_folds(good: Bools, seed: int) -> NDArray[np.intp]:
    """Each sample's fold, shape (n,), pages dealt out one by one."""
    count = int(min(FOLDS, good.sum(), (~good).sum()))
    splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    return _dealt(splitter.split(good, good), len(good))


def _dealt(splits: Iterable[tuple[object, NDArray[np.intp]]], count: int) -> NDArray[np.intp]:
    folds = np.zeros(count, dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        folds[test] = number
    return folds
