"""Loads kernels from their sources, also where they are compiled."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import focused.kernels


def interpreted(name: str) -> ModuleType:
    """Load a kernel from its source, under another name."""
    source = Path(focused.kernels.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
