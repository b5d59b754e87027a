"""Headers that lead to other pages: Link (RFC 8288) and Refresh.

Of Link headers the canonical link (RFC 6596) is read. Meta elements with
``http-equiv=refresh`` have the same value as the Refresh header.
"""

from __future__ import annotations

import re

_MAX_CHARS = 16_000
# A quoted string, or a token: what may stand behind "name=".
_VALUE = r'(?:"(?:[^"\\]|\\.)*+"|[^\s;,"]*+)'
_LINK = re.compile(rf"<([^<>]*)>((?:\s*+;\s*+[\w!#$&+.^`|~*-]*+(?:\s*+=\s*+{_VALUE})?+)*+)")
_PARAMETER = re.compile(rf";\s*+([\w!#$&+.^`|~*-]++)\s*+=\s*+({_VALUE})")


def canonical_in(header: str) -> str | None:
    """Return the target of the first ``rel="canonical"`` in a Link header, as it stands there.

    The header's values may be joined by commas. A link with an ``anchor``
    speaks of another page and is passed over. Of several ``rel`` the first
    counts. Never raises.
    """
    if "canonical" not in header.lower():
        return None
    for target, parameters in _LINK.findall(header[:_MAX_CHARS]):
        told: dict[str, str] = {}
        for name, value in _PARAMETER.findall(parameters):
            told.setdefault(name.lower(), value.strip('"'))
        if "canonical" in told.get("rel", "").lower().split() and "anchor" not in told:
            return str(target).strip() or None
    return None


_SPACE = "\t\n\f\r "
_REFRESH = re.compile(
    rf"[{_SPACE}]*+(?:[0-9]++|(?=\.))[0-9.]*+(?:\Z|(?=[{_SPACE};,])[{_SPACE}]*+[;,]?[{_SPACE}]*+)"
)
_URL_EQUALS = re.compile(rf"url[{_SPACE}]*+=[{_SPACE}]*+", re.IGNORECASE)


def refresh_target(value: str) -> str | None:
    """Return the URL of a Refresh header or meta element as it stands there.

    ``""`` when the page itself is meant, None when the value has no effect.
    These are the HTML standard's shared declarative refresh steps (section
    4.2.5.3). Never raises.
    """
    time = _REFRESH.match(value)
    if time is None:
        return None
    rest = value[time.end() :]
    if equals := _URL_EQUALS.match(rest):
        rest = rest[equals.end() :]
    quote = rest[:1]
    return rest[1:].partition(quote)[0] if quote and quote in "\"'" else rest
