"""The wheel of this checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.crawling import ROOT


def build_wheel(source: Path) -> Path:
    """Build the wheel in the empty folder ``source``, from a copy.

    A build folder of the checkout's has no part in it.
    """
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("focused", "spiders"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(source)]
    subprocess.run([*pip, "wheel", *options, str(source)], check=True)
    return next(source.glob("*.whl"))
