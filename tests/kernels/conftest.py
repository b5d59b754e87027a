"""Loads kernels from their sources, also where they are compiled."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import focused.kernels


def load_source(name: str) -> ModuleType:
    """Load a kernel from its source, under another name."""
    source = Path(focused.kernels.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def interpreted() -> Callable[[str], ModuleType]:
    """The function that loads a kernel from its source."""
    return load_source
