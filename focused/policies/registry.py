"""The policies by name."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError, FocusedError
from focused.policies import (
    ache,
    anchor,
    apprenticed,
    backlink,
    best_first,
    breadth_first,
    combined,
    depth_first,
    fish,
    larger_sites,
    opic,
    pagerank,
    random_order,
    shark,
    tag_path,
    two_phase,
)
from focused.policies.policy import Aids, PolicyMaker

POLICIES: Mapping[str, PolicyMaker] = MappingProxyType(
    {
        "focused": apprenticed.policy,
        "best-first": best_first.policy,
        "anchor": anchor.policy,
        "shark": shark.policy,
        "fish": fish.policy,
        "combined": combined.policy,
        "backlink": backlink.policy,
        "pagerank": pagerank.policy,
        "opic": opic.policy,
        "larger-sites": larger_sites.policy,
        "ache": ache.policy,
        "two-phase": two_phase.policy,
        "tag-path": tag_path.policy,
        "bfs": breadth_first.policy,
        "dfs": depth_first.policy,
        "random": random_order.policy,
        **apprenticed.ABLATIONS,
    }
)


def policy_named(name: str) -> PolicyMaker:
    """Return the maker of a policy: one of ours, or ``package.module.function`` of one's own.

    Raises ConfigurationError for a name that is neither.
    """
    if name in POLICIES:
        return POLICIES[name]
    if "." in name:
        return _imported(name)
    known = ", ".join(each for each in POLICIES if each not in apprenticed.ABLATIONS)
    ablation = next(iter(apprenticed.ABLATIONS))
    raise ConfigurationError(
        f"no policy is named {name!r}; there are {known}, {ablation} and the like, "
        "and one's own as package.module.function"
    )


def _imported(path: str) -> PolicyMaker:
    module, _, function = path.rpartition(".")
    try:
        maker: Callable[[Aids], object] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"the policy {path!r} cannot be imported: {error}") from error
    if not callable(maker):
        raise ConfigurationError(f"the policy {path!r} is no function that makes one")
    return partial(_made_by, maker, path)


def _made_by(maker: Callable[[Aids], object], path: str, aids: Aids) -> Policy:
    try:
        made = maker(aids)
    except FocusedError:
        raise
    except Exception as error:  # whatever somebody else's code may raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigurationError(
            f"the policy {path!r} could not be made: {type(error).__name__}: {error} "
            f"({frame.filename}, line {frame.lineno})"
        ) from error
    if not isinstance(made, Policy):
        raise ConfigurationError(
            f"the policy {path!r} is a function that returns {type(made).__name__}, "
            "no focused.crawl.policy.Policy"
        )
    return made
