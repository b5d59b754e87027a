"""Find and remove tags that make an HTML parser slow."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

FORMATTING_TAGS: Final = frozenset(
    {"b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
"""Elements that the parser reopens in each following block; without "a"."""

# Void elements, and elements that the parser closes itself.
# fmt: off
_UNNESTED_TAGS: Final = frozenset({
    "a", "area", "base", "body", "br", "caption", "col", "colgroup", "embed", "head", "hr", "html",
    "img", "input", "link", "meta", "p", "param", "source", "tbody", "td", "tfoot", "th", "thead",
    "tr", "track", "wbr",
})
# fmt: on
_RUBY_TAGS: Final = frozenset({"rb", "rp", "rt", "rtc"})
_ITEM_KINDS: Final = {"li": "li", "dd": "dd", "dt": "dd"}  # each closes its own kind only
_OPTION_TAGS: Final = frozenset({"optgroup", "option"})

_MAX_NAME_CHARS: Final = 6
_FORMATTING: Final = frozenset(int.from_bytes(name.encode(), "big") for name in FORMATTING_TAGS)
_ROOTS: Final = frozenset(int.from_bytes(name, "big") for name in (b"html", b"body"))
# Of names with these first letters, and no others, the numbers are looked up.
_IS_FIRST: Final = bytes(chr(code) in "bcefhinstu" for code in range(128))


def limit_tags(html: str, max_depth: int, max_formatting: int, max_options: int) -> str:
    """Return markup without some tags.

    Start tags nested deeper than ``max_depth``, or formatting elements than ``max_formatting``;
    ruby tags; options after the first ``max_options``; items of definition lists directly in other
    lists and vice versa.
    """
    n_chars: i64 = len(html)
    pieces: list[str] = []
    kept: i64 = 0  # where the text begins that is not among the pieces yet
    is_open: dict[str, int] = {}
    depth = formatting = options = 0
    item = ""
    at: i64 = html.find("<")
    while at >= 0:
        begin: i64 = at + 1
        closes = begin < n_chars and ord(html[begin]) == 47  # /
        if closes:
            begin += 1
        end: i64 = begin
        if end >= n_chars or not _is_letter(ord(html[end])):
            at = html.find("<", at + 1)
            continue
        while end < n_chars and (_is_letter(ord(html[end])) or 48 <= ord(html[end]) <= 57):
            end += 1
        name = html[begin:end].lower()
        close: i64 = html.find(">", end)
        end = close + 1 if close >= 0 else n_chars
        replacement: str | None = None
        if name in _UNNESTED_TAGS:
            pass
        elif name in _OPTION_TAGS:
            if not closes:
                options += 1
            if options > max_options:
                replacement = "\n"
        elif name in _RUBY_TAGS:
            replacement = ""
        elif name in _ITEM_KINDS:
            if item and item != _ITEM_KINDS[name]:
                replacement = "\n"
            else:
                item = _ITEM_KINDS[name]
        else:
            item = ""
            change = 0
            if not closes:
                if depth >= max_depth or (name in FORMATTING_TAGS and formatting >= max_formatting):
                    replacement = ""
                else:
                    change = 1
            elif is_open.get(name, 0):
                change = -1
            if change:
                is_open[name] = is_open.get(name, 0) + change
                depth += change
                if name in FORMATTING_TAGS:
                    formatting += change
        if replacement is not None:
            pieces.append(html[kept:at])
            pieces.append(replacement)
            kept = end
        at = html.find("<", end)
    pieces.append(html[kept:])
    return "".join(pieces)


def _is_letter(code: i64) -> bool:
    return 97 <= code | 0x20 <= 122


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
