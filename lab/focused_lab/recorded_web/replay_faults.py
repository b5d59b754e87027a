"""Faults of a replayed web: a deterministic plan of latency, errors and broken responses.

Latencies of several faults add up; of the others the first that applies counts. Whether a fault
applies depends only on seed, URL and attempt.

On the command line::

    docs.*:kind=503,rate=0.1                  a status, 400 to 599
    *:kind=429,retry_after_s=2,attempts=1     only the first request of each URL
    slow.example.org:kind=latency,latency_s=0.1-0.5
    *.org/robots.txt:kind=drop-headers        a pattern with "/" matches host and path
    *:kind=drop-body,rate=0.02
    big.example.org:kind=slow,bytes_per_s=2000
    cms.example.org:kind=modified-now         a server that lies about its pages
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from focused.durations import DAY_S
from focused.errors import ConfigurationError
from focused.text import hash_fraction
from focused.web.http_response import parse_http_date
from focused_lab.recorded_web.conditional_requests import http_date, is_conditional, is_not_modified

if TYPE_CHECKING:
    from focused_lab.recorded_web.recorded_web import RecordedResponse


class FaultKind(StrEnum):
    """What a fault does; ``STATUS`` is written as its number (``kind=503``)."""

    LATENCY = "latency"
    STATUS = "status"
    DROP_HEADERS = "drop-headers"
    DROP_BODY = "drop-body"
    SLOW = "slow"
    CONSTANT_ETAG = "constant-etag"
    CHANGING_ETAG = "changing-etag"
    MODIFIED_NOW = "modified-now"
    FUTURE_CLOCK = "future-clock"
    ALWAYS_NOT_MODIFIED = "always-304"
    SOFT_404 = "soft-404"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of some hosts.

    ``hosts`` is a pattern with ``*`` and ``?`` for the host, or for host and path if it contains a
    "/". ``rate`` in (0, 1] is the share of affected requests; ``attempts`` limits the fault to the
    first requests of each URL. ``latency_s`` is a uniform range. Raises ConfigurationError for
    values that are out of range or belong to another kind.
    """

    hosts: str
    kind: FaultKind
    rate: float = 1.0
    attempts: int | None = None
    latency_s: tuple[float, float] | None = None
    status: int | None = None
    retry_after_s: int | None = None
    bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        for problem, is_wrong in (
            ("the host pattern is empty", not self.hosts),
            ("rate must be above 0 and at most 1", not 0 < self.rate <= 1),
            ("attempts must be at least 1", self.attempts is not None and self.attempts < 1),
            *self._problems_of_kind(),
        ):
            if is_wrong:
                raise ConfigurationError(f"fault for {self.hosts!r}: {problem}")

    def _problems_of_kind(self) -> tuple[tuple[str, bool], ...]:
        status, latency, speed = self.status, self.latency_s, self.bytes_per_s
        return (
            (
                "latency_s belongs to kind=latency and must be seconds or a range (0.1-0.5)",
                (latency is None) == (self.kind is FaultKind.LATENCY)
                or (latency is not None and not 0 <= latency[0] <= latency[1] < math.inf),
            ),
            (
                "a status fault is written as its number, 400 to 599 (kind=503)",
                (status is None) == (self.kind is FaultKind.STATUS)
                or (status is not None and not 400 <= status <= 599),
            ),
            (
                "retry_after_s belongs to a status (kind=429) and is whole seconds from 0",
                self.retry_after_s is not None
                and (self.kind is not FaultKind.STATUS or self.retry_after_s < 0),
            ),
            (
                "bytes_per_s belongs to kind=slow and must be above 0",
                (speed is None) == (self.kind is FaultKind.SLOW)
                or (speed is not None and not 0 < speed < math.inf),
            ),
        )

    def __str__(self) -> str:
        """Return the text that :func:`parse_fault` reads."""
        options = {"kind": str(self.status or self.kind)}
        if self.rate != 1.0:
            options["rate"] = repr(self.rate)
        if self.latency_s is not None:
            # Fixed-point: "1e-05" contains the separator.
            options["latency_s"] = "-".join(f"{seconds:.6f}" for seconds in self.latency_s)
        for key in ("attempts", "retry_after_s", "bytes_per_s"):
            if getattr(self, key) is not None:
                options[key] = repr(getattr(self, key))
        return f"{self.hosts}:" + ",".join(f"{key}={value}" for key, value in options.items())


@dataclass(frozen=True, slots=True)
class FaultEffects:
    """Effects on one request; ``fault`` is None without a fault besides latency."""

    latency_s: float = 0.0
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of a replay and the seed that selects the affected requests."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0

    def effects(self, host: str, path: str, attempt: int) -> FaultEffects:
        """Return the effects on one request; ``attempt`` counts the URL's requests from 1."""
        latency_s, struck = 0.0, None
        for number, fault in enumerate(self.faults):
            if not fnmatchcase(host + path if "/" in fault.hosts else host, fault.hosts):
                continue
            if fault.attempts is not None and attempt > fault.attempts:
                continue
            draw = self._draw(f"{number} strike {attempt} {host}{path}")
            if draw >= fault.rate:
                continue
            if fault.latency_s is not None:
                low, high = fault.latency_s
                latency_s += low + (high - low) * self._draw(
                    f"{number} wait {attempt} {host}{path}"
                )
            elif struck is None:
                struck = fault
        return FaultEffects(latency_s, struck)

    def _draw(self, what: str) -> float:
        """Return a number in [0, 1) that depends only on the seed and ``what``."""
        return hash_fraction(f"{self.seed} {what}")


def parse_fault(text: str) -> Fault:
    """Parse ``HOSTPATTERN:kind=KIND[,key=value...]``.

    Raises ConfigurationError that quotes the text and names the wrong key.
    """
    hosts, colon, rest = text.rpartition(":")
    if not colon or "=" not in rest:
        raise ConfigurationError(
            f"fault {text!r}: expected HOSTPATTERN:kind=KIND, such as 'docs.*:kind=503,rate=0.1'"
        )
    where = f"fault {text!r}"
    options: dict[str, Any] = {}
    for part in rest.split(","):
        key, equals, value = map(str.strip, part.partition("="))
        if not equals:
            raise ConfigurationError(f"{where}: {part!r} is not key=value")
        if key in options:
            raise ConfigurationError(f"{where}: {key} is given twice")
        if key not in _OPTIONS:
            known = ", ".join(_OPTIONS)
            raise ConfigurationError(f"{where}: unknown key {key}; known are {known}")
        parse, expected = _OPTIONS[key]
        try:
            options[key] = parse(value)
        except ValueError:
            raise ConfigurationError(f"{where}: {key} must be {expected}, not {value!r}") from None
    if "kind" not in options:
        raise ConfigurationError(f"{where}: kind must be {_OPTIONS['kind'][1]}")
    kind = options.pop("kind")
    if isinstance(kind, int):
        kind, options["status"] = FaultKind.STATUS, kind
    try:
        return Fault(hosts.strip(), kind, **options)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _parse_kind(text: str) -> FaultKind | int:
    return int(text) if text.isdecimal() else FaultKind(text)


def _parse_range(text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    return float(low), float(high or low)


_OPTIONS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "kind": (
        _parse_kind,
        "a status (503, 429) or one of "
        + ", ".join(kind for kind in FaultKind if kind is not FaultKind.STATUS),
    ),
    "rate": (float, "a number"),
    "attempts": (int, "a whole number"),
    "latency_s": (_parse_range, "a number or a range (0.1-0.5)"),
    "retry_after_s": (int, "a whole number"),
    "bytes_per_s": (float, "a number"),
}


FUTURE_S = 365 * DAY_S
"""How far a clock in the future is ahead."""

_GONE = frozenset({404, 410})
_HTML = {"content-type": "text/html; charset=utf-8"}
SOFT_404_PAGE = (
    b"<!doctype html><title>Page not found</title><h1>Sorry</h1><p>We cannot find this page."
)


def lie(response: RecordedResponse, fault: Fault | None, now: float) -> RecordedResponse:
    """Return what a lying server sends instead of an honest response.

    ``now`` is the time of the response in seconds since the epoch.
    """
    if fault is None:
        return response
    if fault.kind is FaultKind.SOFT_404 and response.status in _GONE:
        return replace(response, status=200, headers=_HTML, body=SOFT_404_PAGE)
    rewrite = _REWRITES.get(fault.kind)
    if rewrite is None or response.status != 200:
        return response
    return replace(response, headers=rewrite(response.headers, now))


def answers_not_modified(
    request_headers: Mapping[str, str], response: RecordedResponse, fault: Fault | None
) -> bool:
    """Whether a request is answered with 304; header names are in lower case."""
    if response.status != 200 or not is_conditional(request_headers):
        return False
    if fault is not None and fault.kind is FaultKind.ALWAYS_NOT_MODIFIED:
        return True
    return is_not_modified(request_headers, response.headers)


def _constant_etag(headers: Mapping[str, str], now: float) -> dict[str, str]:
    return {**_without_validators(headers), "etag": '"1"'}


def _changing_etag(headers: Mapping[str, str], now: float) -> dict[str, str]:
    return {**_without_validators(headers), "etag": f'"{now!r}"'}


def _modified_now(headers: Mapping[str, str], now: float) -> dict[str, str]:
    return {**_without_validators(headers), "last-modified": http_date(now)}


def _future_clock(headers: Mapping[str, str], now: float) -> dict[str, str]:
    modified = parse_http_date(headers.get("last-modified", ""))
    moved = {} if modified is None else {"last-modified": http_date(modified + FUTURE_S)}
    return {**headers, **moved, "date": http_date(now + FUTURE_S)}


def _without_validators(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("etag", "last-modified")}


_REWRITES: Mapping[FaultKind, Callable[[Mapping[str, str], float], dict[str, str]]] = {
    FaultKind.CONSTANT_ETAG: _constant_etag,
    FaultKind.CHANGING_ETAG: _changing_etag,
    FaultKind.MODIFIED_NOW: _modified_now,
    FaultKind.FUTURE_CLOCK: _future_clock,
}
