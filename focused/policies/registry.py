"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from focused.errors import ConfigurationError
from focused.policies import (
    anchor,
    apprenticed,
    best_first,
    breadth_first,
    depth_first,
    oracle,
    random_order,
)
from focused.policies.policy import Aids, Policy

POLICIES: Mapping[str, Callable[[Aids], Policy]] = {
    "focused": apprenticed.policy,
    "best-first": best_first.policy,
    "anchor": anchor.policy,
    "bfs": breadth_first.policy,
    "dfs": depth_first.policy,
    "random": random_order.policy,
    "oracle": oracle.policy,
}


def policy_named(name: str) -> Callable[[Aids], Policy]:
    """Return the maker of a policy. Raises ConfigurationError for an unknown name."""
    try:
        return POLICIES[name]
    except KeyError:
        known = ", ".join(POLICIES)
        raise ConfigurationError(
            f"--policies: no policy is named {name!r}; there are {known}"
        ) from None
