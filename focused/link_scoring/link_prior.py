"""The link prior: the apprentice's initial weights, fitted on recorded webs.

A linear model over the link features, fitted by ``training/link_prior.py`` on crawls of
labelled webs and shipped. Its card names these webs: a crawl must not be evaluated on labels
that its link scorer was fitted on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.errors import ConfigurationError
from focused.link_scoring.link_features import FEATURE_NAMES

PRIOR_FORMAT = 1
DEFAULT_PRIOR = "all-webs"
_DEFAULT_BIAS = -2.2
_PRIOR_NAME = re.compile(r"[a-z0-9-]+")


class LinkPriorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a prior file; ``weights`` by feature.

    ``scales`` are the features' standard deviations in the logged crawls; ``fitted_on`` the
    names of the webs, ``examples`` the number of links.
    """

    format: int
    fitted_on: tuple[str, ...]
    examples: int
    bias: float
    weights: dict[str, float]
    scales: dict[str, float]


@dataclass(frozen=True)
class LinkPrior:
    """A linear model in log-odds; ``weights`` and ``scales`` have shape (len(FEATURE_NAMES),)."""

    name: str
    fitted_on: tuple[str, ...]
    bias: float
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]


def list_shipped_priors() -> dict[str, Traversable]:
    """Return the shipped priors by name."""
    folder = files("focused.link_scoring").joinpath("priors")
    found = {each.name.removesuffix(".json"): each for each in folder.iterdir()}
    return {name: found[name] for name in sorted(found) if _PRIOR_NAME.fullmatch(name)}


def load_link_prior(name: str | Path = DEFAULT_PRIOR) -> LinkPrior:
    """Load a shipped prior by name, or a prior file by path; raises ConfigurationError."""
    shipped = list_shipped_priors()
    source = shipped.get(str(name)) or Path(name)
    if not source.is_file():
        raise ConfigurationError(
            f"training.link_prior: there is no prior {str(name)!r}; use the path of a file, "
            f"or one of {', '.join(shipped)}"
        )
    try:
        prior_file = msgspec.json.decode(source.read_bytes(), type=LinkPriorFile)
    except (msgspec.DecodeError, msgspec.ValidationError, OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{source}: this is not a link prior: {error}") from error
    return _validate_prior(str(name), prior_file, str(source))


def uninformed_prior(prior: LinkPrior) -> LinkPrior:
    """Return a prior with zero weights that expects one relevant page in ten."""
    return replace(prior, name="none", bias=_DEFAULT_BIAS, weights=np.zeros_like(prior.weights))


def _validate_prior(name: str, prior_file: LinkPriorFile, where: str) -> LinkPrior:
    if prior_file.format != PRIOR_FORMAT:
        raise ConfigurationError(
            f"{where}: format {prior_file.format}, but this version reads {PRIOR_FORMAT}; "
            "fit it again with training/link_prior.py"
        )
    for part, values in (("weights", prior_file.weights), ("scales", prior_file.scales)):
        mismatched = set(values) ^ set(FEATURE_NAMES)
        if mismatched:
            raise ConfigurationError(
                f"{where}: {part} do not fit this version's features "
                f"({', '.join(sorted(mismatched))}); fit it again with training/link_prior.py"
            )
    weights = np.array([prior_file.weights[each] for each in FEATURE_NAMES])
    scales = np.array([prior_file.scales[each] for each in FEATURE_NAMES])
    if not (np.isfinite(weights).all() and (scales > 0).all() and np.isfinite(prior_file.bias)):
        raise ConfigurationError(f"{where}: weights must be finite, and scales positive")
    return LinkPrior(name, prior_file.fitted_on, prior_file.bias, weights, scales)
