"""Scrapy's responses and exceptions as outcomes of the core."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import OpenSSL.SSL
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Request, Response
from service_identity import VerificationError
from twisted.internet import error as net
from twisted.web.client import ResponseFailed

from focused.web.page import Failed, FailureKind, Outcome
from focused.web.response import outcome_of


class RobotsDenied(IgnoreRequest):
    """robots.txt does not let us fetch this URL."""


_MAX_DETAIL_CHARS = 200
_TLS = (ssl.SSLError, OpenSSL.SSL.Error, VerificationError)
_KINDS: tuple[tuple[tuple[type[BaseException], ...], FailureKind], ...] = (
    ((CannotResolveHostError, net.DNSLookupError, socket.gaierror), FailureKind.DNS),
    ((DownloadTimeoutError, net.TimeoutError, net.TCPTimedOutError), FailureKind.TIMEOUT),
    ((DownloadConnectionRefusedError, net.ConnectError), FailureKind.CONNECT),
    ((DownloadCancelledError,), FailureKind.TOO_LARGE),
    ((ResponseDataLossError, net.ConnectionLost, net.ConnectionDone), FailureKind.RESET),
    ((UnsupportedURLSchemeError,), FailureKind.BAD_REDIRECT),
    ((RobotsDenied,), FailureKind.ROBOTS),
    ((IgnoreRequest,), FailureKind.DROPPED),
    ((DownloadFailedError, ResponseFailed), FailureKind.RESET),
)


def outcome_of_response(request: Request, response: Response, now: float) -> Outcome:
    """The outcome behind a response; ``now`` dates an HTTP-date in Retry-After."""
    headers = {
        name.decode("latin-1").lower(): b", ".join(values).decode("latin-1")
        for name, values in response.headers.items()
    }
    elapsed_s = float(request.meta.get("download_latency", 0.0))
    return outcome_of(response.status, headers, request.url, response.body, elapsed_s, now)


def outcome_of_exception(request: Request, exception: BaseException) -> Failed:
    """The failure behind an exception of the download handlers or a middleware."""
    kind = kind_of_exception(exception)
    detail = f"{type(exception).__name__}: {exception}"[:_MAX_DETAIL_CHARS]
    return Failed(request.url, kind, detail=detail)


def kind_of_exception(exception: BaseException) -> FailureKind:
    """The kind of failure that an exception stands for."""
    if any(isinstance(each, _TLS) for each in _behind(exception)):
        return FailureKind.TLS
    for types, kind in _KINDS:
        if isinstance(exception, types):
            return kind
    return FailureKind.OTHER


def _behind(exception: BaseException) -> Iterator[BaseException]:
    """The exception, what it was raised from, and what Twisted keeps in ``reasons``."""
    seen: BaseException | None = exception
    while seen is not None:
        yield seen
        for reason in getattr(seen, "reasons", ()):
            yield reason.value
        seen = seen.__cause__
