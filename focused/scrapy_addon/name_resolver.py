"""Resolve host names with c-ares, and cache the answers.

The operating system resolves names without a dot and those of multicast DNS (RFC 6762), and all
names if no name server is configured. c-ares reads the hosts file itself. Names that resolve to
private addresses are refused.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import ada_url
import aiodns
import pycares
from cachetools import TLRUCache
from scrapy.exceptions import IgnoreRequest
from twisted.internet.error import DNSLookupError

from focused.durations import DAY_S
from focused.errors import ConfigurationError
from focused.web.host_names import (
    IpAddress,
    canonical_address,
    is_loopback_name,
    is_public_address,
    parse_ip_address,
)

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

TRIES = 5
"""As in Mercator (Heydon and Najork 1999); c-ares doubles the timeout of each."""

MIN_TTL_S = 10.0
"""Minimum: a crawl needs a host again within seconds."""
MAX_TTL_S = DAY_S
MISSING_TTL_S = 30.0
"""For names that do not exist; c-ares does not report the SOA's TTL."""
UNRESOLVED_TTL_S = 10.0
"""Far below the five minutes of RFC 2308 section 7; hosts back off anyway."""
SYSTEM_TTL_S = 300.0
"""getaddrinfo(3) reports no time to live."""

_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*")
_MISSING_CODES = frozenset(
    {
        aiodns.error.ARES_ENOTFOUND,
        aiodns.error.ARES_ENODATA,
        aiodns.error.ARES_EBADNAME,
    }
)
# No such name or address; not all systems have both codes.
_MISSING_ERRNOS = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)

logger = logging.getLogger(__name__)


class NoSuchHostError(DNSLookupError):
    """The name does not exist or has no address."""


class NameServerError(DNSLookupError):
    """No name server could answer."""


class PrivateAddressError(IgnoreRequest):
    """The host is at a private address, which the topic does not allow."""


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """The addresses of a name, IPv4 first; ``error`` if there are none."""

    addresses: tuple[str, ...] = ()
    ttl_s: float = 0.0
    error: type[DNSLookupError] | None = None


MISSING = ResolvedName(ttl_s=MISSING_TTL_S, error=NoSuchHostError)
UNRESOLVED = ResolvedName(ttl_s=UNRESOLVED_TTL_S, error=NameServerError)
_LOOPBACK = ResolvedName(("127.0.0.1", "::1"), float("inf"))

Lookup = Callable[[str], Awaitable[ResolvedName]]


class NameResolver:
    """Resolves each name once for all callers, and caches the answer for its TTL."""

    def __init__(
        self,
        lookup: Lookup,
        max_names: int,
        now: Callable[[], float],
        count: Callable[[str], object] = lambda event: None,
    ) -> None:
        """Cache ``max_names`` names, 0 for none; ``now`` in seconds, any origin.

        ``count`` is called with ``"lookups"`` for each lookup, and with ``"missing"`` or
        ``"unanswered"`` for one without an address.
        """
        self._lookup = lookup
        self._count = count
        self._pending: dict[str, asyncio.Task[ResolvedName]] = {}
        self._cache: TLRUCache[str, ResolvedName] | None = None
        if max_names:
            self._cache = TLRUCache(max_names, _expires_at, timer=now)

    def cached(self, host: str) -> ResolvedName | None:
        """Return the cached answer for a URL's host (without port), or None."""
        name = normalize_host(host)
        address = parse_ip_address(name)
        if address is not None:
            return ResolvedName((str(address),), float("inf"))
        if is_loopback_name(name):
            return _LOOPBACK
        return None if self._cache is None else self._cache.get(name)

    async def resolve(self, host: str) -> ResolvedName:
        """Return the answer, from the cache or a lookup; never raises."""
        answer = self.cached(host)
        if answer is not None:
            return answer
        name = normalize_host(host)
        if name not in self._pending:
            self._pending[name] = asyncio.ensure_future(self._resolve(name))
        # shield: a cancelled caller must not cancel the lookup of others.
        return await asyncio.shield(self._pending[name])

    def deprioritize(self, host: str, address: str) -> None:
        """Move an address that refused connections behind the host's others."""
        name = normalize_host(host)
        answer = None if self._cache is None else self._cache.get(name)
        if self._cache is None or answer is None:
            return
        last = sorted(answer.addresses, key=lambda each: canonical_address(each) == address)
        self._cache[name] = replace(answer, addresses=tuple(last))

    async def _resolve(self, name: str) -> ResolvedName:
        answer = UNRESOLVED
        try:
            answer = await self._lookup(name)
        except Exception:  # a bug, or a broken custom lookup
            logger.exception("%s could not be looked up", name)
        finally:
            del self._pending[name]
        self._count("lookups")
        if answer.error is not None:
            self._count("missing" if answer.error is NoSuchHostError else "unanswered")
        if self._cache is not None:
            self._cache[name] = answer
        return answer


def _expires_at(_: str, answer: ResolvedName, now: float) -> float:
    return now + max(MIN_TTL_S, min(MAX_TTL_S, answer.ttl_s))


def make_lookup(settings: BaseSettings) -> Lookup:
    """Return the lookup by the settings: name servers, or the operating system.

    Raises ConfigurationError as :func:`parse_servers` does.
    """
    servers = parse_servers(settings["FOCUSED_DNS_SERVERS"] or "")
    try:
        return DnsLookup(servers, settings.getfloat("DNS_TIMEOUT"))
    except pycares.AresError as error:
        logger.warning(
            "no name server is configured (%s): the operating system resolves names, in threads; "
            "FOCUSED_DNS_SERVERS names others",
            error,
        )
        return system_lookup


class DnsLookup:
    """Queries name servers for IPv4 and IPv6 addresses; TCP for truncated answers."""

    def __init__(self, servers: Sequence[str] = (), timeout_s: float = 31.0) -> None:
        """Query ``servers`` (address:port), or the system's; ``timeout_s`` is for all tries.

        Raises pycares.AresError without any server.
        """
        # Without configured servers c-ares reads resolv.conf and must not assume a default.
        flags = 0 if servers else pycares.ARES_FLAG_NO_DFLT_SVR
        self._resolver = aiodns.DNSResolver(
            servers or None,
            timeout=timeout_s / (2**TRIES - 1),
            tries=TRIES,
            flags=pycares.ARES_FLAG_NOSEARCH | flags,
        )

    async def __call__(self, name: str) -> ResolvedName:
        """Return the name's addresses; never raises."""
        if _is_local(name):
            return await system_lookup(name)
        if not _NAME.fullmatch(name):  # RFC 1035 section 2.3.4
            return MISSING
        try:
            found = await self._resolver.getaddrinfo(name, type=socket.SOCK_STREAM)
        except aiodns.error.DNSError as error:
            return MISSING if error.args[0] in _MISSING_CODES else UNRESOLVED
        addresses = (_address_text(node.addr[0]) for node in found.nodes)
        ttls = [*(node.ttl for node in found.nodes), *(alias.ttl for alias in found.cnames)]
        return ResolvedName(_ipv4_first(addresses), min(ttls, default=0.0))


async def system_lookup(name: str) -> ResolvedName:
    """Return the answer of getaddrinfo(3), from a thread; never raises."""
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return MISSING if error.errno in _MISSING_ERRNOS else UNRESOLVED
    except (OSError, UnicodeError):
        return UNRESOLVED
    return ResolvedName(_ipv4_first(str(address[0]) for *_, address in found), SYSTEM_TTL_S)


def allowed_addresses(host: str, answer: ResolvedName, *, private: bool) -> tuple[str, ...]:
    """Return the addresses of ``answer`` that may be connected to, each once.

    Raises NoSuchHostError, NameServerError, or PrivateAddressError if all addresses are private and
    ``private`` is False.
    """
    if answer.error is NoSuchHostError:
        raise NoSuchHostError(f"no such host: {host}")
    if answer.error is not None:
        raise NameServerError(f"no name server answered for {host}")
    allowed = _allowed(answer.addresses, private=private)
    if not allowed:
        raise PrivateAddressError(f"{host} is at {answer.addresses[0]}, a private address")
    return allowed


@lru_cache(maxsize=10_000)  # pages of a host share addresses
def _allowed(addresses: tuple[str, ...], *, private: bool) -> tuple[str, ...]:
    allowed = [each for each in addresses if private or is_public_address(_checked_address(each))]
    return tuple(dict.fromkeys(map(canonical_address, allowed)))


def normalize_host(host: str) -> str:
    """Return a URL's host for a lookup: lower case, punycode, without a trailing dot."""
    name = host.lower().removesuffix(".")
    if name.isascii():
        return name
    try:
        return str(ada_url.URL(f"http://{name}/").hostname)
    except ValueError:
        return name


def parse_servers(text: str) -> tuple[str, ...]:
    """Parse ``FOCUSED_DNS_SERVERS``, as in ``"127.0.0.1:5353, [::1]:53, 9.9.9.9"``.

    Raises ConfigurationError for anything but addresses with an optional port.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        return ()
    try:
        channel = pycares.Channel(servers=parts)
    except pycares.AresError:
        raise ConfigurationError(
            f"FOCUSED_DNS_SERVERS: {text!r} are not name servers; write IP addresses, with the "
            "port if it is not 53: 9.9.9.9, 127.0.0.1:5353 or [::1]:5353"
        ) from None
    servers = tuple(channel.servers)
    channel.close()
    return servers


def _is_local(name: str) -> bool:
    """Whether the operating system resolves the name: search domains, multicast DNS."""
    return "." not in name or name.endswith(".local")


def _ipv4_first(addresses: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(addresses), key=lambda address: ":" in address))


def _address_text(address: bytes | str) -> str:
    return address.decode() if isinstance(address, bytes) else address


def _checked_address(text: str) -> IpAddress:
    found = parse_ip_address(text)
    if found is None:
        raise ValueError(f"{text!r} is not an IP address")
    return found
