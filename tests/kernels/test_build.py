"""Kernels are compiled all or none, from the sources beside them."""

import os
import shutil
from pathlib import Path

import pytest

import focused.kernels
from focused.kernels import changed_kernels, compiled_kernels

FOLDER = Path(focused.kernels.__file__).parent
KERNELS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def test_all_kernels_are_compiled_or_none():
    # Wheels are built and tested with this variable.
    allowed = ([*KERNELS],) if os.environ.get("FOCUSED_COMPILE") else ([], KERNELS)
    assert sorted(compiled_kernels()) in allowed


def test_no_compiled_kernel_is_older_than_its_source():
    assert changed_kernels() == ()


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A folder of one kernel that was compiled from another source."""
    shutil.copy(FOLDER / "word_hashing.py", tmp_path)
    (tmp_path / "compiled.json").write_text('{"word_hashing": 1}')
    return tmp_path


def test_a_kernel_that_was_compiled_from_another_source_is_reported(compiled):
    assert changed_kernels(compiled) == ("word_hashing",)


def test_a_kernel_that_was_compiled_and_has_no_source_is_reported(compiled):
    (compiled / "word_hashing.py").unlink()
    assert changed_kernels(compiled) == ("word_hashing",)
