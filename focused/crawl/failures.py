"""What each kind of failure means: is it the host's trouble, and is it worth another try?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from focused.web.page import FailureKind


@dataclass(frozen=True, slots=True)
class FailureRule:
    """``again``: the link may be tried again; ``host_trouble``: its host backs off."""

    again: bool
    host_trouble: bool


_TRANSIENT = FailureRule(again=True, host_trouble=True)
_THIS_URL_ONLY = FailureRule(again=False, host_trouble=False)

RULES: Mapping[FailureKind, FailureRule] = {
    FailureKind.DNS: _TRANSIENT,
    FailureKind.NO_HOST: _TRANSIENT,
    FailureKind.CONNECT: _TRANSIENT,
    FailureKind.TIMEOUT: _TRANSIENT,
    FailureKind.RESET: _TRANSIENT,
    FailureKind.TLS: FailureRule(again=False, host_trouble=True),
    FailureKind.THROTTLED: _TRANSIENT,
    FailureKind.SERVER_ERROR: _TRANSIENT,
    FailureKind.DROPPED: _THIS_URL_ONLY,
    FailureKind.UNDIGESTED: _THIS_URL_ONLY,
    FailureKind.CLIENT_ERROR: _THIS_URL_ONLY,
    FailureKind.GONE: _THIS_URL_ONLY,
    FailureKind.TOO_LARGE: _THIS_URL_ONLY,
    FailureKind.WRONG_TYPE: _THIS_URL_ONLY,
    FailureKind.WRONG_LANGUAGE: _THIS_URL_ONLY,
    FailureKind.EMPTY: _THIS_URL_ONLY,
    FailureKind.BAD_REDIRECT: _THIS_URL_ONLY,
    FailureKind.ROBOTS: _THIS_URL_ONLY,
    FailureKind.DIRECTORY_BUDGET: _THIS_URL_ONLY,
    FailureKind.OTHER: FailureRule(again=True, host_trouble=False),
}
