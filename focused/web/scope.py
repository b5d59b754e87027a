"""Which URLs may be asked for: the topic's scope, compiled to answer in a microsecond."""

from __future__ import annotations

import re

import ada_url

from focused.errors import ConfigurationError
from focused.topic import Scope, Topic
from focused.web.addresses import is_private_host
from focused.web.traps import trap_in

_INTRANET = "scope.private_addresses = true lets in hosts of your own network"


class ScopeFilter:
    """Says why a URL is out of a :class:`Scope`.

    What needs more than the URL (languages, content types, counts per host,
    sizes) is settled after or around the fetch, not here.
    """

    def __init__(self, scope: Scope) -> None:
        self._allow_hosts = frozenset(scope.allow_hosts)
        self._deny_hosts = frozenset(scope.deny_hosts)
        self._allow_paths = tuple(re.compile(pattern) for pattern in scope.allow_paths)
        self._deny_paths = tuple(re.compile(pattern) for pattern in scope.deny_paths)
        self._max_depth = scope.max_depth
        self._private = scope.private_addresses
        self._traps = scope.traps
        self._has_paths = bool(self._allow_paths or self._deny_paths)
        self._only_depth = not (
            self._allow_hosts or self._deny_hosts or self._allow_paths or self._deny_paths
        )

    def refuses(self, url: str, depth: int = 0) -> str | None:
        """Why ``url`` may not be asked for, or None when it may.

        ``url`` is absolute and normalised (see :mod:`focused.web.url`),
        ``depth`` its distance from the seed in links. The reasons are short
        and few, fit to be counted: ``"too deep"``, ``"private address"``,
        ``"host denied"``, ``"host not allowed"``, ``"path denied"``,
        ``"path not allowed"``, and those of :func:`focused.web.traps.trap_in`,
        which seeds do not get. Where a name stands is not known here.
        """
        if self._max_depth is not None and depth > self._max_depth:
            return "too deep"
        if not (self._only_depth and self._private):
            reason = self._out_of_bounds(url)
            if reason is not None:
                return reason
        return trap_in(url) if self._traps and depth > 0 else None

    def is_open(self, host: str, depth: int) -> bool:
        """Whether only its own shape can refuse a link to that host, with its port, at ``depth``.

        That is what :meth:`is_plain` tells of.
        """
        if self._has_paths or (self._max_depth is not None and depth > self._max_depth):
            return False
        return self._out_of_bounds(f"http://{host}/") is None

    def is_plain(self, url: str) -> bool:
        """Whether the URL looks like no trap."""
        return not self._traps or trap_in(url) is None

    def _out_of_bounds(self, url: str) -> str | None:
        host, path = _split(url)
        if not self._private and is_private_host(host):
            return "private address"
        if self._only_depth:
            return None
        if self._deny_hosts and _covered(host, self._deny_hosts):
            return "host denied"
        if self._allow_hosts and not _covered(host, self._allow_hosts):
            return "host not allowed"
        if any(pattern.search(path) for pattern in self._deny_paths):
            return "path denied"
        if self._allow_paths and not any(pattern.search(path) for pattern in self._allow_paths):
            return "path not allowed"
        return None


def check_seeds_in_scope(topic: Topic) -> None:
    """Raise :class:`ConfigurationError` when the scope refuses one of the topic's own seeds."""
    scope = ScopeFilter(topic.scope)
    refused = [(seed, scope.refuses(ada_url.URL(seed).href)) for seed in topic.seeds.urls]
    lines = [
        f"{topic.path}: seeds: {seed} is out of the topic's own [scope]: {reason}"
        + (f"; {_INTRANET}" if reason == "private address" else "")
        for seed, reason in refused
        if reason is not None
    ]
    if lines:
        raise ConfigurationError("\n".join(lines))


def _split(url: str) -> tuple[str, str]:
    """Host without user and port, and path with query.

    Slices instead of parsing: ten times faster, and right for normalised URLs.
    """
    start = url.find("://") + 3
    end = url.find("/", start)
    if end < 0:
        end = len(url)
    host = url[start:end]
    if "@" in host:
        host = host[host.rfind("@") + 1 :]
    if ":" in host and not host.endswith("]"):
        host = host[: host.rfind(":")]
    return host.rstrip("."), url[end:].partition("#")[0] or "/"


def _covered(host: str, names: frozenset[str]) -> bool:
    """Whether ``host`` or a domain above it is among ``names``."""
    while host not in names:
        dot = host.find(".")
        if dot < 0:
            return False
        host = host[dot + 1 :]
    return True
