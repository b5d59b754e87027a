"""What a name service's records say of one name: its addresses, or that there are none.

From RFC 1034 (aliases), RFC 2308 (negative answers) and RFC 8020 (a name that
does not exist has nothing of any type). No network here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

MAX_ALIASES = 16
_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*")


class RecordType(StrEnum):
    """The types of record that matter here."""

    A = "A"
    AAAA = "AAAA"
    CNAME = "CNAME"
    SOA = "SOA"


@dataclass(frozen=True, slots=True)
class Record:
    """``value`` is the address, or the name that a CNAME stands for; ``minimum_s`` the SOA's."""

    name: str
    type: RecordType
    ttl_s: float
    value: str = ""
    minimum_s: float = 0.0


class Standing(StrEnum):
    """What is known of a name."""

    FOUND = "found"
    MISSING = "missing"  # there is no such name, or none with an address
    UNANSWERED = "unanswered"  # no name server could tell


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """``addresses`` in the order to be tried; ``ttl_s`` is what the records allow.

    ``onward`` is the name that an alias leads to when the answer ended there.
    """

    standing: Standing
    addresses: tuple[str, ...] = ()
    ttl_s: float = 0.0
    onward: str = ""


UNANSWERED = NameAnswer(Standing.UNANSWERED)


def is_askable(name: str) -> bool:
    """Whether a name server can be asked for ``name`` at all (RFC 1035 section 2.3.4)."""
    return _NAME.fullmatch(name) is not None


def read_answer(
    name: str,
    wanted: RecordType,
    answers: Sequence[Record],
    authority: Sequence[Record],
    *,
    exists: bool,
) -> NameAnswer:
    """What the answer to a question for ``name`` and an address type says.

    ``exists`` False: the server said NXDOMAIN. Records of other names than the
    one asked for, and of those it is an alias of, are not believed.
    """
    aliases = {record.name.lower(): record for record in answers if record.type is RecordType.CNAME}
    here, ttls = name.lower(), []
    for _ in range(MAX_ALIASES):
        alias = aliases.get(here)
        if alias is None:
            break
        ttls.append(alias.ttl_s)
        here = alias.value.lower()
    else:
        return UNANSWERED  # a loop
    found = [record for record in answers if record.type is wanted and record.name.lower() == here]
    if found:
        ttl_s = min([*ttls, *(record.ttl_s for record in found)])
        return NameAnswer(Standing.FOUND, tuple(record.value for record in found), ttl_s)
    denied_s = _negative_ttl_s(authority)
    if exists and denied_s is None and ttls:
        return NameAnswer(Standing.MISSING, ttl_s=min(ttls), onward=here)
    return NameAnswer(Standing.MISSING, ttl_s=min([*ttls, denied_s or 0.0]))


def through(alias: NameAnswer, answer: NameAnswer) -> NameAnswer:
    """The answer for the name that ``alias`` leads on to, as one for the alias itself."""
    return replace(answer, ttl_s=min(alias.ttl_s, answer.ttl_s))


def joined(answers: Iterable[NameAnswer]) -> NameAnswer:
    """One answer of those to the questions for A and for AAAA, in this order.

    Addresses of either type do; that a name is missing takes both to say so.
    """
    each = list(answers)
    found = [answer for answer in each if answer.standing is Standing.FOUND]
    if found:
        addresses = tuple(address for answer in found for address in answer.addresses)
        return NameAnswer(Standing.FOUND, addresses, min(answer.ttl_s for answer in found))
    if any(answer.standing is Standing.UNANSWERED for answer in each):
        return UNANSWERED
    return NameAnswer(Standing.MISSING, ttl_s=min(answer.ttl_s for answer in each))


def _negative_ttl_s(authority: Iterable[Record]) -> float | None:
    """How long "no" holds: the smaller of the SOA's TTL and MINIMUM (RFC 2308 section 5)."""
    told = [min(r.ttl_s, r.minimum_s) for r in authority if r.type is RecordType.SOA]
    return min(told) if told else None
