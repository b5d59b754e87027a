"""Leaf functions that take much of the time of a page: plain loops over plain values.

They are compiled by mypyc where a C compiler is, and run as they are elsewhere, with equal results.
A kernel imports nothing of the package. Its classes are plain: mypyc makes structs of them.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from zlib import crc32

_FOLDER = Path(__file__).parent


def compiled_kernels() -> tuple[str, ...]:
    """Return the names of the kernels that are compiled."""
    return tuple(_checksums(_FOLDER))


def changed_kernels(folder: Path = _FOLDER) -> tuple[str, ...]:
    """Return the names of the kernels in ``folder`` that were compiled from another source."""
    return tuple(
        name
        for name, checksum in _checksums(folder).items()
        if not (source := folder / f"{name}.py").is_file() or crc32(source.read_bytes()) != checksum
    )


def _checksums(folder: Path) -> dict[str, int]:
    """Return the checksums of the sources of compiled kernels; the build wrote them."""
    try:
        checksums: dict[str, int] = json.loads((folder / "compiled.json").read_bytes())
    except FileNotFoundError:
        return {}
    return checksums


if _changed := changed_kernels():
    warnings.warn(
        f"kernels were compiled from another source: {', '.join(_changed)}; run make setup",
        stacklevel=2,
    )
