"""The feature of logins: sessions at the hosts of the topic's ``[login]``."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from focused.scrapy_addon.driver_features import DriverParts
from focused.scrapy_addon.setting import Setting
from focused.topic import Topic

SETTINGS: tuple[Setting, ...] = ()
STATISTICS = {
    "logins/succeeded": "Logins by a form, renewals included; not in `stats.json`.",
    "logins/failed": "Logins that were given up; not in `stats.json`.",
}


def check(settings: BaseSettings) -> None:
    """Check nothing: the feature has no settings."""


def is_on(topic: Topic, settings: BaseSettings) -> bool:
    """Whether the topic has logins; a replayed web needs none."""
    return bool(topic.login) and not settings["FOCUSED_REPLAY"]


def connect(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Log in before the first request to a host, and add credentials to each."""
    from focused.scrapy_addon.login_gate import LoginGate
    from focused.scrapy_addon.login_session import check_login_support, open_sessions

    check_login_support(settings, topic)
    sessions = open_sessions(topic.login)
    return DriverParts(
        gates=[lambda driver: LoginGate.of_driver(sessions, driver)], authenticators=[sessions]
    )
