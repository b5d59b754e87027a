"""Find policies by name."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError, FocusedError
from focused.orderings import focused_ordering, simple
from focused.orderings.base import PolicyFactory, PolicyInputs


def _lazy_policy(module: str) -> PolicyFactory:
    """Import the policy's module on first use: some need slow libraries."""

    def make_policy(inputs: PolicyInputs) -> Policy:
        factory: PolicyFactory = importlib.import_module(f"focused.orderings.{module}").make_policy
        return factory(inputs)

    return make_policy


POLICIES: Mapping[str, PolicyFactory] = MappingProxyType(
    {
        "focused": focused_ordering.make_policy,
        "best-first": simple.best_first,
        "anchor": simple.anchor,
        "shark": _lazy_policy("shark"),
        "fish": _lazy_policy("fish"),
        "combined": _lazy_policy("combined"),
        "backlink": _lazy_policy("backlink"),
        "pagerank": _lazy_policy("pagerank"),
        "opic": _lazy_policy("opic"),
        "larger-sites": _lazy_policy("larger_sites"),
        "ache": _lazy_policy("ache"),
        "two-phase": _lazy_policy("two_phase"),
        "tag-path": _lazy_policy("tag_path"),
        "bfs": simple.breadth_first,
        "dfs": simple.depth_first,
        "random": simple.random_order,
        **focused_ordering.ABLATIONS,
    }
)


def find_policy(name: str) -> PolicyFactory:
    """Return the factory of a policy: one of ours, or a custom ``package.module.function``.

    Raises ConfigurationError for an unknown name.
    """
    if name in POLICIES:
        return POLICIES[name]
    if "." in name:
        return _import_policy(name)
    known = ", ".join(each for each in POLICIES if each not in focused_ordering.ABLATIONS)
    ablation = next(iter(focused_ordering.ABLATIONS))
    raise ConfigurationError(
        f"no policy is named {name!r}; there are {known}, {ablation} and the like, "
        "and custom ones as package.module.function"
    )


def _import_policy(path: str) -> PolicyFactory:
    module, _, function = path.rpartition(".")
    try:
        factory: Callable[[PolicyInputs], object] = getattr(
            importlib.import_module(module), function
        )
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"the policy {path!r} cannot be imported: {error}") from error
    if not callable(factory):
        raise ConfigurationError(f"the policy {path!r} is not a function")
    return partial(_make_checked_policy, factory, path)


def _make_checked_policy(
    factory: Callable[[PolicyInputs], object], path: str, inputs: PolicyInputs
) -> Policy:
    try:
        made = factory(inputs)
    except FocusedError:
        raise
    except Exception as error:  # custom code may raise anything
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigurationError(
            f"the policy {path!r} could not be created: {type(error).__name__}: {error} "
            f"({frame.filename}, line {frame.lineno})"
        ) from error
    if not isinstance(made, Policy):
        raise ConfigurationError(
            f"the policy {path!r} is a function that returns {type(made).__name__}, "
            "not focused.crawl.policy.Policy"
        )
    return made
