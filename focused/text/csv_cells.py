"""Text cells of CSV files that no spreadsheet program takes for a formula.

Spreadsheet programs run a cell that begins with ``=``, ``+``, ``-`` or ``@``
(https://owasp.org/www-community/attacks/CSV_Injection), and anchors and URLs
come from strangers. Such a cell gets a single quote in front, as OWASP advises;
so does one in the middle of a text, behind a character that some programs
split cells at. :func:`unescape_formulas` takes the quotes away again: what is
written is read back exactly.
"""

from __future__ import annotations

import re

# Full-width signs are read as their ASCII forms in some locales.
_FORMULA = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_CELL_START = "(?:^|(?<=[;\t\r\n]))"
_FORMULA_START = re.compile(f"{_CELL_START}(?='*{_FORMULA})")
_ESCAPED_FORMULA_START = re.compile(f"{_CELL_START}'(?='*{_FORMULA})")


def escape_formulas(text: str) -> str:
    """Return ``text`` with a single quote before each place where a formula could begin."""
    return _FORMULA_START.sub("'", text)


def unescape_formulas(cell: str) -> str:
    """Return the text that :func:`escape_formulas` made ``cell`` of; other text as it is."""
    return _ESCAPED_FORMULA_START.sub("", cell)
