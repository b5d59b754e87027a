"""Host names and the addresses they lead to: asked once, kept, shared by all who wait.

The hosts file and the names of this machine come first, then name servers.
Names without a dot, and those of multicast DNS, are the system's own business;
so are all names where no name server is known.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import ada_url
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.internet.error import DNSLookupError
from twisted.internet.threads import deferToThread
from twisted.names.hosts import searchFileForAll
from twisted.python.filepath import FilePath

from focused.crawl.name_cache import NameCache
from focused.web.addresses import Address, is_loopback_name, is_public, literal, spelled_alike
from focused.web.name_answer import UNANSWERED, NameAnswer, Standing

# No such name, or none with an address that Scrapy would ask for; not all systems have both.
_MISSING = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)
_LOOPBACK = NameAnswer(Standing.FOUND, ("127.0.0.1", "::1"), ttl_s=float("inf"))
# getaddrinfo(3) tells no time to live.
_SYSTEM_TTL_S = 300.0
HOSTS_FILE = Path("/etc/hosts")
_HOSTS_TTL_S = 60.0


logger = logging.getLogger(__name__)


class NoSuchHostError(DNSLookupError):
    """The name is known not to exist."""


class UnansweredNameError(DNSLookupError):
    """No name server could tell."""


class PrivateAddressError(IgnoreRequest):
    """The host is no public server, and the topic lets in no others."""


class Names:
    """Looks names up; Twisted's, for one running reactor."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[NameAnswer]],
        cache: NameCache,
        now: Callable[[], float],
        hosts_file: Path = HOSTS_FILE,
    ) -> None:
        """``ask`` never raises; ``now`` in seconds, any origin."""
        self._ask = ask
        self._cache = cache
        self._now = now
        self._hosts_file = hosts_file
        self._waiting: dict[str, list[Deferred[NameAnswer]]] = {}

    def known(self, host: str) -> NameAnswer | None:
        """What is known of a URL's host (without port) already."""
        return self._known(written_alike(host))

    def look_up(self, host: str) -> Deferred[NameAnswer]:
        """The same, asked for where it is not known; never fails."""
        answered: Deferred[NameAnswer] = Deferred()
        name = written_alike(host)
        known = self._known(name)
        if known is not None:
            answered.callback(known)
        elif name in self._waiting:
            self._waiting[name].append(answered)
        else:
            self._waiting[name] = [answered]
            Deferred.fromCoroutine(self._ask_for(name))
        return answered

    def pass_over(self, host: str, address: str) -> None:
        """No connection came about there: another address of the host, if known, is next."""
        self._cache.pass_over(written_alike(host), address)

    def _known(self, name: str) -> NameAnswer | None:
        address = literal(name)
        if address is not None:
            return NameAnswer(Standing.FOUND, (str(address),), ttl_s=float("inf"))
        if is_loopback_name(name):
            return _LOOPBACK
        return self._cache.get(name, self._now())

    async def _ask_for(self, name: str) -> None:
        answer = UNANSWERED
        try:
            answer = self._in_hosts_file(name) or await self._ask(name)
            self._cache.put(name, answer, self._now())
        except Exception:  # our own fault; whoever waits hears that nothing is known
            logger.exception("%s could not be looked up", name)
        finally:
            for waiter in self._waiting.pop(name):
                if not waiter.called:
                    waiter.callback(answer)

    def _in_hosts_file(self, name: str) -> NameAnswer | None:
        search = cast(Callable[[Any, bytes], list[str]], searchFileForAll)
        addresses = search(FilePath(str(self._hosts_file)), name.encode())
        if not addresses:
            return None
        return NameAnswer(Standing.FOUND, _version_4_first(addresses), _HOSTS_TTL_S)


def usable(host: str, answer: NameAnswer, *, private: bool) -> tuple[str, ...]:
    """The addresses of ``answer`` that may be connected to, each once, spelled alike.

    Raises NoSuchHostError, UnansweredNameError, or PrivateAddressError when
    all of them are private and ``private`` is False.
    """
    if answer.standing is Standing.MISSING:
        raise NoSuchHostError(f"no such host: {host}")
    if answer.standing is Standing.UNANSWERED:
        raise UnansweredNameError(f"no name server could tell where {host} is")
    fit = _fit(answer.addresses, private=private)
    if not fit:
        raise PrivateAddressError(f"{host} is at {answer.addresses[0]}, a private address")
    return fit


@lru_cache(maxsize=10_000)  # a host's next pages stand where its last one stood
def _fit(addresses: tuple[str, ...], *, private: bool) -> tuple[str, ...]:
    fit = [each for each in addresses if private or is_public(_address(each))]
    return tuple(dict.fromkeys(map(spelled_alike, fit)))


async def ask_system(name: str) -> NameAnswer:
    """What getaddrinfo(3) says, in a thread; never raises."""
    return await cast(Deferred[NameAnswer], deferToThread(_system_answer, name))


def is_the_systems_own(name: str) -> bool:
    """Whether no name server is to be asked: search domains and multicast DNS (RFC 6762)."""
    return "." not in name or name.endswith(".local")


def _system_answer(name: str) -> NameAnswer:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        missing = error.errno in _MISSING
        return NameAnswer(Standing.MISSING, ttl_s=_SYSTEM_TTL_S) if missing else UNANSWERED
    except (OSError, UnicodeError):
        return UNANSWERED
    addresses = dict.fromkeys(str(address[0]) for *_, address in found)
    return NameAnswer(Standing.FOUND, _version_4_first(addresses), _SYSTEM_TTL_S)


def written_alike(host: str) -> str:
    """A URL's host in the one spelling that is looked up: lower case, punycode, no last dot."""
    name = host.lower().removesuffix(".")
    if name.isascii():
        return name
    try:
        return str(ada_url.URL(f"http://{name}/").hostname)
    except ValueError:
        return name


def _address(text: str) -> Address:
    found = literal(text)
    if found is None:
        raise ValueError(f"{text!r} is no IP address")
    return found


def _version_4_first(addresses: Any) -> tuple[str, ...]:
    return tuple(sorted(addresses, key=lambda address: ":" in address))


async def is_missing(name: str) -> bool:
    """Whether the system's resolver says that there is no such host; not while it is silent.

    For the failures of a resolver that is not ours: Twisted says of both that
    the look-up failed, and drops what getaddrinfo(3) said.
    """
    if is_asyncio_available():
        return await asyncio.to_thread(_looked_up_in_vain, name)
    return await maybe_deferred_to_future(deferToThread(_looked_up_in_vain, name))


def _looked_up_in_vain(name: str) -> bool:
    try:
        socket.gethostbyname(name)
    except socket.gaierror as error:
        return error.errno in _MISSING
    except (OSError, UnicodeError):
        return False
    return False


def looked_up_by_us(errors: Iterator[BaseException]) -> bool | None:
    """Whether the name is known to be missing, by what we raised; None when it was not us."""
    for error in errors:
        if isinstance(error, NoSuchHostError):
            return True
        if isinstance(error, UnansweredNameError | PrivateAddressError):
            return False
    return None
