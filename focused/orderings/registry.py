"""Find policies by name."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from focused.crawl.policy import Policy
from focused.entry_points import installed_parts, load_entry_point, more_from_lab
from focused.errors import ConfigurationError, FocusedError
from focused.orderings import focused_ordering, simple
from focused.orderings.base import PolicyFactory, PolicyInputs

ENTRY_POINT_GROUP = "focused.orderings"

POLICIES: Mapping[str, PolicyFactory] = MappingProxyType(
    {
        "focused": focused_ordering.make_policy,
        "best-first": simple.best_first,
        "bfs": simple.breadth_first,
    }
)
"""The policies of the crawler. Others are entry points of installed distributions."""


def ordering_names() -> tuple[str, ...]:
    """Return the names of all policies: ours first, then those of installed distributions."""
    return tuple(dict.fromkeys((*POLICIES, *installed_parts(ENTRY_POINT_GROUP))))


def find_policy(name: str) -> PolicyFactory:
    """Return the factory of a policy.

    ``name`` is one of ours, that of an entry point, or a custom ``package.module.function``. Raises
    ConfigurationError for an unknown name.
    """
    if name in POLICIES:
        return POLICIES[name]
    if "." in name:
        return _import_policy(name)
    if (point := installed_parts(ENTRY_POINT_GROUP).get(name)) is not None:
        return partial(_make_checked_policy, load_entry_point(point), point.value)
    raise ConfigurationError(
        f"no policy is named {name!r}; there are {', '.join(ordering_names())}, "
        f"and custom ones as package.module.function{more_from_lab()}"
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
