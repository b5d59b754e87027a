"""The policies by name."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError, FocusedError
from focused.policies import apprenticed
from focused.policies.policy import Aids, PolicyMaker


def _by(module: str) -> PolicyMaker:
    """The policy of a module that is imported when it is made: some need slow libraries."""

    def policy(aids: Aids) -> Policy:
        maker: PolicyMaker = importlib.import_module(f"focused.policies.{module}").policy
        return maker(aids)

    return policy


POLICIES: Mapping[str, PolicyMaker] = MappingProxyType(
    {
        "focused": apprenticed.policy,
        "best-first": _by("best_first"),
        "anchor": _by("anchor"),
        "shark": _by("shark"),
        "fish": _by("fish"),
        "combined": _by("combined"),
        "backlink": _by("backlink"),
        "pagerank": _by("pagerank"),
        "opic": _by("opic"),
        "larger-sites": _by("larger_sites"),
        "ache": _by("ache"),
        "two-phase": _by("two_phase"),
        "tag-path": _by("tag_path"),
        "bfs": _by("breadth_first"),
        "dfs": _by("depth_first"),
        "random": _by("random_order"),
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
