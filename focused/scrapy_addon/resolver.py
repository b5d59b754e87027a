"""Where connections go: a crawl's own names, each address looked at before it is connected to.

Twisted asks the reactor's resolver at the moment of connecting, and connects
to nothing but what it says. So a name whose address has changed since it was
last looked at (DNS rebinding) meets the same check again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from scrapy.resolver import HostResolution
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution, IResolutionReceiver
from zope.interface import implementer

from focused.scrapy_addon.names import Names, usable, written_alike
from focused.web.name_answer import NameAnswer


@implementer(IHostnameResolver)
class CheckedResolver:
    """Answers for the hosts that the crawl asks; of all others it asks who was there before.

    What else lives in the process (a pipeline's database, a proxy) keeps its
    names, private addresses among them.
    """

    def __init__(self, names: Names, *, private: bool) -> None:
        self._names = names
        self._private = private
        self._hosts: set[str] = set()
        self._before: Any = None

    def answer_for(self, host: str) -> None:
        """From now on ``host`` is one that the crawl asks."""
        self._hosts.add(written_alike(host))

    def install(self, reactor: Any) -> None:
        """Become the reactor's resolver; harmless when it is."""
        if self._before is None:
            self._before = reactor.installNameResolver(self)

    def uninstall(self, reactor: Any) -> None:
        """Leave; where another came on top, stay and answer for no host."""
        self._hosts.clear()
        if self._before is not None and reactor.nameResolver is self:
            reactor.installNameResolver(self._before)
            self._before = None

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type] | None = None,
        transportSemantics: str = "TCP",
    ) -> IHostResolution:
        """See IHostnameResolver."""
        if written_alike(hostName) not in self._hosts and self._before is not None:
            return cast(
                IHostResolution,
                self._before.resolveHostName(
                    resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
                ),
            )
        receiver, resolution = cast(Any, resolutionReceiver), HostResolution(hostName)
        receiver.resolutionBegan(resolution)

        def tell(answer: NameAnswer) -> None:
            for address in usable(hostName, answer, private=self._private):
                kind = IPv6Address if ":" in address else IPv4Address
                if addressTypes is None or kind in addressTypes:
                    receiver.addressResolved(kind("TCP", address, portNumber))

        told = self._names.look_up(hostName).addCallback(tell)
        # This protocol has no word for why; who connects says that nothing was found.
        told.addBoth(lambda _: receiver.resolutionComplete())
        return cast(IHostResolution, resolution)
