"""robots.txt rules of a site (RFC 9309): access, crawl delay, expiry.

Whoever fetches follows at least five redirects (section 2.3.1.2) and passes the last outcome to
:func:`rules_from_fetch`. Where Google's parser differs from the RFC, the RFC applies: an allowed
``/x/index.html`` does not allow ``/x/``, ``%62`` is ``b``, a ``$`` at the end is never a dollar,
and lines are not cut at 16 kB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

from focused.durations import DAY_S, HOUR_S
from focused.errors import StateError
from focused.web.http_response import cache_lifetime_s
from focused.web.page import FailureKind, Fetched, NotModified, Outcome, Redirected
from focused.web.robots.robots_file import (
    MAX_QUICK_ROBOTS_BYTES,
    MAX_ROBOTS_BYTES,
    RobotsFile,
    decode_robots,
    parse_robots,
)
from focused.web.urls import normalize_url

__all__ = [
    "MAX_AGE_S", "MAX_QUICK_ROBOTS_BYTES", "MAX_ROBOTS_BYTES", "MIN_AGE_S", "RETRY_S",
    "UNAVAILABLE", "UNREACHABLE_LONG_S", "RobotsAccess", "RobotsFile", "RobotsRules",
    "is_long_robots_file", "parse_robots_body", "product_token", "rules_from_fetch",
    "rules_while_unreachable",
]  # fmt: skip

RETRY_S = 300.0  # retry interval for an unreachable robots.txt
MIN_RETRY_S = 60.0
UNREACHABLE_LONG_S = 30 * DAY_S  # section 2.3.1.4: "a reasonably long period"
STALE_FOR_S = HOUR_S  # retry interval for an expired copy

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_COMPATIBLE = re.compile(r"\bcompatible\s*;\s*([A-Za-z0-9_-]+)", re.IGNORECASE)
_PRODUCT = re.compile(r"([A-Za-z0-9_-]+)/")
_COMMENT = re.compile(r"\([^()]*\)")
# fmt: off
_BROWSERS = frozenset({
    "applewebkit", "chrome", "edg", "firefox", "gecko", "headlesschrome", "khtml", "mobile",
    "mozilla", "opr", "safari", "version",
})
# fmt: on
UNAVAILABLE = frozenset(
    {
        FailureKind.CLIENT_ERROR,
        FailureKind.GONE,
        FailureKind.BAD_REDIRECT,
        FailureKind.EMPTY,
        FailureKind.WRONG_TYPE,
    }
)


class RobotsAccess(StrEnum):
    """Result of a fetch of robots.txt."""

    RULES = "rules"
    ALLOW_ALL = "allow-all"
    DISALLOW_ALL = "disallow-all"


class _State(msgspec.Struct):
    """What is stored of the rules; ``parsed`` is packed."""

    access: RobotsAccess
    expires_at: float
    text: str
    unreachable_since: float | None = None
    parsed: bytes | None = None


@dataclass(frozen=True)
class RobotsRules:
    """One site's rules until ``expires_at``.

    ``unreachable_since`` is the time of the first failed fetch, None if the last fetch succeeded.
    Both in seconds since the epoch. ``parsed`` replaces the ``text`` of a long file: its rules for
    one product token, which was parsed once, in a parser process.
    """

    access: RobotsAccess
    expires_at: float
    text: str = ""
    unreachable_since: float | None = None
    parsed: RobotsFile | None = None
    _files: dict[str, RobotsFile] = field(default_factory=dict, repr=False, compare=False)

    def allows(self, url: str, user_agent: str) -> bool:
        """Whether ``user_agent`` (header or product token) may fetch a URL of this site."""
        if self.access is not RobotsAccess.RULES:
            return self.access is RobotsAccess.ALLOW_ALL
        return self.is_for(user_agent) and self._file_for(user_agent).matcher.allow(url)

    def is_for(self, user_agent: str) -> bool:
        """Whether the rules of this user agent are known; others must fetch a long file again."""
        return self.parsed is None or self.parsed.product_token == product_token(user_agent)

    def memory_bytes(self, user_agent: str) -> int:
        """About how much memory the rules for a user agent take."""
        return 1_000 + len(self.text) + self._file_for(user_agent).memory_bytes

    def crawl_delay_s(self, user_agent: str) -> float | None:
        """Return the crawl delay in seconds, 12 h at most; None if there is none."""
        return self._file_for(user_agent).delay_s

    @property
    def came_from_server(self) -> bool:
        """Whether a server answered."""
        return self.access is not RobotsAccess.DISALLOW_ALL

    def sitemaps(self, robots_url: str) -> tuple[str, ...]:
        """Return the named sitemaps, normalised, each once; ``robots_url`` is the file's URL."""
        urls = (normalize_url(named, robots_url) for named in self._file_for("").sitemaps if named)
        return tuple(dict.fromkeys(url for url in urls if url))

    def to_state(self) -> dict[str, object]:
        """Return the state to persist."""
        parsed = None if self.parsed is None else msgspec.msgpack.encode(self.parsed)
        state = _State(self.access, self.expires_at, self.text, self.unreachable_since, parsed)
        plain: dict[str, object] = msgspec.to_builtins(state, builtin_types=(bytes,))
        return plain

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> RobotsRules:
        """Return the rules of :meth:`to_state`; raises StateError for anything else."""
        try:
            stored = msgspec.convert(state, _State)
            parsed = None if stored.parsed is None else _decode_file(stored.parsed)
        except msgspec.MsgspecError as error:
            raise StateError(
                f"stored robots.txt rules are damaged ({error}); delete them to fetch them again"
            ) from error
        return cls(stored.access, stored.expires_at, stored.text, stored.unreachable_since, parsed)

    def _file_for(self, user_agent: str) -> RobotsFile:
        if self.parsed is not None:
            return self.parsed
        file = self._files.get(user_agent)
        if file is None:
            file = self._files[user_agent] = parse_robots(self.text, product_token(user_agent))
        return file


_decode_file = msgspec.msgpack.Decoder(RobotsFile).decode


def product_token(user_agent: str) -> str:
    """Return the product token of a user agent (section 2.2.1).

    ``"FocusedBot/0.1 (+https://example.org/bot)"`` gives ``"FocusedBot"``. If the agent begins with
    a browser's name, it is the name after "compatible", else the last product that is not a
    browser.
    """
    compatible = _COMPATIBLE.search(user_agent)
    if compatible:
        return compatible[1]
    match = _TOKEN.match(user_agent.strip())
    if match is None or match[0].lower() not in _BROWSERS:
        return match[0] if match else ""
    products: list[str] = _PRODUCT.findall(_COMMENT.sub(" ", user_agent))
    own = [name for name in products if name.lower() not in _BROWSERS]
    return own[-1] if own else match[0]


def is_long_robots_file(outcome: Outcome) -> bool:
    """Whether a response is a robots.txt that may take long to parse."""
    if not isinstance(outcome, Fetched) or outcome.status >= 300:
        return False
    return len(outcome.body) > MAX_QUICK_ROBOTS_BYTES


def parse_robots_body(body: bytes, token: str) -> RobotsFile:
    """Return the rules of a file for one product token. Never raises."""
    return parse_robots(decode_robots(body), token)


def rules_from_fetch(outcome: Outcome, now: float, parsed: RobotsFile | None = None) -> RobotsRules:
    """Return the rules that follow from the outcome of fetching robots.txt.

    "Unavailable" (4xx, too many redirects; section 2.3.1.3) allows all. "Unreachable" (5xx, network
    errors, also 429; section 2.3.1.4) disallows all and expires after five minutes or Retry-After.
    Other rules expire by Cache-Control and Expires, after ten minutes at least and a day at most.
    ``parsed`` is the file if it was parsed already. Never raises.
    """
    if isinstance(outcome, Fetched):
        return _from_response(outcome, now, parsed)
    if isinstance(outcome, Redirected | NotModified) or outcome.kind in UNAVAILABLE:
        return RobotsRules(RobotsAccess.ALLOW_ALL, now + MAX_AGE_S)
    retry_s = outcome.retry_after_s
    if retry_s is None or not math.isfinite(retry_s):
        retry_s = RETRY_S
    return RobotsRules(RobotsAccess.DISALLOW_ALL, now + min(MAX_AGE_S, max(MIN_RETRY_S, retry_s)))


def rules_while_unreachable(known: RobotsRules | None, now: float) -> RobotsRules:
    """Return the rules that apply while robots.txt is unreachable; ``known`` applied before.

    An expired copy stays in use and is retried after an hour (section 2.4). Without a copy all is
    disallowed for 30 days; then the file counts as unavailable and all is allowed for a day
    (section 2.3.1.4).
    """
    since = now
    if known is not None and known.unreachable_since is not None:
        since = known.unreachable_since
    if known is not None and known.came_from_server:
        return replace(known, expires_at=now + STALE_FOR_S, unreachable_since=since)
    if now - since >= UNREACHABLE_LONG_S:
        return RobotsRules(RobotsAccess.ALLOW_ALL, now + MAX_AGE_S, unreachable_since=since)
    return RobotsRules(RobotsAccess.DISALLOW_ALL, now, unreachable_since=since)


def _from_response(fetched: Fetched, now: float, parsed: RobotsFile | None) -> RobotsRules:
    if fetched.status == 429 or fetched.status >= 500:
        return RobotsRules(RobotsAccess.DISALLOW_ALL, now + RETRY_S)
    expires_at = now + max_age_s(fetched.headers)
    if fetched.status >= 300:
        return RobotsRules(RobotsAccess.ALLOW_ALL, expires_at)
    text = decode_robots(fetched.body) if parsed is None else ""
    return RobotsRules(RobotsAccess.RULES, expires_at, text, parsed=parsed)


MAX_AGE_S = DAY_S  # RFC 9309, section 2.4
MIN_AGE_S = 600.0  # many servers forbid caching by default


def max_age_s(headers: Mapping[str, str]) -> float:
    """Return how many seconds a response may be cached, 600 to 86,400; the default is a day.

    ``headers`` has lower-case names. Never raises.
    """
    lifetime_s = cache_lifetime_s(headers)
    return MAX_AGE_S if lifetime_s is None else min(MAX_AGE_S, max(MIN_AGE_S, lifetime_s))
