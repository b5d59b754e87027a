"""Scripts that lead the readers of a page to another at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

MAX_SCRIPT_BYTES = 400
"""Longer scripts do more than lead to another page, and may do it on a condition."""

_SCRIPT = re.compile(rb"<script\b[^<>]*+>", re.IGNORECASE)
_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_LOCATION = re.compile(
    rb"""(?:^|[\s;{}.])location(?:\.href)?\s*+(?:=|\.(?:replace|assign)\()\s*+["'](https?://[^"'\s]++)""",
    re.ASCII,
)
_CONDITION = re.compile(rb"\bif\b|\bfunction\b|=>|\?|addEventListener|\bon\w+\s*=")
_MAX_SCRIPTS = 100


def script_redirect(html: bytes) -> str | None:
    """Return the absolute URL that a short script assigns to ``location``, or None.

    Scripts with a condition or a function don't count. Never raises.
    """
    if b"location" not in html:
        return None
    for code in islice(_short_scripts(html), _MAX_SCRIPTS):
        found = _LOCATION.search(code)
        if found is not None and _CONDITION.search(code.replace(found[1], b"")) is None:
            return found[1].decode("ascii", "replace")
    return None


def _short_scripts(html: bytes) -> Iterator[bytes]:
    """Yield the code of each short script."""
    end = 0
    for tag in _SCRIPT.finditer(html):
        if tag.start() < end:
            continue  # within the script before
        most = tag.end() + MAX_SCRIPT_BYTES
        closing = _SCRIPT_END.search(html, tag.end(), most + len(b"</script"))
        if closing is not None:
            end = closing.end()
            yield html[tag.end() : closing.start()]
