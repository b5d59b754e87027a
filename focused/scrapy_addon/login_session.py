"""Sessions at hosts that require a login.

Credentials and cookies exist only in :class:`LoginSession`. The download handler adds them to a
request when it is sent, and removes Set-Cookie from the response: middlewares, spiders, logs, the
archive and the WARC files never see them.

Secrets come from environment variables or the keyring of the operating system. Those of search
servers: :mod:`focused.search.search_servers`. In WARC records :mod:`focused.web.warc_records`
redacts those of hosts without a login.
"""

from __future__ import annotations

import logging
import os
import warnings
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.cookiejar import Cookie, LoadError, MozillaCookieJar
from importlib import import_module
from pathlib import Path
from time import time
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Headers, Response, TextResponse
from scrapy.http.cookies import CookieJar
from scrapy.settings import BaseSettings

from focused.errors import ConfigurationError, missing_extra, print_notice
from focused.scrapy_addon.robots_request import is_robots_request
from focused.topic import Topic
from focused.topic.login import Login, is_secret_reference
from focused.web.urls import normalize_url

logger = logging.getLogger(__name__)

LOGIN_KEY = "focused_login"
"""Key of ``request.meta``: the login whose session a request belongs to, counted from 1."""
LOGIN = "login"
"""Its value for the requests of a login itself."""

_REDIRECT_SIGN = "redirect to the login page"
_TEXT_SIGN = "the text of expired_text"


class AfterResponse(Enum):
    """What to do with a response of a session."""

    KEEP = "keep"
    FETCH_AGAIN = "fetch again"
    REFUSE = "refuse"


class LoginSession:
    """The session of one login, valid or not."""

    def __init__(self, login: Login, credentials: Credentials) -> None:
        """Raises ConfigurationError if the file of cookies is unusable."""
        self.login = login
        self.credentials = credentials
        self.number = 0
        """Successful logins so far; 0: not logged in yet."""
        self.error = ""
        """Why the last login failed, or empty."""
        self.blocked_until = 0.0
        """When the next login may begin, in seconds of the crawl's clock."""
        self._is_valid = False
        self._jar = CookieJar()
        self._header = _authorization(login, credentials)
        self._fetched_again: dict[str, str] = {}
        self._ended: Counter[str] = Counter()
        self._denied: Counter[str] = Counter()
        self._has_warned = False
        if login.cookies is not None:
            for cookie in _read_cookies(login.cookies, login):
                self._jar.set_cookie(cookie)
        if login.method != "form":
            self.begin()

    def __repr__(self) -> str:
        return f"LoginSession({self.login.hosts})"

    @property
    def name(self) -> str:
        """The hosts, for messages."""
        return ", ".join(self.login.hosts)

    @property
    def is_ready(self) -> bool:
        """Whether requests may be sent in this session."""
        return self._is_valid

    @property
    def has_cookies(self) -> bool:
        """Whether the session has any cookie."""
        return len(self._jar) > 0

    def begin(self) -> None:
        """Record a successful login."""
        self.number += 1
        self.error = ""
        self._is_valid = True

    def reset(self) -> None:
        """Forget the cookies of the previous session before a login."""
        self._jar = CookieJar()

    def add_credentials(self, request: Request, headers: Headers) -> None:
        """Add what authenticates ``request`` to the headers that are sent."""
        if self._header:
            headers.setdefault("Authorization", self._header)
        carrier = Request(request.url)
        self._jar.add_cookie_header(carrier)
        cookies = carrier.headers.get("Cookie")
        if cookies:
            headers["Cookie"] = cookies

    def take_cookies(self, request: Request, response: Response) -> None:
        """Store the response's cookies and remove them from it."""
        self._jar.extract_cookies(response, request)
        remove_cookies(response)

    def is_login_page(self, url: str) -> bool:
        """Whether a URL is the login page, whatever its query."""
        return bool(self.login.url) and _page_of(url) == _page_of(self.login.url)

    def shows_expiry_text(self, response: Response) -> bool:
        """Whether the response contains ``expired_text``."""
        marker = self.login.expired_text
        return bool(marker) and isinstance(response, TextResponse) and marker in response.text

    def expiry_sign(self, response: Response) -> str:
        """Return what says that the response's session has ended, or an empty text."""
        if response.status in (401, 403):
            return f"status {response.status}"
        if 300 <= response.status < 400:
            location = (response.headers.get("Location") or b"").decode("latin-1")
            target = normalize_url(location, response.url) if location else None
            return _REDIRECT_SIGN if target and self.is_login_page(target) else ""
        return _TEXT_SIGN if self.shows_expiry_text(response) else ""

    def after_response(self, url: str, number: int, sign: str) -> AfterResponse:
        """Return what to do with the response for ``url``, sent in session ``number``.

        ``sign`` as from :meth:`expiry_sign`. A sign that stays after a renewal is the page's own
        answer; after ``max_tries`` of these more than real ends the sign no longer renews.
        """
        sign_before = self._fetched_again.pop(url, "")
        if self.is_login_page(url):
            return AfterResponse.KEEP
        if not sign:
            self._ended[sign_before] += bool(sign_before)
            return AfterResponse.KEEP
        if self.login.method != "form":
            self._warn(sign)
            is_certain = sign in (_REDIRECT_SIGN, _TEXT_SIGN)
            return AfterResponse.REFUSE if is_certain else AfterResponse.KEEP
        if number < self.number or not self._is_valid:
            return AfterResponse.FETCH_AGAIN
        if sign_before:
            self._denied[sign] += 1
            return AfterResponse.KEEP
        if self._denied[sign] - self._ended[sign] >= self.login.max_tries:
            return AfterResponse.KEEP
        self._fetched_again[url] = sign
        self._is_valid = False
        logger.info("the session at %s has ended: %s", self.name, sign)
        return AfterResponse.FETCH_AGAIN

    def _warn(self, sign: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            remedy = {
                "cookies": "export the cookies of a new session",
                "bearer": "set a valid token",
            }.get(self.login.method, "check user name and password")
            report_error(f"{self.name} does not accept the login ({sign}): {remedy}")


def report_error(message: str) -> None:
    """Log an error about a login and print it; it must hold no secret."""
    logger.error(message)
    print_notice(message)


class LoginSessions:
    """All logins of a crawl."""

    def __init__(self, sessions: Iterable[LoginSession]) -> None:
        self._sessions = tuple(sessions)
        self._hosts = {host: each for each in self._sessions for host in each.login.hosts}

    def of_url(self, url: str) -> LoginSession | None:
        """Return the session that a request to ``url`` belongs to, or None."""
        normalised = normalize_url(url)
        if normalised is None:
            return None
        found = self._hosts.get(urlsplit(normalised).netloc)
        return found if found is not None and found.login.covers(normalised) else None

    def of_request(self, request: Request) -> LoginSession | None:
        """Return the session of a request; requests for robots.txt have none."""
        return None if is_robots_request(request) else self.of_url(request.url)

    def authenticate(self, request: Request, headers: Headers) -> bool:
        """Add the request's credentials to the headers that are sent; return whether it has any."""
        login = self.of_request(request)
        if login is not None:
            login.add_credentials(request, headers)
        return login is not None

    def take_cookies(self, request: Request, response: Response) -> bool:
        """Remove the cookies of hosts with a login from a response; the session stores them.

        Those of robots.txt, and of the same host over http, belong to no session. Return whether
        the host has a login.
        """
        login = self.of_request(request)
        if login is not None:
            login.take_cookies(request, response)
            return True
        has_login = urlsplit(normalize_url(request.url) or "").netloc in self._hosts
        if has_login:
            remove_cookies(response)
        return has_login

    def of_page(self, request: Request) -> LoginSession | None:
        """Return the session of a request that needs one; None for the login itself."""
        return None if request.meta.get(LOGIN_KEY) == LOGIN else self.of_request(request)


def remove_cookies(response: Response) -> None:
    """Remove the cookies that a response sets."""
    for name in ("Set-Cookie", "Set-Cookie2"):
        response.headers.pop(name, None)


def open_sessions(logins: Iterable[Login]) -> LoginSessions:
    """Read the secrets of all logins. Raises ConfigurationError and MissingExtraError."""
    return LoginSessions(LoginSession(each, resolve_credentials(each)) for each in logins)


def check_login_support(settings: BaseSettings, topic: Topic) -> None:
    """Raise ConfigurationError or MissingExtraError if the crawl cannot log in."""
    if {"http", "https"} & set(settings.getdict("DOWNLOAD_HANDLERS")):
        raise ConfigurationError(
            f"{topic.path}: [login] needs the add-on's download handler: remove http and https "
            "from DOWNLOAD_HANDLERS"
        )
    if any(each.method == "form" for each in topic.login):
        try:
            import_module("form2request")
        except ModuleNotFoundError as error:
            raise missing_extra(error, "[login]") or error from None


def _authorization(login: Login, credentials: Credentials) -> str:
    if login.method == "basic":
        pair = f"{credentials.username}:{credentials.password}".encode()
        return f"Basic {b64encode(pair).decode()}"
    return f"Bearer {credentials.token}" if login.method == "bearer" else ""


def _page_of(url: str) -> tuple[str, str]:
    parts = urlsplit(normalize_url(url) or url)
    return parts.netloc, parts.path.rstrip("/")


def _read_cookies(path: Path, login: Login) -> list[Cookie]:
    """Return the cookies of the login's hosts that have not expired."""
    jar = MozillaCookieJar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the jar, about lines that it cannot read
            # Exports write 0 for cookies that end with the browser session; those would be dropped.
            jar.load(str(path), ignore_discard=True, ignore_expires=True)
    except (LoadError, OSError, UnicodeDecodeError, ValueError):
        # The error's message may quote a line of the file.
        raise ConfigurationError(
            f"{path}: is not a readable file of cookies in the Netscape format (cookies.txt)"
        ) from None
    names = [urlsplit(f"//{host}").hostname or "" for host in login.hosts]
    own = [each for each in jar if any(_belongs_to(each, name) for name in names)]
    if not own:
        raise ConfigurationError(f"{path}: holds no cookie of {', '.join(login.hosts)}")
    valid = [each for each in own if not each.expires or each.expires > time()]
    if not valid:
        raise ConfigurationError(
            f"{path}: all cookies of {', '.join(login.hosts)} have expired; export them again"
        )
    for cookie in valid:
        if not cookie.expires:
            cookie.expires, cookie.discard = None, True
    return valid


def _belongs_to(cookie: Cookie, host: str) -> bool:
    domain = cookie.domain.lstrip(".").lower()
    return host == domain or (cookie.domain.startswith(".") and host.endswith(f".{domain}"))


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of one login; its ``repr`` shows none."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def resolve_credentials(login: Login, environment: Mapping[str, str] | None = None) -> Credentials:
    """Return the secrets that the login refers to; ``environment`` defaults to the process's.

    Raises ConfigurationError for a secret that is missing or cannot be sent, and MissingExtraError
    without keyring. No message contains a secret.
    """
    where = os.environ if environment is None else environment
    username = login.username
    if is_secret_reference(username):
        username = _resolve(username, login, where)
    password = _resolve(login.password, login, where) if login.password else ""
    token = _resolve(login.token, login, where) if login.token else ""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(
            f"{_section(login)}: {login.token} holds characters that a bearer token cannot have "
            "(RFC 6750), such as spaces or line breaks"
        )
    if login.method == "basic" and ":" in username:
        raise ConfigurationError(
            f"{_section(login)}: the user name holds a colon, which HTTP Basic cannot send"
        )
    return Credentials(username, password, token)


def _resolve(reference: str, login: Login, environment: Mapping[str, str]) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env":
        secret = environment.get(name, "")
        if not secret:
            raise ConfigurationError(
                f"{_section(login)}: the environment variable {name} is not set"
            )
        return secret
    service, _, user = name.partition("/")
    return _from_keyring(service, user, login)


def _from_keyring(service: str, user: str, login: Login) -> str:
    try:
        import keyring
        import keyring.errors
    except ModuleNotFoundError as error:
        raise missing_extra(error, "[login]") or error from None
    try:
        secret = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise ConfigurationError(
            f"{_section(login)}: the keyring cannot be read: {type(error).__name__}: {error}"
        ) from None
    if not secret:
        raise ConfigurationError(
            f"{_section(login)}: the keyring has no password of {user} at {service}; store it with "
            f"keyring set {service} {user}"
        )
    return secret


def _section(login: Login) -> str:
    return f"[login] of {', '.join(login.hosts)}"
