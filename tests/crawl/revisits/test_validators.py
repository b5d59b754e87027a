"""Validators, conditional requests, and hosts whose validators are wrong."""

import random
from email.utils import formatdate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.archive.page_history import VisitResult
from focused.crawl.revisits.validators import (
    DISTRUST_S,
    MAX_ETAG_CHARS,
    NO_VALIDATORS,
    ConditionKind,
    ValidatorKind,
    Validators,
    ValidatorTrust,
    clock_offset_s,
    conditional_headers,
    modification_time,
    parse_validators,
)
from focused.web.http_response import parse_http_date

NOW = 1_700_000_000.0
DAY = 86_400.0
NO_PROBE, PROBE = 0.999, 0.0


def http_date(at: float) -> str:
    return formatdate(at, usegmt=True)


def test_a_version_keeps_its_etag_and_last_modified():
    headers = {"etag": '"abc"', "last-modified": http_date(NOW - DAY), "date": http_date(NOW)}
    assert parse_validators(headers, NOW) == Validators('"abc"', int(NOW - DAY))


@pytest.mark.parametrize("etag", ['"a"', 'W/"a"', '""', '"a,b"', '"\xe9"'])
def test_etags_of_the_grammar_are_kept_as_they_are(etag):
    assert parse_validators({"etag": etag}, NOW).etag == etag


@pytest.mark.parametrize(
    "etag", ["", "abc", '"a" "b"', '"a", "b"', 'w/"a"', '"a\r\n"', f'"{"x" * MAX_ETAG_CHARS}"']
)
def test_other_etags_and_long_ones_are_ignored(etag):
    assert parse_validators({"etag": etag}, NOW) == NO_VALIDATORS


def test_a_weak_etag_is_compared_without_its_weakness():
    assert Validators('W/"a"').opaque_tag == '"a"'


@pytest.mark.parametrize(
    "date",
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
)
def test_the_three_formats_of_http_dates(date):
    """RFC 9110, section 5.6.7."""
    assert parse_http_date(date) == 784_111_777


@given(st.text() | st.datetimes().map(str))
def test_any_header_gives_bounded_validators(text):
    headers = {"etag": text, "last-modified": text, "date": text, "age": text}
    validators = parse_validators(headers, NOW)
    assert len(msgspec.msgpack.encode(validators)) <= 2 * MAX_ETAG_CHARS + 12
    clock_offset_s(headers, NOW)
    at = modification_time(headers, NOW - DAY, NOW)
    assert at is None or NOW - DAY < at <= NOW


@given(st.integers(631_152_000, 4_000_000_000))
def test_a_date_survives_being_sent_back(at):
    _, headers = conditional_headers(Validators("", at), ValidatorTrust(), NOW, NO_PROBE)
    assert parse_http_date(headers["If-Modified-Since"]) == at


@pytest.mark.parametrize("ahead_s", [0, 1, DAY])
def test_a_last_modified_of_now_or_in_the_future_is_ignored(ahead_s):
    headers = {"last-modified": http_date(NOW + ahead_s), "date": http_date(NOW)}
    assert parse_validators(headers, NOW) == NO_VALIDATORS
    assert modification_time(headers, NOW - DAY, NOW) is None


def test_a_future_last_modified_without_a_date_is_ignored():
    assert parse_validators({"last-modified": http_date(NOW + DAY)}, NOW) == NO_VALIDATORS


def test_a_placeholder_date_is_ignored():
    assert parse_validators({"last-modified": http_date(1)}, NOW) == NO_VALIDATORS


@pytest.mark.parametrize("wrong_by_s", [0, 3_600, -30 * DAY, 365 * DAY])
def test_a_wrong_clock_does_not_move_the_time_of_a_modification(wrong_by_s):
    clock = NOW + wrong_by_s
    headers = {"last-modified": http_date(clock - 600), "date": http_date(clock)}
    assert modification_time(headers, NOW - DAY, NOW) == NOW - 600


def test_a_response_from_a_cache_is_as_old_as_its_age():
    headers = {"last-modified": http_date(NOW - 700), "date": http_date(NOW - 100), "age": "100"}
    assert modification_time(headers, NOW - DAY, NOW) == NOW - 700
    assert clock_offset_s(headers, NOW) == 0.0


def test_a_modification_before_the_previous_visit_contradicts_a_change_since():
    headers = {"last-modified": http_date(NOW - 2 * DAY), "date": http_date(NOW)}
    assert modification_time(headers, NOW - DAY, NOW) is None


def test_a_clock_in_the_future_is_noticed():
    trust = ValidatorTrust()
    for _ in range(10):
        trust.record_clock(clock_offset_s({"date": http_date(NOW + DAY)}, NOW))
    assert trust.clock_offset_s == pytest.approx(DAY)


def test_a_clock_within_a_minute_is_right():
    trust = ValidatorTrust()
    trust.record_clock(clock_offset_s({"date": http_date(NOW + 30)}, NOW))
    trust.record_clock(None)
    assert trust.clock_offset_s == 0.0


BOTH = Validators('"v1"', int(NOW - DAY))


def test_both_validators_are_sent():
    """RFC 9110, section 8.8.4."""
    assert conditional_headers(BOTH, ValidatorTrust(), NOW, NO_PROBE) == (
        ConditionKind.VALIDATORS,
        {"If-None-Match": '"v1"', "If-Modified-Since": http_date(NOW - DAY)},
    )


def test_without_validators_a_request_is_unconditional():
    found = conditional_headers(NO_VALIDATORS, ValidatorTrust(), NOW, PROBE)
    assert found == (ConditionKind.NONE, {})


def test_a_probe_has_validators_that_match_no_version():
    kind, headers = conditional_headers(BOTH, ValidatorTrust(), NOW, PROBE)
    assert kind is ConditionKind.PROBE
    assert headers["If-None-Match"] != BOTH.etag
    sent = parse_http_date(headers["If-Modified-Since"])
    assert sent is not None
    assert sent < BOTH.last_modified
    _, headers = conditional_headers(Validators('"v1"'), ValidatorTrust(), NOW, PROBE)
    assert set(headers) == {"If-None-Match"}


class Server:
    """A host with one page; ``version`` changes, and the answers follow from its kind."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        self.kind, self.version, self.answers = kind, 0, 0
        self.trust = ValidatorTrust()
        self.stored, self.stored_version = self._validators(), 0
        self.rng = random.Random(seed)
        self.missed = 0
        self.conditions: list[ConditionKind] = []

    def _validators(self) -> Validators:
        self.answers += 1
        if self.kind == "constant etag":
            return Validators('"same"')
        if self.kind == "etag of the answer":
            return Validators(f'"{self.answers}"', int(NOW - DAY) + self.version)
        if self.kind == "constant date":
            return Validators(f'"{self.version}"', int(NOW - DAY))
        return Validators(f'"{self.version}"', int(NOW - DAY) + self.version)

    def visit(self, at: float, *, changed: bool = False) -> frozenset[ValidatorKind]:
        self.version += changed
        kind, headers = conditional_headers(self.stored, self.trust, at, self.rng.random())
        self.conditions.append(kind)
        now = self._validators()
        etag, date = headers.get("If-None-Match"), headers.get("If-Modified-Since")
        if self.kind == "304 for everything":
            same = bool(headers)
        elif etag is not None:
            same = etag == now.etag
        else:
            same = date is not None and (parse_http_date(date) or 0) >= now.last_modified
        change = None
        if not same:
            differs = self.version != self.stored_version
            change = VisitResult.CHANGED if differs else VisitResult.IDENTICAL
        elif self.version != self.stored_version:
            self.missed += 1
        lost = self.trust.record(kind, self.stored, now, change, at)
        if not same:
            self.stored, self.stored_version = now, self.version
        return lost

    def run(self, visits: int, *, change_every: int) -> None:
        for number in range(1, visits + 1):
            self.visit(NOW + number, changed=number % change_every == 0)


@pytest.mark.parametrize("seed", range(5))
def test_an_etag_that_never_changes_is_found_out(seed):
    server = Server("constant etag", seed)
    server.run(100, change_every=2)
    assert not server.trust.is_trusted(ValidatorKind.ETAG, NOW + 100)
    assert server.missed < 30
    assert server.conditions[-1] is ConditionKind.NONE


@pytest.mark.parametrize("seed", range(5))
def test_304_for_everything_is_found_out(seed):
    server = Server("304 for everything", seed)
    server.run(60, change_every=2)
    for kind in ValidatorKind:
        assert not server.trust.is_trusted(kind, NOW + 60)
    assert server.conditions[-1] is ConditionKind.NONE


def test_an_etag_of_each_answer_is_not_sent_and_no_longer_hides_a_good_date():
    server = Server("etag of the answer")
    server.run(60, change_every=20)
    assert not server.trust.is_trusted(ValidatorKind.ETAG, NOW + 60)
    assert server.trust.is_trusted(ValidatorKind.LAST_MODIFIED, NOW + 60)
    assert server.conditions.count(ConditionKind.NONE) == 0


def test_a_constant_date_is_not_sent_beside_a_good_etag():
    server = Server("constant date")
    server.run(200, change_every=2)
    assert server.trust.is_trusted(ValidatorKind.ETAG, NOW + 200)
    assert not server.trust.is_trusted(ValidatorKind.LAST_MODIFIED, NOW + 200)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("change_every", [1, 2, 10, 1_000])
def test_an_honest_server_stays_trusted_and_is_rarely_probed(change_every, seed):
    server = Server("honest", seed)
    server.run(1_000, change_every=change_every)
    for kind in ValidatorKind:
        assert server.trust.is_trusted(kind, NOW + 1_000)
    assert server.missed == 0
    assert 5 < server.conditions.count(ConditionKind.PROBE) < 100


def test_who_lost_trust_is_reported_once():
    server = Server("304 for everything")
    lost = [server.visit(NOW + number) for number in range(60)]
    assert [each for each in lost if each] == [frozenset(ValidatorKind)]


def test_cosmetic_changes_are_no_evidence():
    trust = ValidatorTrust()
    for at in range(20):
        assert not trust.record(ConditionKind.PROBE, BOTH, BOTH, VisitResult.COSMETIC, NOW + at)


def test_a_distrusted_host_is_probed_first_when_its_time_is_over():
    server = Server("304 for everything")
    server.run(60, change_every=2)
    later = NOW + DISTRUST_S + 100
    server.visit(later)
    assert server.conditions[-1] is ConditionKind.PROBE
    assert not server.trust.is_trusted(ValidatorKind.ETAG, later + 1.5 * DISTRUST_S)


def test_a_host_that_was_repaired_is_trusted_again():
    server = Server("constant etag")
    server.run(60, change_every=1)
    server.kind = "honest"
    for number in range(30):
        server.visit(NOW + 2 * DISTRUST_S + number, changed=number % 3 == 0)
    assert server.conditions[-1] is not ConditionKind.NONE
    assert server.trust.is_trusted(ValidatorKind.ETAG, NOW + 2 * DISTRUST_S + 100)


def test_trust_is_stored_in_few_bytes():
    server = Server("honest")
    server.run(100, change_every=3)
    packed = msgspec.msgpack.encode(server.trust)
    assert len(packed) <= 130
    restored = msgspec.msgpack.decode(packed, type=ValidatorTrust)
    assert restored.probe_probability == server.trust.probe_probability
