"""The libraries that formats of documents need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

DOCUMENT_LIBRARIES: Mapping[str, str] = MappingProxyType(
    {"pdf": "pypdfium2", "markdown": "markdown_it", "latex": "pylatexenc"}
)
"""The modules of the extra ``documents`` by format; other formats need none."""


def missing_document_library(name: str) -> str | None:
    """Return the module that a format needs and that is not installed, or None."""
    library = DOCUMENT_LIBRARIES.get(name)
    return library if library is not None and find_spec(library) is None else None
