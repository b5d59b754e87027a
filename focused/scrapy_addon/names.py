"""Host names that do not exist, told from those that could not be looked up.

Twisted says of both that the look-up failed, and drops what the system's
resolver said (getaddrinfo(3)). So the system is asked once more, for a name
that failed and for no other.
"""

from __future__ import annotations

import asyncio
import socket

from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.error import DNSLookupError
from twisted.internet.threads import deferToThread

# No such name, or none with an address that Scrapy would ask for; not all systems have both.
_MISSING = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)


class NoSuchHostError(DNSLookupError):
    """The name is known not to exist."""


async def is_missing(name: str) -> bool:
    """Whether the system's resolver says that there is no such host; not while it is silent."""
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
