"""Validators of stored versions, conditional requests, and each host's trust in validators.

A server can answer 304 to a request with the ETag or Last-Modified of the stored version (RFC 9110,
sections 8.8 and 13). Some servers give wrong validators: an ETag that stays the same when the
content changes, one that differs in each response, a Last-Modified that is always the present time,
or 304 to any conditional request. A few revisits are therefore probes: they carry validators that
match no version, so that a correct server sends the whole page. A 304 to a probe, or changed
content under an unchanged validator, shows that the host's validators are wrong; they are not sent
again for months.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import formatdate
from enum import StrEnum

import msgspec

from focused.archive.page_history import VisitResult
from focused.durations import DAY_S
from focused.web.http_response import parse_http_date

MAX_ETAG_CHARS = 80
"""Longer ETags are not stored; Last-Modified is used instead."""

MAX_DISTRUST_S = 2 * 365 * DAY_S
DISTRUST_S = 90 * DAY_S
"""How long a validator is not sent the first time; doubled each time after."""

MAX_CLOCK_ERROR_S = 60.0

# RFC 9110, section 8.8.3: visible characters and obs-text without double quotes.
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_FIRST_DATE = 631_152_000  # 1990; earlier dates are placeholders


class Validators(msgspec.Struct, frozen=True, array_like=True):
    """The validators of one version; ``etag`` as received, ``""`` or 0 without one.

    ``last_modified`` is in seconds since the epoch of the server's clock.
    """

    etag: str = ""
    last_modified: int = 0

    @property
    def opaque_tag(self) -> str:
        """The ETag without its weakness; If-None-Match compares these (RFC 9110, 8.8.3.2)."""
        return self.etag.removeprefix("W/")


NO_VALIDATORS = Validators()


def parse_validators(headers: Mapping[str, str], received_at: float) -> Validators:
    """Return the validators of a response with lower-case header names. Never raises.

    Ignores an ETag against the grammar or above :data:`MAX_ETAG_CHARS`. Ignores a Last-Modified
    that is later than the response's Date (RFC 9110, section 8.8.2.1), or in the last second before
    it: the page may change again in that second (section 8.8.2.2).
    """
    etag = headers.get("etag", "").strip()
    if len(etag) > MAX_ETAG_CHARS or not _ETAG.fullmatch(etag):
        etag = ""
    modified = parse_http_date(headers.get("last-modified", ""))
    date = parse_http_date(headers.get("date", ""))
    latest = received_at + MAX_CLOCK_ERROR_S if date is None else date - 1
    if modified is None or not _FIRST_DATE <= modified <= latest:
        modified = 0
    return Validators(etag, modified)


def modification_time(
    headers: Mapping[str, str], previous_at: float, received_at: float
) -> float | None:
    """Return when the page was modified by its Last-Modified, on our clock, or None.

    The result is in (``previous_at``, ``received_at``]; a Last-Modified that contradicts a change
    since the previous visit gives None. Only the difference between Date and Last-Modified counts,
    so that a wrong clock of the server has no effect. Age is subtracted for caches (RFC 9111,
    section 5.1).
    """
    modified = parse_validators(headers, received_at).last_modified
    if not modified:
        return None
    date = parse_http_date(headers.get("date", ""))
    at = float(modified) if date is None else received_at - _age_s(headers) - (date - modified)
    return at if previous_at < at <= received_at else None


def clock_offset_s(headers: Mapping[str, str], received_at: float) -> float | None:
    """Return how many seconds the server's clock is ahead of ours by its Date, or None."""
    date = parse_http_date(headers.get("date", ""))
    return None if date is None else date + _age_s(headers) - received_at


def _age_s(headers: Mapping[str, str]) -> int:
    age = headers.get("age", "").strip()
    return int(age) if age.isascii() and age.isdecimal() and len(age) < 10 else 0


class ValidatorKind(StrEnum):
    """A kind of validator; the values are the response headers."""

    ETAG = "etag"
    LAST_MODIFIED = "last-modified"


class ConditionKind(StrEnum):
    """What a revisit's request asks for.

    ``NONE``: the page, in any case. ``VALIDATORS``: the page if it is not the stored version.
    ``PROBE``: the page, by validators that match no version.
    """

    NONE = "none"
    VALIDATORS = "validators"
    PROBE = "probe"


def conditional_headers(
    validators: Validators, trust: ValidatorTrust, at: float, draw: float
) -> tuple[ConditionKind, Mapping[str, str]]:
    """Return the condition of a revisit at ``at`` to a host with this ``trust``, and its headers.

    ``draw`` in [0, 1) is random and decides whether the request is a probe. Both validators are
    sent if the page has both and both are trusted (RFC 9110, section 8.8.4).
    """
    etag = validators.etag if trust.is_trusted(ValidatorKind.ETAG, at) else ""
    trusts_dates = trust.is_trusted(ValidatorKind.LAST_MODIFIED, at)
    modified = validators.last_modified if trusts_dates else 0
    if not etag and not modified:
        return ConditionKind.NONE, {}
    kind = ConditionKind.VALIDATORS
    if draw < trust.probe_probability:
        kind = ConditionKind.PROBE
        etag = etag and f'"{int(draw * 2**53):016x}"'
        modified = modified and _FIRST_DATE
    headers = {}
    if etag:
        headers["If-None-Match"] = etag
    if modified:
        headers["If-Modified-Since"] = formatdate(modified, usegmt=True)
    return kind, headers


_DECAY = 0.98  # per observation
_MISSED_SHARE = 0.1
_MIN_FALSE_CHANGES = 3.0
_FALSE_SHARE = 0.8
_CLOCK_STEP = 0.2


class _KindRecord(msgspec.Struct, array_like=True):
    """Decayed counts of one kind of validator on a host.

    ``same``: neither content nor validator changed. ``caught``: both changed. ``missed``: only the
    content changed. ``false_changes``: only the validator changed.
    """

    same: float = 0.0
    caught: float = 0.0
    missed: float = 0.0
    false_changes: float = 0.0
    distrusted_until: float = 0.0
    times_distrusted: int = 0

    def count(
        self,
        condition: ConditionKind,
        before: str | int,
        after: str | int,
        change: VisitResult | None,
    ) -> None:
        """Count a visit that shows how the validator follows the content."""
        differs = False
        if change is None:  # 304: neither changed, as far as the server tells
            if not before or condition is not ConditionKind.VALIDATORS:
                return
            change = VisitResult.IDENTICAL
        elif before and after:
            differs = before != after
            # A request with validators brings only changes that they catch: no sample.
            is_sample = condition is not ConditionKind.VALIDATORS
            if change is VisitResult.CHANGED and differs and not is_sample:
                return
        else:
            return
        self.same *= _DECAY
        self.caught *= _DECAY
        self.missed *= _DECAY
        self.false_changes *= _DECAY
        if change is VisitResult.CHANGED:
            self.caught += differs
            self.missed += not differs
        elif change is VisitResult.IDENTICAL:
            self.same += not differs
            self.false_changes += differs

    @property
    def is_wrong(self) -> bool:
        """Whether it missed too many changes, or almost never stays the same."""
        misses = self.missed >= 0.5 and self.missed >= _MISSED_SHARE * (self.missed + self.caught)
        useless = self.false_changes >= _MIN_FALSE_CHANGES * _DECAY**3 and (
            self.false_changes >= _FALSE_SHARE * (self.false_changes + self.same)
        )
        return misses or useless

    def distrust(self, at: float) -> None:
        """Distrust for a time that doubles whenever it was trusted again."""
        if at >= self.distrusted_until:
            self.times_distrusted += 1
        doubled_s = DISTRUST_S * 2.0 ** min(self.times_distrusted - 1, 10)
        self.distrusted_until = at + min(MAX_DISTRUST_S, doubled_s)
        self.same = self.caught = self.missed = self.false_changes = 0.0


class ValidatorTrust(msgspec.Struct, array_like=True):
    """How far a host's validators can be trusted; some 100 bytes.

    ``probes`` counts the probes since the last distrust. ``clock_offset_s`` is how far the host's
    clock is ahead of ours, 0 within a minute, by ``clock_samples`` responses.
    """

    etag: _KindRecord = msgspec.field(default_factory=_KindRecord)
    last_modified: _KindRecord = msgspec.field(default_factory=_KindRecord)
    probes: int = 0
    clock_offset_s: float = 0.0
    clock_samples: int = 0

    def is_trusted(self, kind: ValidatorKind, at: float) -> bool:
        """Whether validators of this kind may be sent at ``at``."""
        return at >= self._record_of(kind).distrusted_until

    @property
    def probe_probability(self) -> float:
        """The probability that the next conditional request is a probe.

        It falls from a quarter with the number of probes, to half a percent. After a distrust the
        first request is a probe.
        """
        was_wrong = self.etag.times_distrusted or self.last_modified.times_distrusted
        if was_wrong and not self.probes:
            return 1.0
        return max(0.005, 1.0 / (4 + self.probes))

    def record(
        self,
        condition: ConditionKind,
        before: Validators,
        after: Validators,
        change: VisitResult | None,
        at: float,
    ) -> frozenset[ValidatorKind]:
        """Learn from a revisit at ``at``; return the kinds that have become distrusted.

        304 responses by validators of these kinds may have hidden changes. ``before`` are the
        validators of the stored version, ``after`` those of the response. ``change`` compares the
        content with the stored version; None for a 304.
        """
        trusted = {kind for kind in ValidatorKind if self.is_trusted(kind, at)}
        is_probe = condition is ConditionKind.PROBE
        self.probes += is_probe
        for kind in ValidatorKind:
            if is_probe and change is None:
                # 304 although no version matches. Which header the server answers is unknown.
                self._record_of(kind).distrust(at)
            else:
                record = self._record_of(kind)
                record.count(condition, _value(before, kind), _value(after, kind), change)
                if record.is_wrong:
                    record.distrust(at)
        lost = frozenset(kind for kind in trusted if not self.is_trusted(kind, at))
        if lost:
            self.probes = 0
        return lost

    def record_clock(self, offset_s: float | None) -> None:
        """Learn from the result of :func:`clock_offset_s` for a response of the host."""
        if offset_s is None:
            return
        if abs(offset_s) < MAX_CLOCK_ERROR_S:
            offset_s = 0.0
        self.clock_samples += 1
        step = max(_CLOCK_STEP, 1.0 / self.clock_samples)
        self.clock_offset_s += step * (offset_s - self.clock_offset_s)

    def _record_of(self, kind: ValidatorKind) -> _KindRecord:
        return self.etag if kind is ValidatorKind.ETAG else self.last_modified


def _value(validators: Validators, kind: ValidatorKind) -> str | int:
    if kind is ValidatorKind.ETAG:
        return validators.opaque_tag
    return validators.last_modified
