"""Where connections go: to the one address of a host that was looked at, and has its turn.

Twisted asks the reactor's resolver at the moment of connecting, connects to
nothing but what it says, and tries the next address when the first is slow. So
it is told of one: neither a name that has just changed its address (DNS
rebinding) nor a second address, where another host may be asked, is connected to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from scrapy.resolver import HostResolution
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution, IResolutionReceiver
from zope.interface import implementer

from focused.scrapy_addon.names import written_alike


@implementer(IHostnameResolver)
class CheckedResolver:
    """Answers for the hosts that the crawl asks; of all others it asks who was there before.

    What else lives in the process (a pipeline's database, a proxy) keeps its
    names, private addresses among them.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, str] = {}
        self._before: Any = None

    def answer_for(self, host: str, address: str) -> None:
        """From now on ``host`` is one that the crawl asks, at ``address``."""
        self._hosts[written_alike(host)] = address

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
        address = self._hosts.get(written_alike(hostName))
        if address is None and self._before is not None:
            return cast(
                IHostResolution,
                self._before.resolveHostName(
                    resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
                ),
            )
        receiver, resolution = cast(Any, resolutionReceiver), HostResolution(hostName)
        receiver.resolutionBegan(resolution)
        if address is not None:
            kind = IPv6Address if ":" in address else IPv4Address
            if addressTypes is None or kind in addressTypes:
                receiver.addressResolved(kind("TCP", address, portNumber))
        receiver.resolutionComplete()
        return cast(IHostResolution, resolution)
