"""A request as Twisted's client takes it, which writes nothing."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.web.http_headers import Headers


class Asked:
    method, absoluteURI, persistent = b"GET", None, True  # noqa: N815  # Twisted's name
    headers = Headers()

    def writeTo(self, transport: object) -> Deferred[None]:  # noqa: N802  # Twisted's name
        return succeed(None)

    def stopWriting(self) -> None:  # noqa: N802  # Twisted's name
        pass
