"""Link headers (RFC 8288), as far as a crawl heeds them: the canonical link (RFC 6596)."""

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
