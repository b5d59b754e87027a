"""Responses that many pages of a crawl request, in bounded memory.

A private cache in the sense of RFC 9111 without revalidation: responses with ``no-store``,
``no-cache`` or ``Vary: *`` are not kept. Without a stated lifetime scripts stay fresh for an hour,
data for five minutes (section 4.2.2 allows a heuristic).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from cachetools import TLRUCache

from focused.rendering.renderer import SubrequestResponse
from focused.rendering.subrequests import Subrequest

SCRIPT_S = 3_600.0
DATA_S = 300.0
MAX_LIFETIME_S = 86_400.0
"""No response is kept for longer, whatever it says."""

_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_NEVER = re.compile(r"(?:^|[\s,])(?:no-store|no-cache)(?:$|[\s,=])", re.IGNORECASE)
_KEPT = frozenset({200, 203, 301, 308, 404, 410})


class AssetCache:
    """Fresh responses by URL, the least recently used out first."""

    def __init__(
        self, max_bytes: int = 64_000_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_response_bytes = max_bytes // 4
        self._kept: TLRUCache[str, tuple[SubrequestResponse, float]] = TLRUCache(
            max_bytes,
            ttu=lambda _, kept, now: now + kept[1],
            timer=clock,
            getsizeof=lambda kept: len(kept[0].body),
        )

    def get(self, request: Subrequest) -> SubrequestResponse | None:
        """Return a fresh response, or None."""
        found = self._kept.get(request.url)
        return None if found is None else found[0]

    def put(self, request: Subrequest, response: SubrequestResponse) -> None:
        """Keep a response if it may be used again."""
        lifetime_s = lifetime(request.kind, response.status, response.headers)
        if lifetime_s > 0 and len(response.body) <= self._max_response_bytes:
            self._kept[request.url] = replace(response, is_cached=True), lifetime_s


def lifetime(kind: str, status: int, headers: Mapping[str, str]) -> float:
    """Return for how many seconds a response may be used again; 0: not at all."""
    control = headers.get("cache-control", "")
    if status not in _KEPT or _NEVER.search(control) or headers.get("vary", "").strip() == "*":
        return 0.0
    stated = _MAX_AGE.search(control)
    if stated is not None:
        age = headers.get("age", "0")
        passed_s = float(age) if age.isdecimal() else 0.0
        return min(max(0.0, float(stated[1]) - passed_s), MAX_LIFETIME_S)
    return SCRIPT_S if kind == "script" else DATA_S
