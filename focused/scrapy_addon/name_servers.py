"""Asks name servers: both kinds of address, five tries with growing waits, TCP for long answers.

Mercator (Heydon and Najork 1999) found that a resolver of its own, many
questions at a time, takes look-ups from most of a crawl's time to a little
of it; five tries with growing waits are its, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.task import deferLater
from twisted.names import dns
from twisted.names.client import Resolver

from focused.errors import ConfigurationError
from focused.web.name_answer import (
    MAX_ALIASES,
    UNANSWERED,
    NameAnswer,
    Record,
    RecordType,
    Standing,
    is_askable,
    joined,
    read_answer,
    through,
)

TRIES = 5
PORT = 53
_MOST_SERVERS = 3  # as resolv.conf(5) has it
_TYPES = {RecordType.A: dns.A, RecordType.AAAA: dns.AAAA}
_SERVER = re.compile(
    r"\[([^\[\]]+)\](?::([0-9]{1,5}))?"  # [::1] or [::1]:53
    r"|([^:\[\]]+)(?::([0-9]{1,5}))?"  # 9.9.9.9 or 9.9.9.9:53
    r"|[^\[\]]+"  # ::1
)
_FINAL = frozenset({dns.OK, dns.ENAME})

Server = tuple[str, int]


def servers_of(text: str) -> tuple[Server, ...]:
    """Name servers as ``FOCUSED_DNS_SERVERS`` has them: ``"127.0.0.1:5353, [::1]:53, 9.9.9.9"``.

    Raises ConfigurationError for anything but addresses, with a port or without.
    """
    return tuple(_server(part.strip()) for part in text.split(",") if part.strip())


def _server(text: str) -> Server:
    parts = _SERVER.fullmatch(text)
    try:
        if parts is None:
            raise ValueError(text)
        host, port = (
            str(ip_address(parts[1] or parts[3] or text)),
            int(parts[2] or parts[4] or PORT),
        )
        if not 0 < port < 65536:
            raise ValueError(text)
    except ValueError:
        raise ConfigurationError(
            f"FOCUSED_DNS_SERVERS: {text!r} is no name server; write its IP address, with the "
            "port if it is not 53: 9.9.9.9, 127.0.0.1:5353 or [::1]:5353"
        ) from None
    return host, port


def system_servers(resolv_conf: Path) -> tuple[Server, ...]:
    """The name servers in a file like resolv.conf(5), three at most; none if unreadable."""
    try:
        text = resolv_conf.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    found = [line.split()[1] for line in text.splitlines() if _names_a_server(line)]
    return tuple((address, PORT) for address in found[:_MOST_SERVERS])


def _names_a_server(line: str) -> bool:
    words = line.split()
    if len(words) < 2 or words[0] != "nameserver":
        return False
    try:
        ip_address(words[1])
    except ValueError:
        return False
    return True


def waits_s(all_s: float) -> tuple[float, ...]:
    """Five waits, each twice the one before, ``all_s`` seconds together."""
    return tuple(all_s * 2.0**n / (2**TRIES - 1) for n in range(TRIES))


class NameServers:
    """Asks some name servers, the first of them first."""

    def __init__(self, servers: Sequence[Server], waits: Sequence[float], reactor: Any) -> None:
        """``waits`` in seconds, one for each try; ``reactor`` is Twisted's."""
        self._reactor = reactor
        self._servers = tuple(servers)
        self._waits = tuple(waits)

    async def ask(self, name: str) -> NameAnswer:
        """What is known of ``name``; UNANSWERED after the last try, never an exception."""
        if not is_askable(name):
            return NameAnswer(Standing.MISSING, ttl_s=float("inf"))
        both = [Deferred.fromCoroutine(self._ask(name, wanted)) for wanted in _TYPES]
        answers = cast(list[tuple[bool, NameAnswer]], await DeferredList(both, consumeErrors=True))
        return joined(answer if told else UNANSWERED for told, answer in answers)

    async def _ask(self, name: str, wanted: RecordType) -> NameAnswer:
        """Follow aliases whose target the server left to be asked for."""
        answer = await self._ask_once(name, wanted)
        for _ in range(MAX_ALIASES):
            if not answer.onward or not is_askable(answer.onward):
                return answer
            answer = through(answer, await self._ask_once(answer.onward, wanted))
        return UNANSWERED

    async def _ask_once(self, name: str, wanted: RecordType) -> NameAnswer:
        question = dns.Query(name.encode("ascii"), _TYPES[wanted], dns.IN)
        for number, wait_s in enumerate(self._waits):
            server = self._servers[number % len(self._servers)]
            message = await self._try(server, question, wait_s)
            if message is not None and message.rCode in _FINAL:
                return read_answer(
                    name,
                    wanted,
                    list(_records(message.answers)),
                    list(_records(message.authority)),
                    exists=message.rCode == dns.OK,
                )
            if message is not None and (number + 1) % len(self._servers) == 0:
                # All have answered that they cannot tell; at once they still could not.
                await deferLater(self._reactor, wait_s)
        return UNANSWERED

    async def _try(self, server: Server, question: dns.Query, wait_s: float) -> Any:
        """One question to one server; None when no answer to it came in time."""
        try:
            message = await self._resolver(server).queryUDP([question], (wait_s,))
            if message.trunc:
                message = await self._over_tcp(server, question, wait_s)
        except Exception:  # no socket, no route, no time: nothing that another try may not mend
            return None
        return message if _is_about(message, question) else None

    async def _over_tcp(self, server: Server, question: dns.Query, wait_s: float) -> dns.Message:
        resolver = self._resolver(server)
        try:
            answered = resolver.queryTCP([question], wait_s)
            return cast(dns.Message, await answered.addTimeout(wait_s, self._reactor))
        finally:
            for connection in resolver.connections:
                connection.transport.loseConnection()

    def _resolver(self, server: Server) -> Any:
        return cast(Any, Resolver)(servers=[server], reactor=self._reactor)


def _is_about(message: dns.Message, question: dns.Query) -> bool:
    asked = [(str(each.name).lower(), each.type) for each in message.queries]
    return bool(message.answer) and asked == [(str(question.name).lower(), question.type)]


def _records(headers: Sequence[dns.RRHeader]) -> Iterator[Record]:
    for header in islice(headers, 1_000):
        payload, name = header.payload, str(header.name)
        if isinstance(payload, dns.Record_A | dns.Record_AAAA):
            kind = RecordType.A if isinstance(payload, dns.Record_A) else RecordType.AAAA
            yield Record(name, kind, header.ttl, str(ip_address(payload.address)))
        elif isinstance(payload, dns.Record_CNAME):
            yield Record(name, RecordType.CNAME, header.ttl, str(payload.name))
        elif isinstance(payload, dns.Record_SOA):
            yield Record(name, RecordType.SOA, header.ttl, minimum_s=payload.minimum)
