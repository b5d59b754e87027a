"""The prior: what features has been worth on recorded webs, before a crawl teaches its own.

A linear model over the apprentice's features. It is fitted on crawls of webs
whose pages are labelled (``training/link_prior.py``) and shipped; its card
tells which webs those were, for a crawl must not be scored on labels that its
guide has seen.
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
    """A prior as its file holds it; ``weights`` by feature.

    ``scales`` are the features' standard deviations in the crawls it was
    fitted on; ``fitted_on`` the webs' names, ``examples`` how many links.
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
    """The priors that come with the library, by name."""
    folder = files("focused.link_scoring").joinpath("priors")
    found = {each.name.removesuffix(".json"): each for each in folder.iterdir()}
    return {name: found[name] for name in sorted(found) if _PRIOR_NAME.fullmatch(name)}


def load_link_prior(name: str | Path = DEFAULT_PRIOR) -> LinkPrior:
    """Load a shipped prior by name, or one's own by the path of its file.

    Raises ConfigurationError when there is none, or it cannot be used.
    """
    shipped = list_shipped_priors()
    source = shipped.get(str(name)) or Path(name)
    if not source.is_file():
        raise ConfigurationError(
            f"training.link_prior: there is no prior {str(name)!r}; give the path of a file, "
            f"or one of {', '.join(shipped)}"
        )
    try:
        kept = msgspec.json.decode(source.read_bytes(), type=LinkPriorFile)
    except (msgspec.DecodeError, msgspec.ValidationError, OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{source}: this is no link prior: {error}") from error
    return _validate_prior(str(name), kept, str(source))


def uninformed_prior(prior: LinkPrior) -> LinkPrior:
    """A prior that knows the features' scales, and that one page in ten is good: no more."""
    return replace(prior, name="none", bias=_DEFAULT_BIAS, weights=np.zeros_like(prior.weights))


def _validate_prior(name: str, kept: LinkPriorFile, where: str) -> LinkPrior:
    if kept.format != PRIOR_FORMAT:
        raise ConfigurationError(
            f"{where}: format {kept.format} is not the one this version reads ({PRIOR_FORMAT}); "
            "fit it again with training/link_prior.py"
        )
    for part, values in (("weights", kept.weights), ("scales", kept.scales)):
        odd = set(values) ^ set(FEATURE_NAMES)
        if odd:
            raise ConfigurationError(
                f"{where}: {part} do not fit this version's features "
                f"({', '.join(sorted(odd))}); fit it again with training/link_prior.py"
            )
    weights = np.array([kept.weights[each] for each in FEATURE_NAMES])
    scales = np.array([kept.scales[each] for each in FEATURE_NAMES])
    if not (np.isfinite(weights).all() and (scales > 0).all() and np.isfinite(kept.bias)):
        raise ConfigurationError(f"{where}: weights must be finite, and scales positive")
    return LinkPrior(name, kept.fitted_on, kept.bias, weights, scales)
