"""Requests to hosts with a login: log in first, renew the session when it ends.

A login by a form fetches its page, fills it in, submits it, and follows the redirects. A request of
the frontier returns to its queue while the crawl logs in; other requests wait. The requests of a
login pass all checks like any other: robots.txt and delays apply.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse

from focused.durations import Clock
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.driver_features import Driver
from focused.scrapy_addon.login_session import (
    LOGIN,
    LOGIN_KEY,
    AfterResponse,
    LoginSession,
    LoginSessions,
    report_error,
)
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    LoginFailedError,
    RobotsDeniedError,
    outcome_from_scrapy_response,
)
from focused.web.urls import normalize_url

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

Download = Callable[[Request], Awaitable[Response]]

MAX_LOGIN_REDIRECTS = 10

_SECRET_INPUT = 'input[translate(@type, "PASWORD", "pasword") = "password"]'  # noqa: S105  # XPath
_NAME_TYPES = frozenset({"", "text", "email"})
_USER_NAME = re.compile(
    r"user|login|log_?on|e?-?mail|account|nick|(?:^|\W)(?:name|id|uid)(?:$|\W)", re.I
)
# Fields that people do not see catch programs.
_HIDDEN = """ancestor-or-self::*[ancestor::form][
    @hidden or @aria-hidden = "true" or self::input[@tabindex = "-1"]
    or contains(translate(@style, " ", ""), "display:none")
    or contains(translate(@style, " ", ""), "visibility:hidden")]"""


class LoginError(Exception):
    """A login failed and may be tried again; the message holds no secret."""


class LoginRejectedError(LoginError):
    """The site rejects the login, or its form is unusable: trying again cannot help."""


async def log_in_by_form(session: LoginSession, download: Download) -> None:
    """Log in; the session's cookies are those of the responses.

    Raises LoginError, LoginRejectedError and the exceptions of ``download``.
    """
    session.reset()
    page = await _follow(session, _request(session.login.url), download)
    if page.status >= 400:
        raise LoginError(f"the login page answers with status {page.status}")
    submission = _fill_in(session, page)
    after = await _follow(session, submission, download)
    if after.status >= 500 or after.status == 429:
        raise LoginError(f"the form was answered with status {after.status}")
    if after.status >= 400 or session.shows_expiry_text(after):
        raise LoginRejectedError("the site rejects user name or password")
    if session.is_login_page(after.url) and _find_form(session, after) is not None:
        raise LoginRejectedError("the site shows the login form again: it rejects the login")
    if not session.has_cookies:
        raise LoginRejectedError("the site set no cookie after the login")
    session.begin()


def _request(url: str) -> Request:
    return Request(url, meta=_meta(), dont_filter=True)


def _meta() -> dict[str, object]:
    return {
        LOGIN_KEY: LOGIN,
        "dont_merge_cookies": True,
        "dont_cache": True,
        "handle_httpstatus_all": True,
    }


async def _follow(session: LoginSession, request: Request, download: Download) -> Response:
    """Send a request and follow redirects within the session's hosts."""
    for _ in range(MAX_LOGIN_REDIRECTS + 1):
        response = await download(request)
        location = (response.headers.get("Location") or b"").decode("latin-1")
        if response.status not in (301, 302, 303, 307, 308) or not location:
            return response
        if request.method == "POST" and response.status in (307, 308):
            raise LoginRejectedError("the form redirects the password to another URL")
        target = normalize_url(location, response.url)
        if target is None or not session.login.covers(target):
            return response
        request = _request(target)
    raise LoginError("the login redirects without end")


def _fill_in(session: LoginSession, page: Response) -> Request:
    """Return the request that submits the form. Raises LoginRejectedError if it must not be."""
    from form2request import form2request  # an extra

    form = _find_form(session, page)
    if form is None:
        raise LoginRejectedError(f"{session.login.url} has no form with a password field")
    login = session.login
    password_field = login.password_field or _name_of(form.xpath(f".//{_SECRET_INPUT}[@name]"))
    username_field = login.username_field or _username_field(form)
    if not password_field or not username_field:
        raise LoginRejectedError(
            "the fields of the form are not recognised; set username_field and password_field"
        )
    data = {
        **login.fields,
        username_field: session.credentials.username,
        password_field: session.credentials.password,
    }
    try:
        filled = form2request(form, data)
    except (ValueError, NotImplementedError) as error:
        raise LoginRejectedError(f"the form cannot be sent: {type(error).__name__}") from None
    url = normalize_url(filled.url)
    if filled.method != "POST":
        raise LoginRejectedError("the form would send the password in its URL (method GET)")
    if url is None or not login.covers(url):
        raise LoginRejectedError(
            f"the form would send the password to {urlsplit(filled.url).netloc}, which is not in "
            "hosts, or over http"
        )
    return Request(
        url,
        method="POST",
        headers=dict(filled.headers),
        body=filled.body,
        meta=_meta(),
        dont_filter=True,
    )


def _find_form(session: LoginSession, page: Response) -> Selector | None:
    if not isinstance(page, TextResponse):
        return None
    try:
        if session.login.form:
            found = page.css(session.login.form).xpath("self::form")
        else:
            found = page.xpath(f"//form[.//{_SECRET_INPUT}]")
    except ValueError:  # a page without text, or an invalid selector
        return None
    return min(found, key=_is_for_new_passwords, default=None)


def _is_for_new_passwords(form: Selector) -> bool:
    """Whether a form registers somebody or changes a password, instead of logging in."""
    secrets = form.xpath(f".//{_SECRET_INPUT}")
    return len(secrets) != 1 or secrets[0].attrib.get("autocomplete", "").lower() == "new-password"


def _username_field(form: Selector) -> str:
    """Return the name of the field before the password that is likeliest for the user's name."""
    found, best = "", (False, False, False)
    for field in form.xpath(".//input"):
        attributes = field.attrib
        kind = attributes.get("type", "").strip().lower()
        if kind == "password":
            break
        if kind in _NAME_TYPES and attributes.get("name"):
            completion = attributes.get("autocomplete", "").lower().split()
            rating = (
                not field.xpath(_HIDDEN),
                bool({"username", "email"} & set(completion)),
                bool(_USER_NAME.search(f"{attributes['name']} {attributes.get('id', '')}")),
            )
            if rating >= best:
                found, best = attributes["name"], rating
    return found


def _name_of(inputs: SelectorList[Selector]) -> str:
    """Return the name of the first input, or an empty text."""
    return str(inputs[0].attrib["name"]) if inputs else ""


logger = logging.getLogger(__name__)

_RETRY_INTERVAL_S = 0.5
_ENDS_SESSION = re.compile(
    r"(?i:(?<![a-z])(?:log|sign)[-_]?(?:out|off)(?![a-z]))|(?:Log|Sign)[Oo](?:ut|ff)(?![a-z])"
)


def ends_session(url: str) -> bool:
    """Whether a URL looks like one that ends a session."""
    return _ENDS_SESSION.search(url.split("/", 3)[-1]) is not None


class LoginGate:
    """Holds requests back until their session is ready; notices when it has ended."""

    def __init__(
        self, logins: LoginSessions, runner: LoginRunner, slot: CrawlSlot, clock: Clock
    ) -> None:
        self._logins = logins
        self._runner = runner
        self._slot = slot
        self._clock = clock

    @classmethod
    def of_driver(cls, logins: LoginSessions, driver: Driver) -> LoginGate:
        """Create and connect."""
        runner = LoginRunner(driver)
        driver.crawler.signals.connect(runner.cancel, signals.spider_closed)
        return cls(logins, runner, driver.slot, driver.clock)

    async def before(self, request: Request, *, is_leased: bool) -> None:
        """Let the request pass in a valid session; raises an exception to refuse it."""
        login = self._logins.of_page(request)
        if login is None:
            return
        if ends_session(request.url):
            raise IgnoreRequest(f"{request.url[:200]} would end the session")
        if not login.is_ready and self._clock() >= login.blocked_until:
            if is_leased:
                self._runner.start(login)
                self._hold_back(request)
                raise FetchPostponed(f"the crawl logs in at {login.name} first")
            await self._runner.start(login)
        if not login.is_ready:
            raise LoginFailedError(f"the login at {login.name} failed: {login.error}")
        request.meta[LOGIN_KEY] = login.number

    def _hold_back(self, request: Request) -> None:
        """Let the frontier offer the request's host again only after a moment."""
        url, now = normalize_url(request.url) or request.url, self._clock()
        self._slot.crawl.hosts.delay(url, now + _RETRY_INTERVAL_S, now)

    def after(self, request: Request, response: Response, *, is_leased: bool) -> None:
        """Refuse a response whose session had ended."""
        login, number = self._logins.of_page(request), request.meta.get(LOGIN_KEY)
        if login is None or not number:
            return
        step = login.after_response(request.url, number, login.expiry_sign(response))
        if step is AfterResponse.REFUSE:
            raise LoginFailedError(f"the session at {login.name} has ended")
        if step is AfterResponse.KEEP or not is_leased:
            return
        now = self._clock()
        outcome = outcome_from_scrapy_response(request, response, now, self._clock.real_s)
        url = normalize_url(request.url) or request.url
        self._slot.crawl.hosts.touch(url, outcome, now)
        if not login.is_ready and now >= login.blocked_until:
            self._runner.start(login)
        raise FetchPostponed(f"the session at {login.name} has ended")


class LoginRunner:
    """Logs in, once at a time for each session."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._running: dict[LoginSession, asyncio.Task[None]] = {}

    def start(self, login: LoginSession) -> asyncio.Task[None]:
        """Return the task of a login, which runs already or begins now."""
        task = self._running.get(login)
        if task is None:
            task = asyncio.ensure_future(self._log_in(login))
            self._running[login] = task
            task.add_done_callback(lambda _: self._running.pop(login, None))
        return task

    def cancel(self) -> None:
        """Cancel the logins when the crawl ends."""
        for task in self._running.values():
            task.cancel()

    async def _log_in(self, login: LoginSession) -> None:
        """Log in, at most ``max_tries`` times; blocks the login for a while if all fail."""
        reason, is_final = "", False
        for _ in range(login.login.max_tries):
            reason, is_final = await self._try(login)
            if not reason or is_final or not self._driver.slot.is_open:
                break
        self._driver.engine.wake()
        if self._driver.slot.is_open:
            self._report(login, reason, is_final=is_final)

    async def _try(self, login: LoginSession) -> tuple[str, bool]:
        """Return why a login failed, empty if it did not, and whether to give up."""
        try:
            await log_in_by_form(login, self._driver.engine.download)
        except (LoginRejectedError, RobotsDeniedError) as error:
            return str(error), True
        except LoginError as error:
            return str(error), False
        except Exception as error:  # of the download: its message names the URL
            return f"{type(error).__name__}: {error}", False
        return "", False

    def _report(self, login: LoginSession, reason: str, *, is_final: bool) -> None:
        driver = self._driver
        if not reason:
            driver.statistics.count("logins/succeeded")
            logger.info("logged in at %s", login.name)
            return
        pause_s = 0.0 if is_final else driver.topic.politeness.suspend_s
        login.error = reason
        login.blocked_until = driver.clock() + (pause_s or math.inf)
        driver.statistics.count("logins/failed")
        report_error(f"the login at {login.name} failed: {reason}")
