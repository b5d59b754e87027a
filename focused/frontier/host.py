"""One host of a frontier, and the server behind it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from focused.frontier.politeness import HostPace

_ROW = struct.Struct(">QQddIdI")
"""Pages asked for, fetched, barren; due at, failures in a row, crawl delay in seconds, times aside.

The address follows."""


@dataclass(slots=True, eq=False)
class Server:
    """The hosts at one address: one connection, one delay for all.

    ``aside`` are hosts that wait for the server alone, a heap by worth:
    (-worth, due at, stamp, host). ``envoy`` is the stamp of the one that was
    called from there and waits among the hosts that are due. ``busy`` counts fetches under way,
    ``fetched`` the pages of all ``hosts`` that stand here.
    """

    address: str
    due_at: float = 0.0
    busy: int = 0
    fetched: int = 0
    hosts: dict[Host, None] = field(default_factory=dict)
    aside: list[tuple[float, float, int, Host]] = field(default_factory=list)
    envoy: int = 0
    stamp: int = 0


@dataclass(slots=True, eq=False)
class Host:
    """One host's state.

    ``best`` is the priority of its best link that is not under way, None when
    there is none; ``hope`` is what is added to that. Of ``asked`` pages, those
    that failed included, ``fetched`` came; ``barren`` of late brought nothing
    (:func:`focused.frontier.exploration.barren_after`). ``leased`` is the place of
    the link under way in the host's queue, since ``leased_at``. ``in_turn``
    tells whether it has links that may be asked for, now or later; while it is
    ``reserved`` for a request past the frontier it is offered to nobody.
    """

    name: str
    number: int
    pace: HostPace = HostPace()  # noqa: RUF009 -- it is frozen
    asked: int = 0
    fetched: int = 0
    barren: float = 0.0
    best: float | None = None
    hope: float = 0.0
    leased: bytes | None = None
    leased_at: float = 0.0
    reserved: bool = False
    stamp: int = 0
    in_turn: bool = False
    server: Server | None = None
    prefix: bytes = field(init=False)
    """Its number as the key of its rows."""

    def __post_init__(self) -> None:
        self.prefix = struct.pack(">I", self.number)

    @property
    def address(self) -> str:
        """Where the host stands, as far as is known; else empty."""
        return "" if self.server is None else self.server.address


def to_row(host: Host) -> bytes:
    """What is kept of a host, but for its name, number and links."""
    pace = host.pace
    row = _ROW.pack(
        host.asked,
        host.fetched,
        host.barren,
        pace.due_at,
        pace.failures,
        pace.crawl_delay_s,
        pace.times_aside,
    )
    return row + host.address.encode()


def restore(host: Host, row: bytes) -> str:
    """Give a host what was kept of it; return its address."""
    host.asked, host.fetched, host.barren, *pace = _ROW.unpack_from(row)
    host.pace = HostPace(*pace)
    return row[_ROW.size :].decode()
