"""The wheels of this checkout: the crawler's and the lab's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.crawling import ROOT


def build_wheel(source: Path) -> Path:
    """Build the crawler's wheel in the empty folder ``source``, from a copy.

    A build folder of the checkout's has no part in it.
    """
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("focused", "lab", "spiders"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    return _build(source)


def build_lab_wheel(source: Path) -> Path:
    """Build the lab's wheel in the folder ``source``, which does not exist."""
    shutil.copytree(
        ROOT / "lab", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    return _build(source)


def _build(source: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(source)]
    subprocess.run([*pip, "wheel", *options, str(source)], check=True)
    return next(source.glob("*.whl"))
