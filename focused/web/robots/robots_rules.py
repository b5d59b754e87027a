"""robots.txt as RFC 9309 has it: a decision, a delay, an expiry.

The file is read in :mod:`focused.web.robots.robots_file`, paths are matched in
:mod:`focused.web.robots.robots_file`. Redirects are followed by whoever fetches, five
hops at least (section 2.3.1.2), and the last outcome is what
:func:`rules_from_fetch` wants.

Where Google's parser differs from the RFC, the RFC is kept: an allowed
``/x/index.html`` does not allow ``/x/``, ``%62`` is ``b``, a ``$`` at the end is
never a dollar, lines are not cut at 16 kB. Its leniency is kept, too, where
the RFC is silent: see :mod:`focused.web.robots.robots_file`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cached_property

from focused.errors import StateError
from focused.web.page import FailureKind, Fetched, Outcome, Redirected
from focused.web.robots.robots_file import (
    MAX_ROBOTS_BYTES,
    PathMatcher,
    RobotsFile,
    decode_robots,
    parse_robots,
)
from focused.web.urls import normalise

__all__ = [
    "MAX_AGE_S", "MAX_ROBOTS_BYTES", "MIN_AGE_S", "RETRY_S", "UNAVAILABLE", "UNREACHABLE_LONG_S",
    "RobotsAccess", "RobotsRules", "product_token", "rules_from_fetch", "rules_while_unreachable",
]  # fmt: skip

RETRY_S = 300.0  # how soon an unreachable robots.txt is asked for again
MIN_RETRY_S = 60.0
UNREACHABLE_LONG_S = 30 * 86_400.0  # section 2.3.1.4: "a reasonably long period"
STALE_FOR_S = 3_600.0  # how soon a copy that is out of date is tried to be renewed

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
    """What a fetch of robots.txt came to."""

    RULES = "rules"
    ALLOW_ALL = "allow-all"
    DISALLOW_ALL = "disallow-all"


@dataclass(frozen=True)
class RobotsRules:
    """One site's rules until ``expires_at``.

    ``unreachable_since`` is when robots.txt first could not be had, None when
    the last try brought it; both in seconds since the epoch.
    """

    access: RobotsAccess
    expires_at: float
    text: str = ""
    unreachable_since: float | None = None
    _matchers: dict[str, PathMatcher] = field(default_factory=dict, repr=False, compare=False)

    def allows(self, url: str, user_agent: str) -> bool:
        """Tell whether ``user_agent`` (header or product token) may fetch a URL of this site."""
        if self.access is not RobotsAccess.RULES:
            return self.access is RobotsAccess.ALLOW_ALL
        matcher = self._matchers.get(user_agent)
        if matcher is None:
            group = self._file.group_of(product_token(user_agent))
            matcher = self._matchers[user_agent] = PathMatcher(group.rules)
        return matcher.allow(url)

    def crawl_delay_s(self, user_agent: str) -> float | None:
        """Return the seconds that the host wants between requests, 12 h at most.

        None when it does not say.
        """
        return self._file.group_of(product_token(user_agent)).delay_s

    @property
    def came_from_server(self) -> bool:
        """Whether a server said so, and not its silence."""
        return self.access is not RobotsAccess.DISALLOW_ALL

    def sitemaps(self, robots_url: str) -> tuple[str, ...]:
        """The sitemaps named, normalised, each once; ``robots_url`` is where the file was found."""
        urls = (normalise(named, robots_url) for named in self._file.sitemaps if named)
        return tuple(dict.fromkeys(url for url in urls if url))

    def to_state(self) -> dict[str, str | float | None]:
        """Return what a restarted crawl needs, fit for JSON."""
        return {
            "access": self.access.value,
            "expires_at": self.expires_at,
            "text": self.text,
            "unreachable_since": self.unreachable_since,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> RobotsRules:
        """Return the rules that :meth:`to_state` gave; raises StateError for anything else."""
        try:
            expires_at, text = state["expires_at"], state["text"]
            since = state.get("unreachable_since")
            if not isinstance(expires_at, int | float) or not isinstance(text, str):
                raise TypeError(type(expires_at), type(text))
            if not isinstance(since, int | float | None):
                raise TypeError(type(since))
            return cls(RobotsAccess(str(state["access"])), float(expires_at), text, since)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"stored robots.txt rules are damaged ({error!r}); delete them to fetch them again"
            ) from error

    @cached_property
    def _file(self) -> RobotsFile:
        return parse_robots(self.text)


def product_token(user_agent: str) -> str:
    """Return the name that robots.txt files call a crawler by (section 2.2.1).

    ``"FocusedBot/0.1 (+https://example.org/bot)"`` gives ``"FocusedBot"``;
    behind a browser's name, the one that is "compatible" counts, or else the
    last product that is no browser's.
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


def rules_from_fetch(outcome: Outcome, now: float) -> RobotsRules:
    """Return the rules that the last outcome of fetching robots.txt stands for.

    Success is parsed. "Unavailable" (4xx, a chain of redirects that was given
    up; section 2.3.1.3) allows all. "Unreachable" (5xx, no network, and 429,
    which is no statement about rules; section 2.3.1.4) disallows all and
    expires in five minutes or when Retry-After says. Other rules last as
    Cache-Control and Expires say, ten minutes at least and a day at most. Never
    raises.
    """
    if isinstance(outcome, Fetched):
        return _from_response(outcome, now)
    if isinstance(outcome, Redirected) or outcome.kind in UNAVAILABLE:
        return RobotsRules(RobotsAccess.ALLOW_ALL, now + MAX_AGE_S)
    retry_s = outcome.retry_after_s
    if retry_s is None or not math.isfinite(retry_s):
        retry_s = RETRY_S
    return RobotsRules(RobotsAccess.DISALLOW_ALL, now + min(MAX_AGE_S, max(MIN_RETRY_S, retry_s)))


def rules_while_unreachable(known: RobotsRules | None, now: float) -> RobotsRules:
    """Return what holds while robots.txt cannot be had; ``known`` is what held before.

    A copy stays in use though it is out of date, and is tried to be renewed in
    an hour (section 2.4). Without one all is disallowed, until 30 days of that
    are over: then it counts as unavailable, and all is allowed for a day
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


def _from_response(fetched: Fetched, now: float) -> RobotsRules:
    if fetched.status == 429 or fetched.status >= 500:
        return RobotsRules(RobotsAccess.DISALLOW_ALL, now + RETRY_S)
    expires_at = now + max_age_s(fetched.headers)
    if fetched.status >= 300:
        return RobotsRules(RobotsAccess.ALLOW_ALL, expires_at)
    return RobotsRules(RobotsAccess.RULES, expires_at, decode_robots(fetched.body))


MAX_AGE_S = 86_400.0  # RFC 9309, section 2.4
MIN_AGE_S = 600.0  # many servers forbid caching by default; this is kind enough to them

_DIRECTIVE = re.compile(r"([a-z-]+)\s*(?:=\s*(?:\"([^\"]*)\"|([^\s,;\"]*)))?")
_UNCACHEABLE = frozenset({"no-cache", "no-store"})


def max_age_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that an answer with these headers stays good, 600 to 86,400.

    ``headers`` has lower-case names. no-store and no-cache, then max-age, then
    Expires are heard, each less Age; without any of them a day it is. s-maxage
    is for caches that many share, and is passed over. Never raises.
    """
    return min(MAX_AGE_S, max(MIN_AGE_S, _cache_lifetime_s(headers)))


def _cache_lifetime_s(headers: Mapping[str, str]) -> float:
    directives: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(headers.get("cache-control", "").lower()):
        directives.setdefault(name, quoted or plain)
    if not _UNCACHEABLE.isdisjoint(directives):
        return 0.0
    told = _parse_seconds(directives.get("max-age", ""))
    if told is None:
        told = _until_expiry_s(headers)
    if told is None:
        return MAX_AGE_S
    return told - (_parse_seconds(headers.get("age", "")) or 0.0)


def _until_expiry_s(headers: Mapping[str, str]) -> float | None:
    """Expires less Date; one that is no date has passed (RFC 9111, section 5.3)."""
    expires = headers.get("expires", "").strip()
    if not expires:
        return None
    try:
        ends_at = parsedate_to_datetime(expires).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    try:
        return ends_at - parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _parse_seconds(value: str) -> float | None:
    return float(value) if re.fullmatch(r"\d{1,10}", value.strip(), re.ASCII) else None
