"""Protection against CSV formula injection.

Spreadsheet programs evaluate a cell that begins with ``=``, ``+``, ``-`` or ``@``
(https://owasp.org/www-community/attacks/CSV_Injection), and anchors and URLs are
untrusted. As OWASP advises, such a cell gets a single quote in front; so does a formula
after a character at which some programs split cells. :func:`unescape_formulas` is the
exact inverse.
"""

from __future__ import annotations

import re

# Some locales read full-width signs as their ASCII forms.
_FORMULA = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_CELL_START = "(?:^|(?<=[;\t\r\n]))"
_FORMULA_START = re.compile(f"{_CELL_START}(?='*{_FORMULA})")
_ESCAPED_FORMULA_START = re.compile(f"{_CELL_START}'(?='*{_FORMULA})")


def escape_formulas(text: str) -> str:
    """Return ``text`` with a single quote before each position where a formula could begin."""
    return _FORMULA_START.sub("'", text)


def unescape_formulas(cell: str) -> str:
    """Return the text that :func:`escape_formulas` escaped; other text is unchanged."""
    return _ESCAPED_FORMULA_START.sub("", cell)
