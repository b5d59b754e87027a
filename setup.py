"""Compiles the kernels with mypyc if ``FOCUSED_COMPILE`` is set; pyproject.toml has the rest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zlib import crc32

from setuptools import setup
from setuptools.command.build_ext import build_ext

KERNELS = sorted(
    path for path in Path("focused/kernels").glob("*.py") if path.name != "__init__.py"
)


class BuildKernels(build_ext):
    """Compile the kernels, and store the checksums of their sources beside them."""

    def run(self) -> None:
        """Compile."""
        super().run()
        if self.extensions:
            folder = Path(self.get_ext_fullpath(self.extensions[-1].name)).parent
            checksums = {path.stem: crc32(path.read_bytes()) for path in KERNELS}
            (folder / "compiled.json").write_text(json.dumps(checksums))


extensions = []
if os.environ.get("FOCUSED_COMPILE"):
    from mypyc.build import mypycify  # only who compiles needs it

    # Separate: the shared library of a kernel is named for its module, and lies in its package.
    extensions = mypycify(list(map(str, KERNELS)), separate=True, opt_level="3")
setup(ext_modules=extensions, cmdclass={"build_ext": BuildKernels})
