"""Scan markup for what makes an HTML parser slow."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

FORMATTING_TAGS = frozenset(
    {"b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
"""Elements that the parser reopens in each following block; without "a"."""

_MAX_NAME_CHARS: Final = 6
_FORMATTING = frozenset(int.from_bytes(name.encode(), "big") for name in FORMATTING_TAGS)
_ROOTS = frozenset(int.from_bytes(name, "big") for name in (b"html", b"body"))
# Of names with these first letters, and no others, the numbers are looked up.
_IS_FIRST = bytes(chr(code) in "bcefhinstu" for code in range(128))


def scan_markup(html: str) -> tuple[int, int, int]:
    """Return the number of ``<``, the most formatting elements that are open at once, and the
    number of characters of all ``html`` and ``body`` start tags, within which ``<`` is not counted.
    """
    n_chars: i64 = len(html)
    tags: i64 = 0
    is_open: i64 = 0
    most_open: i64 = 0
    root_chars: i64 = 0
    at: i64 = html.find("<")
    while at >= 0:
        tags += 1
        begin: i64 = at + 1
        closes = begin < n_chars and ord(html[begin]) == 47  # /
        if closes:
            begin += 1
        end: i64 = begin
        name: i64 = 0
        code: i64 = ord(html[end]) if end < n_chars else 0
        if 65 <= code < 127 and _IS_FIRST[code | 0x20]:
            while 97 <= code | 0x20 <= 122 and end - begin <= _MAX_NAME_CHARS:
                name = name << 8 | code | 0x20
                end += 1
                code = ord(html[end]) if end < n_chars else 0
            if code == 62 or code == 47 or code == 32 or 9 <= code <= 13:  # > / or a blank
                if name in _FORMATTING:
                    is_open = is_open - 1 if closes else is_open + 1
                    is_open = max(is_open, 0)
                    most_open = max(most_open, is_open)
                elif not closes and name in _ROOTS:
                    close: i64 = html.find(">", end)
                    end = close + 1 if close >= 0 else n_chars
                    root_chars += end - at
        at = html.find("<", end)
    return tags, most_open, root_chars
