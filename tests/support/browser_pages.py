"""Pages for a real Chromium: where it is, what it is served, and sockets that it must not reach."""

import importlib.util
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from focused.rendering.chromium import find_browser
from focused.rendering.subrequests import (
    RenderLimits,
    Subrequest,
    SubrequestPolicy,
    SubrequestRefusedError,
    SubrequestResponse,
)
from focused.web.page import Fetched

HTML = {"content-type": "text/html; charset=utf-8"}
SANDBOX = os.geteuid() != 0
LIMITS = RenderLimits(time_s=6.0, memory_mb=1_000.0)


def browser() -> str:
    """The path of Chromium; without it CI fails, and others skip."""
    found, playwright = find_browser(None), importlib.util.find_spec("playwright")
    if found and playwright:
        return found
    missing = [name for name, one in (("chromium", found), ("playwright", playwright)) if not one]
    reason = f"not installed: {', '.join(missing)}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def page(html: str, url: str = "https://site.example/page") -> Fetched:
    return Fetched(url, 200, HTML, html.encode())


@dataclass
class Site:
    """Serves subrequests from memory by the policy of a page; ``asked`` are the URLs served."""

    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    before: Callable[[Subrequest], object] = lambda request: None
    private_addresses: bool = False

    async def fetch(self, request: Subrequest) -> SubrequestResponse:
        policy = SubrequestPolicy("https://site.example/page", (), self.private_addresses)
        if (reason := policy.refusal(request)) is not None:
            raise SubrequestRefusedError(reason)
        self.asked.append(request.url)
        waiting = self.before(request)
        if waiting is not None:
            await waiting  # type: ignore[misc]
        kind, text = self.files.get(request.url, ("text/plain", "not found"))
        status = 200 if request.url in self.files else 404
        return SubrequestResponse(status, {"content-type": kind}, text.encode())


@dataclass
class Listener:
    """Open TCP and UDP ports on the loopback of this machine."""

    tcp: socket.socket
    udp: socket.socket

    @property
    def port(self) -> int:
        port: int = self.tcp.getsockname()[1]
        return port

    @property
    def udp_port(self) -> int:
        port: int = self.udp.getsockname()[1]
        return port

    def was_reached(self) -> bool:
        """Whether a connection or a datagram came."""
        for reach in (self.tcp.accept, lambda: self.udp.recvfrom(64)):
            try:
                reach()
            except BlockingIOError:
                continue
            return True
        return False


@contextmanager
def listener() -> Iterator[Listener]:
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        tcp.setblocking(False)
        udp.setblocking(False)
        yield Listener(tcp, udp)
