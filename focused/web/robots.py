"""robots.txt as RFC 9309 has it: a decision, a delay, an expiry.

Paths are matched by Protego. Which group is ours is decided here, because
Protego is wider than the RFC (section 2.2.1): the product token must match
whole ("foo" is not "foobot"), and records the RFC does not define, such as
Crawl-delay, must not end a list of user agents.

Redirects are followed by whoever fetches, five hops at least (section
2.3.1.2), and the last outcome is what :func:`rules_from_fetch` wants.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from urllib.parse import quote

from protego import Protego

from focused.errors import StateError
from focused.web.decode import decode
from focused.web.page import FailureKind, Fetched, Outcome, Redirected
from focused.web.url import normalise

MAX_ROBOTS_BYTES = 512_000  # 500 KiB, section 2.5
MAX_AGE_S = 86_400.0  # section 2.4
MIN_AGE_S = 600.0  # many servers forbid caching by default; this is kind enough to them
RETRY_S = 300.0  # how soon an unreachable robots.txt is asked for again
MIN_RETRY_S = 60.0

_RULES = {
    "allow": "Allow",
    **dict.fromkeys(
        ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "Disallow"
    ),
}
_AGENT_FIELDS = frozenset({"useragent"})
_DELAY_FIELDS = frozenset({"crawldelay"})
_SITEMAP_FIELDS = frozenset({"sitemap", "sitemaps"})
_TOKEN = re.compile(r"[A-Za-z_-]+")
_COMPATIBLE = re.compile(r"\(\s*compatible\s*;\s*([A-Za-z_-]+)", re.IGNORECASE)
_ESCAPED_IN_QUERY = re.compile(r"%(?:(3[Aa])|2[Ff])")
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
UNAVAILABLE = frozenset(
    {
        FailureKind.CLIENT_ERROR,
        FailureKind.GONE,
        FailureKind.BAD_REDIRECT,
        FailureKind.EMPTY,
        FailureKind.WRONG_TYPE,
    }
)


class Access(StrEnum):
    """What a fetch of robots.txt came to."""

    RULES = "rules"
    ALLOW_ALL = "allow-all"
    DISALLOW_ALL = "disallow-all"


@dataclass(slots=True)
class _Group:
    """The records of one product token (or of "*"), all its groups together."""

    rules: list[str] = field(default_factory=list)
    delay_s: float | None = None


@dataclass(frozen=True)
class RobotsRules:
    """One host's rules until ``expires_at`` (seconds since the epoch)."""

    access: Access
    expires_at: float
    text: str = ""
    _matchers: dict[str, Protego] = field(default_factory=dict, repr=False, compare=False)

    def allows(self, url: str, user_agent: str) -> bool:
        """Tell whether ``user_agent`` (header or product token) may fetch a URL of this host."""
        if self.access is not Access.RULES:
            return self.access is Access.ALLOW_ALL
        if not self._group(user_agent).rules:
            return True
        return self._matcher(user_agent).can_fetch(_plain_query(url), "*")

    def crawl_delay_s(self, user_agent: str) -> float | None:
        """Return the seconds that the host wants between requests, None when it does not say."""
        return self._group(user_agent).delay_s

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps named, normalised, each once."""
        return self._records[1]

    def to_state(self) -> dict[str, str | float]:
        """Return what a restarted crawl needs, fit for JSON."""
        return {"access": self.access.value, "expires_at": self.expires_at, "text": self.text}

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> RobotsRules:
        """Return the rules that :meth:`to_state` gave; raises StateError for anything else."""
        try:
            expires_at = state["expires_at"]
            text = state["text"]
            if not isinstance(expires_at, int | float) or not isinstance(text, str):
                raise TypeError(type(expires_at), type(text))
            return cls(Access(str(state["access"])), float(expires_at), text)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"stored robots.txt rules are damaged ({error!r}); delete them to fetch them again"
            ) from error

    @cached_property
    def _records(self) -> tuple[dict[str, _Group], tuple[str, ...]]:
        return _read(self.text)

    def _group(self, user_agent: str) -> _Group:
        groups = self._records[0]
        return groups.get(product_token(user_agent).lower()) or groups.get("*") or _Group()

    def _matcher(self, user_agent: str) -> Protego:
        matcher = self._matchers.get(user_agent)
        if matcher is None:
            group = self._group(user_agent)
            matcher = Protego.parse("\n".join(("User-agent: *", *group.rules)))
            self._matchers[user_agent] = matcher
        return matcher


def product_token(user_agent: str) -> str:
    """Return the name that robots.txt files call a crawler by (section 2.2.1).

    ``"FocusedBot/0.1 (+https://example.org/bot)"`` gives ``"FocusedBot"``;
    behind a browser's name, the one that is "compatible" counts.
    """
    match = _COMPATIBLE.search(user_agent)
    if match:
        return match[1]
    match = _TOKEN.match(user_agent.strip())
    return match[0] if match else ""


def rules_from_fetch(outcome: Outcome, now: float) -> RobotsRules:
    """Return the rules that the last outcome of fetching robots.txt stands for.

    Success is parsed. "Unavailable" (4xx, a chain of redirects that was given
    up; section 2.3.1.3) allows all. "Unreachable" (5xx, no network, and 429,
    which is no statement about rules; section 2.3.1.4) disallows all and
    expires in five minutes or when Retry-After says. Other rules last as
    Cache-Control says, ten minutes at least and a day at most. Never raises.
    """
    if isinstance(outcome, Fetched):
        return _from_response(outcome, now)
    if isinstance(outcome, Redirected) or outcome.kind in UNAVAILABLE:
        return RobotsRules(Access.ALLOW_ALL, now + MAX_AGE_S)
    retry_s = outcome.retry_after_s
    if retry_s is None or not math.isfinite(retry_s):
        retry_s = RETRY_S
    return RobotsRules(Access.DISALLOW_ALL, now + min(MAX_AGE_S, max(MIN_RETRY_S, retry_s)))


def _from_response(fetched: Fetched, now: float) -> RobotsRules:
    if fetched.status == 429 or fetched.status >= 500:
        return RobotsRules(Access.DISALLOW_ALL, now + RETRY_S)
    expires_at = now + _max_age_s(fetched.headers)
    if fetched.status >= 300:
        return RobotsRules(Access.ALLOW_ALL, expires_at)
    body = fetched.body
    if len(body) > MAX_ROBOTS_BYTES:
        # Half a line is another rule.
        body = body[:MAX_ROBOTS_BYTES]
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    # RFC 9309 knows UTF-8 only: a charset header on it is a server's default.
    text, _ = decode(body, {})
    return RobotsRules(Access.RULES, expires_at, text)


def _max_age_s(headers: Mapping[str, str]) -> float:
    control = headers.get("cache-control", "")
    match = _MAX_AGE.search(control)
    if match:
        return min(MAX_AGE_S, max(MIN_AGE_S, float(match[1])))
    return MIN_AGE_S if re.search(r"no-(?:cache|store)", control, re.IGNORECASE) else MAX_AGE_S


def _read(text: str) -> tuple[dict[str, _Group], tuple[str, ...]]:
    """Return the groups by lower-case product token, and the sitemaps."""
    groups: dict[str, _Group] = {}
    sitemaps: dict[str, None] = {}
    current: dict[str, _Group] = {}
    has_rules = False
    for line in re.split(r"[\r\n]+", text):
        name, value = _record(line)
        if name in _AGENT_FIELDS:
            if has_rules:
                current, has_rules = {}, False
            token = _group_token(value)
            if token:
                current[token] = groups.setdefault(token, _Group())
        elif name in _RULES:
            has_rules = True
            if value:
                for group in current.values():
                    group.rules.append(f"{_RULES[name]}: {_plain_query(value)}")
        elif name in _DELAY_FIELDS:
            delay_s = _seconds(value)
            for group in current.values():
                group.delay_s = delay_s if group.delay_s is None else group.delay_s
        elif name in _SITEMAP_FIELDS and (url := normalise(value)):
            sitemaps[url] = None
    return groups, tuple(sitemaps)


def _record(line: str) -> tuple[str, str]:
    """Return field (letters only, lower case) and value of a line; a space may stand for ":"."""
    line = line.partition("#")[0].strip()
    name, colon, value = line.partition(":")
    if not colon:
        name, _, value = line.partition(" ")
    value = value.strip()
    if not value.isprintable():  # what Protego would take for the end of the line
        value = quote(value, safe="%/?#[]@!$&'()*+,;=:~ ")
    return re.sub(r"[\s_-]", "", name).lower(), value


def _plain_query(path: str) -> str:
    """Write ":" and "/" plainly in the query: section 2.2.2 takes them for the same as escaped."""
    before, mark, query = path.partition("?")
    if "%" not in query:
        return path
    return before + mark + _ESCAPED_IN_QUERY.sub(lambda m: ":" if m[1] else "/", query)


def _group_token(value: str) -> str:
    if value.startswith("*"):
        return "*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
