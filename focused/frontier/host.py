"""The state of the hosts of a frontier, and of the servers at their addresses."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from focused.frontier.host_pace import HostPace

_ROW = struct.Struct(">QQddIdI")
"""Pages requested, fetched, unproductive; due at, failures, crawl-delay, suspensions.

The address follows.
"""


@dataclass(slots=True, eq=False)
class Server:
    """The hosts at one address, which share a connection and a delay.

    ``waiting_hosts`` wait for the server alone: a heap of (-priority, due at, stamp, host).
    ``representative_stamp`` is the stamp of the one that was moved from there to the due hosts.
    ``busy`` counts fetches in flight, ``fetched`` the pages of all ``hosts``.
    """

    address: str
    due_at: float = 0.0
    busy: int = 0
    fetched: int = 0
    hosts: dict[Host, None] = field(default_factory=dict)
    waiting_hosts: list[tuple[float, float, int, Host]] = field(default_factory=list)
    representative_stamp: int = 0
    stamp: int = 0


@dataclass(slots=True, eq=False)
class Host:
    """The state of one host.

    ``best`` is the rank of its best link not in flight, or None; ``bonus`` is added to it.
    ``best_is_exempt`` is that link's ``is_exempt``.
    ``asked`` pages were settled, failures included; ``fetched`` came; ``unproductive`` is a running
    count, see :func:`focused.frontier.queued_link.unproductive_after`. ``leased`` is the queue key
    of the link in flight since ``leased_at``. ``in_turn``: it has links and budget left. While
    ``reserved`` for a direct request it is not offered.
    """

    name: str
    number: int
    pace: HostPace = field(default_factory=HostPace)
    asked: int = 0
    fetched: int = 0
    unproductive: float = 0.0
    best: float | None = None
    best_is_exempt: bool = False
    bonus: float = 0.0
    leased: bytes | None = None
    leased_at: float = 0.0
    reserved: bool = False
    stamp: int = 0
    in_turn: bool = False
    server: Server | None = None
    prefix: bytes = field(init=False)
    """The host's number, as the key of its rows."""

    def __post_init__(self) -> None:
        self.prefix = struct.pack(">I", self.number)

    @property
    def address(self) -> str:
        """The address, or empty if unknown."""
        return "" if self.server is None else self.server.address


def host_to_row(host: Host) -> bytes:
    """Encode the host's state without name, number and links."""
    pace = host.pace
    row = _ROW.pack(
        host.asked,
        host.fetched,
        host.unproductive,
        pace.due_at,
        pace.failures,
        pace.crawl_delay_s,
        pace.suspensions,
    )
    return row + host.address.encode()


def restore_host(host: Host, row: bytes) -> str:
    """Restore the host's state from its row; return its address."""
    host.asked, host.fetched, host.unproductive, *pace = _ROW.unpack_from(row)
    host.pace = HostPace(*pace)
    return row[_ROW.size :].decode()
