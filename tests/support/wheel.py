"""The wheels of this checkout: the crawler's and the lab's."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.crawling import ROOT

NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "compiled.json")


def build_wheel(source: Path, *, compiled: bool = False) -> Path:
    """Build the crawler's wheel in the empty folder ``source``, from a copy.

    A build folder of the checkout's has no part in it.
    """
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("focused", "lab", "spiders"):
        shutil.copytree(ROOT / name, source / name, ignore=NOT_COPIED)
    return _build(source, {"FOCUSED_COMPILE": "1"} if compiled else {})


def build_lab_wheel(source: Path) -> Path:
    """Build the lab's wheel in the folder ``source``, which does not exist."""
    shutil.copytree(ROOT / "lab", source, ignore=NOT_COPIED)
    return _build(source, {})


def _build(source: Path, variables: Mapping[str, str]) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(source)]
    others = {name: value for name, value in os.environ.items() if name != "FOCUSED_COMPILE"}
    command = [*pip, "wheel", *options, str(source)]
    subprocess.run(command, env={**others, **variables}, check=True)
    return next(source.glob("*.whl"))
