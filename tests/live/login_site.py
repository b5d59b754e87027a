"""A site whose pages need a login, and a second site, on loopback; every request is noted."""

import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs

from tests.support.recorded_web import html
from tests.support.serving import QuietHandler, serving

USER, PASSWORD, CSRF = "ishmael", "call-me+white&whale", "token-of-the-form"
MEMBERS, OTHERS = "members.whales.test", "others.whales.test"
PAGES = 8


@dataclass(frozen=True)
class Received:
    host: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    at_s: float


@dataclass
class LoginSite:
    """``uses`` is how many pages a session is good for."""

    uses: int = 1_000
    robots: str = ""
    forbidden: frozenset[str] = frozenset()
    port: int = 0
    scheme: str = "http"
    received: list[Received] = field(default_factory=list)
    sessions: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, host: str, path: str = "/0") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    def asked(self, host: str, method: str = "GET") -> list[str]:
        return [each.path for each in self.received if (each.host, each.method) == (host, method)]

    def logins(self) -> int:
        return len(self.asked(MEMBERS, "POST"))

    def page(self, number: int) -> bytes:
        links = [f"/{(number + step) % PAGES}" for step in (1, 2, 3)]
        links += ["/logout", "/away", self.url(OTHERS)]
        return html(f"whale {number}", *links, text=f"members only, whale {number}")

    def answer(self, request: Received) -> tuple[int, bytes, dict[str, str]]:
        path = request.path.partition("?")[0]
        if path == "/robots.txt":
            cookies = {"Set-Cookie": "robots=1"} if request.host == MEMBERS else {}
            return 200, self.robots.encode(), {"Content-Type": "text/plain", **cookies}
        if request.host == OTHERS:
            return 200, html("whale elsewhere", self.url(MEMBERS, "/1")), {}
        if path == "/login":
            return self.log_in(request)
        if not self.is_in_session(request):
            return 302, b"", {"Location": f"/login?next={path}"}
        if path in self.forbidden:
            return 403, b"<p>not for you", {}
        if path == "/away":
            return 302, b"", {"Location": self.url(OTHERS, "/from-members")}
        return 200, self.page(int(path[1:])), {}

    def log_in(self, request: Received) -> tuple[int, bytes, dict[str, str]]:
        form = (
            "<title>Sign in</title><form method=post action=/login>"
            f"<input type=hidden name=csrf value={CSRF}><input name=user>"
            "<input type=Password name=secret><button name=go value=1>Sign in</button></form>"
        )
        if request.method == "GET":
            return 200, form.encode(), {}
        given = {name: values[0] for name, values in parse_qs(request.body).items()}
        if given != {"csrf": CSRF, "user": USER, "secret": PASSWORD, "go": "1"}:
            return 200, form.encode(), {}
        session = f"session-of-ishmael-{len(self.sessions)}"
        self.sessions[session] = self.uses
        cookie = f"sid={session}; Path=/; HttpOnly; Domain=.whales.test"
        return 303, b"", {"Location": "/0", "Set-Cookie": cookie}

    def is_in_session(self, request: Received) -> bool:
        sent = request.headers.get("Cookie", "").split("; ")
        with self.lock:
            session = dict(each.partition("=")[::2] for each in sent).get("sid", "")
            self.sessions[session] -= 1
            return self.sessions[session] >= 0


@contextmanager
def serve(site: LoginSite, tls: ssl.SSLContext | None = None) -> Iterator[LoginSite]:
    """Serve the site at all loopback addresses until the block ends, over TLS with a context."""

    class Handler(QuietHandler):
        def reply(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length).decode()
            host = self.headers["Host"].partition(":")[0]
            headers = dict(self.headers.items())
            request = Received(host, self.command, self.path, headers, body, time.monotonic())
            site.received.append(request)
            status, content, more = site.answer(request)
            self.respond(status, content, **{"Content-Type": "text/html; charset=utf-8", **more})

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)  # all of 127.0.0.0/8
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        site.scheme = "https"
    site.port = server.server_address[1]
    with serving(server):
        yield site
