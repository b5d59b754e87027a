"""A name server on loopback, UDP and TCP, in a thread; its zone is a dictionary.

Built on the messages of twisted.names alone: no reactor, so that it serves
crawls in other processes and tests of Twisted's own side alike.
"""

import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from twisted.names import dns

from tests.support.serving import serving

TYPES = {dns.A: "A", dns.AAAA: "AAAA"}


@dataclass(frozen=True)
class DnsAnswer:
    """One answer: addresses of both kinds, or an alias, or a code; ``minimum_s`` adds an SOA."""

    addresses: Sequence[str] = ()
    alias: str = ""
    code: int = dns.OK
    ttl_s: int = 300
    minimum_s: int | None = None
    silent: bool = False
    long: bool = False  # too long for a datagram
    loops: bool = False  # a name in the answer is compressed to itself


NO_SUCH_NAME = DnsAnswer(code=dns.ENAME, minimum_s=60)
FAILS = DnsAnswer(code=dns.ESERVER)
SILENT = DnsAnswer(silent=True)


def at(*addresses: str, ttl_s: int = 300) -> DnsAnswer:
    return DnsAnswer(addresses, ttl_s=ttl_s)


Zone = Mapping[str, DnsAnswer | Sequence[DnsAnswer]]
"""The answers for a name: always the same, or one after the other (the last stays), by type."""


@dataclass
class NameServer:
    """``asked`` holds (name, "A" or "AAAA") in order; over TCP also "TCP"."""

    zone: Zone
    port: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    _answers_given: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def answer(self, data: bytes, *, over_tcp: bool) -> bytes | None:
        question = dns.Message()
        question.fromStr(data)
        query = question.queries[0]
        name, kind = str(query.name), TYPES[query.type]
        with self._lock:
            self.asked.append((name, kind, "TCP") if over_tcp else (name, kind))
            answer = self._next(name.lower(), kind, again=over_tcp)
        if answer.silent:
            return None
        if answer.loops:
            head = data[:2] + b"\x81\x80" + b"\0\1" * 2 + bytes(4)
            return head + data[12:] + struct.pack("!H", 0xC000 + len(data)) + data[-4:] + bytes(6)
        reply = dns.Message(question.id, answer=1, rCode=answer.code, recAv=1)
        reply.queries = question.queries
        reply.maxSize = 0 if over_tcp else 512
        if answer.long and not over_tcp:
            reply.trunc = 1
            return reply.toStr()
        self._fill(reply, name, kind, answer)
        return reply.toStr()

    def _next(self, name: str, kind: str, *, again: bool) -> DnsAnswer:
        answer = self.zone.get(name, NO_SUCH_NAME)
        if isinstance(answer, DnsAnswer):
            return answer
        number = self._answers_given.get((name, kind), 0)
        self._answers_given[name, kind] = number + (not again)
        return answer[min(number, len(answer) - 1)]

    def _fill(self, reply: dns.Message, name: str, kind: str, answer: DnsAnswer) -> None:
        here = name
        if answer.alias:
            payload = dns.Record_CNAME(answer.alias, answer.ttl_s)
            reply.answers.append(dns.RRHeader(here, dns.CNAME, dns.IN, answer.ttl_s, payload))
            here = answer.alias
        for address in answer.addresses:
            if (":" in address) == (kind == "AAAA"):
                record = dns.Record_AAAA if kind == "AAAA" else dns.Record_A
                header = dns.RRHeader(here, record.TYPE, dns.IN, answer.ttl_s, record(address))
                reply.answers.append(header)
        if answer.minimum_s is not None:
            soa = dns.Record_SOA(b"ns.test", b"admin.test", minimum=answer.minimum_s, ttl=86_400)
            reply.authority.append(dns.RRHeader(b"test", dns.SOA, dns.IN, 86_400, soa))


class _Udp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, socket = self.request
        reply = self.server.name_server.answer(data, over_tcp=False)
        if reply is not None:
            socket.sendto(reply, self.client_address)


class _Tcp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        (length,) = struct.unpack("!H", self.request.recv(2))
        reply = self.server.name_server.answer(self.request.recv(length), over_tcp=True)
        if reply is not None:
            self.request.sendall(struct.pack("!H", len(reply)) + reply)


def _on_one_port(tries: int = 20) -> list[socketserver.BaseServer]:
    """A UDP and a TCP server; a port that is free for the one may be taken for the other."""
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    udp = socketserver.ThreadingUDPServer(("127.0.0.1", 0), _Udp)
    try:
        tcp = socketserver.ThreadingTCPServer(("127.0.0.1", udp.server_address[1]), _Tcp)
    except OSError:
        udp.server_close()
        if tries == 1:
            raise
        return _on_one_port(tries - 1)
    return [udp, tcp]


@contextmanager
def serve_names(zone: Zone) -> Iterator[NameServer]:
    """Serve the zone on one port, until the block ends."""
    server = NameServer(zone)
    both = _on_one_port()
    server.port = both[0].server_address[1]
    for each in both:
        each.name_server = server  # type: ignore[attr-defined]
    with serving(*both):
        yield server
