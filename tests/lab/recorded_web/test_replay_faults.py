"""Fault plans: parsed, written, deterministic."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import ConfigurationError
from focused_lab.recorded_web.replay_faults import Fault, FaultKind, FaultPlan, parse_fault

PATTERNS = st.text(st.sampled_from("abc.*?-/:0123456789"), min_size=1).filter(str.strip)
RATES = st.floats(0, 1, exclude_min=True)
ATTEMPTS = st.none() | st.integers(1, 99)
MICROS = st.integers(0, 10**8).map(lambda micros: micros / 10**6)
RANGES = st.tuples(MICROS, MICROS).map(lambda ends: (min(ends), max(ends)))
FAULTS = st.one_of(
    st.builds(
        Fault,
        PATTERNS,
        st.just(FaultKind.STATUS),
        RATES,
        ATTEMPTS,
        status=st.integers(400, 599),
        retry_after_s=st.none() | st.integers(0, 10**6),
    ),
    st.builds(Fault, PATTERNS, st.just(FaultKind.LATENCY), RATES, ATTEMPTS, latency_s=RANGES),
    st.builds(
        Fault,
        PATTERNS,
        st.just(FaultKind.SLOW),
        RATES,
        ATTEMPTS,
        bytes_per_s=st.floats(0, 1e12, exclude_min=True),
    ),
    st.builds(
        Fault,
        PATTERNS,
        st.sampled_from([FaultKind.DROP_HEADERS, FaultKind.DROP_BODY]),
        RATES,
        ATTEMPTS,
    ),
)


@given(FAULTS)
def test_a_fault_written_as_text_reads_back_as_itself(fault):
    assert parse_fault(str(fault)) == fault


def test_every_option_is_read():
    assert parse_fault("docs.*:kind=429, rate=0.5, retry_after_s=3, attempts=2") == Fault(
        "docs.*", FaultKind.STATUS, rate=0.5, attempts=2, status=429, retry_after_s=3
    )
    assert parse_fault("*:kind=latency,latency_s=0.1-0.5").latency_s == (0.1, 0.5)
    assert parse_fault("*:kind=latency,latency_s=2").latency_s == (2.0, 2.0)
    assert parse_fault("h:8080:kind=slow,bytes_per_s=10").hosts == "h:8080"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("docs.example.org", "HOSTPATTERN:kind=KIND"),
        ("*:503", "HOSTPATTERN:kind=KIND"),
        (":kind=503", "host pattern is empty"),
        ("*:kind=503,rate", "'rate' is not key=value"),
        ("*:kind=503,rtae=0.1", "unknown key rtae"),
        ("*:kind=503,kind=429", "kind is given twice"),
        ("*:rate=0.1", "kind must be"),
        ("*:kind=explode", "kind must be"),
        ("*:kind=200", "400 to 599"),
        ("*:kind=503,rate=often", "rate must be a number"),
        ("*:kind=503,rate=0", "rate must be above 0"),
        ("*:kind=503,rate=nan", "rate must be above 0"),
        ("*:kind=503,attempts=1.5", "attempts must be a whole number"),
        ("*:kind=503,attempts=0", "attempts must be at least 1"),
        ("*:kind=503,retry_after_s=-1", "retry_after_s"),
        ("*:kind=slow", "bytes_per_s"),
        ("*:kind=slow,bytes_per_s=0", "bytes_per_s"),
        ("*:kind=503,bytes_per_s=5", "bytes_per_s"),
        ("*:kind=drop-body,retry_after_s=5", "retry_after_s"),
        ("*:kind=latency", "latency_s"),
        ("*:kind=latency,latency_s=0.5-0.1", "latency_s"),
        ("*:kind=latency,latency_s=soon", "latency_s must be a number"),
    ],
)
def test_a_wrong_fault_is_refused_with_its_text_and_what_is_wrong(text, complaint):
    with pytest.raises(ConfigurationError) as refused:
        parse_fault(text)
    assert text in str(refused.value)
    assert complaint in str(refused.value)


@given(st.text())
def test_any_text_is_a_fault_or_a_configuration_error(text):
    with contextlib.suppress(ConfigurationError):
        parse_fault(text)


def struck(plan: FaultPlan, attempt: int = 1, pages: int = 1000) -> list[int]:
    return [n for n in range(pages) if plan.effects("h", f"/{n}", attempt).fault]


def test_about_the_given_rate_of_requests_is_struck():
    plan = FaultPlan((parse_fault("*:kind=503,rate=0.2"),))
    assert 150 < len(struck(plan)) < 250


def test_the_same_seed_strikes_the_same_requests():
    fault = parse_fault("*:kind=503,rate=0.2")
    assert struck(FaultPlan((fault,), 1)) == struck(FaultPlan((fault,), 1))
    assert struck(FaultPlan((fault,), 1)) != struck(FaultPlan((fault,), 2))


def test_a_second_attempt_draws_anew():
    plan = FaultPlan((parse_fault("*:kind=503,rate=0.2"),))
    assert struck(plan, attempt=1) != struck(plan, attempt=2)


def test_attempts_limit_a_fault_to_the_first_requests_of_a_url():
    plan = FaultPlan((parse_fault("*:kind=503,attempts=2"),))
    assert [plan.effects("h", "/", n).fault is None for n in (1, 2, 3)] == [False, False, True]


def test_a_pattern_without_a_slash_is_held_against_the_whole_host():
    plan = FaultPlan((parse_fault("docs.*:kind=503"),))
    assert plan.effects("docs.example.org", "/", 1).fault
    assert not plan.effects("my.docs.example.org", "/", 1).fault


def test_a_pattern_with_a_slash_is_held_against_host_and_path():
    plan = FaultPlan((parse_fault("*.org/robots.txt:kind=503"),))
    assert plan.effects("a.org", "/robots.txt", 1).fault
    assert not plan.effects("a.org", "/", 1).fault


def test_latencies_add_up_and_the_first_other_fault_wins():
    texts = ("*:kind=latency,latency_s=1", "*:kind=429", "*:kind=latency,latency_s=2", "*:kind=503")
    effects = FaultPlan(tuple(map(parse_fault, texts))).effects("h", "/", 1)
    assert effects.latency_s == 3.0
    assert effects.fault == parse_fault("*:kind=429")


def test_a_latency_range_is_used_from_end_to_end():
    plan = FaultPlan((parse_fault("*:kind=latency,latency_s=1-2"),))
    waits = [plan.effects("h", f"/{n}", 1).latency_s for n in range(200)]
    assert 1.0 <= min(waits) < 1.1
    assert 1.9 < max(waits) <= 2.0
