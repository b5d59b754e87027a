"""The formats of documents that can be pages besides HTML, and the libraries that they need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

DOCUMENT_FORMATS = ("pdf", "docx", "odt", "pptx", "epub", "jats", "text", "markdown", "latex")
"""All formats, as the key ``scope.documents`` names them."""

DEFAULT_DOCUMENTS = DOCUMENT_FORMATS[:6]
"""The formats that are pages by default. Plain texts of the Web are mostly logs, data and code."""

DOCUMENT_LIBRARIES: Mapping[str, str] = MappingProxyType(
    {"pdf": "pypdfium2", "markdown": "markdown_it", "latex": "pylatexenc"}
)
"""The modules of the extra ``documents`` by format; other formats need none."""


def missing_document_library(name: str) -> str | None:
    """Return the module that a format needs and that is not installed, or None."""
    library = DOCUMENT_LIBRARIES.get(name)
    return library if library is not None and find_spec(library) is None else None
