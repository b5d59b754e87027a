"""Find the page to which a script leads the readers of a page at once."""

from __future__ import annotations

import re

MAX_SCRIPT_BYTES = 400
"""Longer scripts do more than lead to another page, and may do it on a condition."""

_SCRIPT = re.compile(rb"<script\b[^>]*>(.{,%d}?)</script" % MAX_SCRIPT_BYTES, re.DOTALL | re.I)
_LOCATION = re.compile(
    rb"""(?:^|[\s;{}.])location(?:\.href)?\s*(?:=|\.(?:replace|assign)\()\s*["'](https?://[^"'\s]+)""",
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
    for number, script in enumerate(_SCRIPT.finditer(html)):
        if number == _MAX_SCRIPTS:
            break
        code = script[1]
        found = _LOCATION.search(code)
        if found is not None and _CONDITION.search(code.replace(found[1], b"")) is None:
            return found[1].decode("ascii", "replace")
    return None
