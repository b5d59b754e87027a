"""TLS servers on loopback, good and bad, a port each; certificates are made on the spot."""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.serving import close_servers, loop_in_thread

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
_PAGE = b"<title>Whales</title><p>whales at port %d"
_RECORD = b"\x17\x03\x03\x00\x30" + bytes(48)  # application data that no key has made
_NAME = "localhost"


@dataclass(frozen=True, slots=True)
class Certificate:
    """``days`` from now it expires; nobody else has signed it."""

    name: str = _NAME
    days: int = 30

    def path(self, folder: Path) -> Path:
        """Where :meth:`context` writes certificate and key."""
        return folder / f"{self.name}{self.days}.pem"

    def context(self, folder: Path) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(subject, subject, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=60))
            .not_valid_after(now + timedelta(days=self.days))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(self.name)]), critical=False)
            .sign(key, hashes.SHA256())
        )
        path = self.path(folder)
        path.write_bytes(
            made.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


@dataclass(frozen=True, slots=True)
class Server:
    """Without a certificate it speaks no TLS: ``serve`` gets the greeting as it is."""

    serve: Serve
    certificate: Certificate | None = None


def says(raw: bytes, *, then_silence: bool = False) -> Serve:
    """Answers a greeting with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4_096)
        writer.write(raw)
        if then_silence:
            await reader.read()

    return serve


async def _no_rules(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    asked = await reader.readuntil(b"\r\n\r\n")
    if asked.startswith(b"GET /robots.txt"):
        writer.write(b"HTTP/1.1 404 None\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return True
    return False


async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if not await _no_rules(reader, writer):
        body = _PAGE % writer.get_extra_info("sockname")[1]
        writer.write(_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)


async def half_a_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if not await _no_rules(reader, writer):
        writer.write(_HEAD + b"Content-Length: 900\r\n\r\n" + _PAGE % 1)
        await writer.drain()
        writer.transport.abort()


def broken_record(*, after_s: float) -> Serve:
    """A page that goes on, past TLS, in a record that the client cannot read.

    The record comes with the page's last segment, or later, when the client waits for it.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await _no_rules(reader, writer):
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, not after_s)
            writer.write(_HEAD + b"Content-Length: 900\r\n\r\n" + _PAGE % 1)
            await writer.drain()
            await asyncio.sleep(after_s)
            os.write(connection.fileno(), _RECORD)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, False)
            await reader.read()

    return serve


@contextmanager
def serve_tls(servers: Mapping[str, Server], folder: Path) -> Iterator[Mapping[str, str]]:
    """Serve until the block ends; yields each server's URL."""
    listening: list[asyncio.Server] = []

    async def begin(server: Server) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await server.serve(reader, writer)
            writer.close()

        # Clients that break off are what is tested.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        context = None if server.certificate is None else server.certificate.context(folder)
        listening.append(await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
        return f"https://{_NAME}:{listening[-1].sockets[0].getsockname()[1]}/"

    with loop_in_thread() as run:
        try:
            yield {name: run(begin(server)) for name, server in servers.items()}
        finally:
            run(close_servers(*listening))
