"""Requests to hosts with a login: log in first, renew the session when it ends.

A request of the frontier returns to its queue while the crawl logs in; other requests wait. The
requests of a login pass all checks like any other: robots.txt and delays apply.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from focused.scrapy_addon.crawl_clock import Clock
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.driver_features import Driver
from focused.scrapy_addon.form_login import LoginError, LoginRejectedError, log_in_by_form
from focused.scrapy_addon.login_session import (
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
