"""The checks of the access log find planted violations, and nothing else."""

import pytest

from tests.support.access_rules import Access, Rules, violations

RULES = Rules(
    delay_s=1.0,
    delays={"slow.test": 5.0},
    crawl_delays={"calm.test": 3.0},
    closed={"a.test": ["/private"]},
    fetch_time_factor=10.0,
)


def at(host: str, *asked: tuple, address: str = "") -> list[Access]:
    """Accesses of (start, end, path, and more)."""
    return [
        Access(start, end, host, address or host, path, *more) for start, end, path, *more in asked
    ]


def robots(host: str, start: float = 0.0, address: str = "") -> list[Access]:
    return at(host, (start, start, "/robots.txt"), address=address)


def test_a_polite_log_has_none():
    log = [
        *robots("a.test"),
        *at("a.test", (1.0, 1.1, "/1"), (2.1, 2.1, "/2")),
        *robots("calm.test"),
        *at("calm.test", (3.0, 3.0, "/1")),
        *robots("slow.test"),
        *at("slow.test", (5.0, 5.0, "/1")),
    ]
    assert violations(log, RULES) == []


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (at("a.test", (0, 0, "/1")), "a.test: /1 was asked for before /robots.txt"),
        (robots("a.test") + at("a.test", (1, 1, "/private/x")), "a.test: /private/x is disallowed"),
        (
            robots("a.test") + at("a.test", (0.5, 0.5, "/1")),
            "a.test: a.test/1 after a.test/robots.txt: 0.500 s later, not 0.980",
        ),
        (
            robots("a.test") + at("a.test", (1, 3, "/1"), (2, 2, "/2")),
            "a.test: a.test/2 after a.test/1: two connections at once, for 1.000 s",
        ),
        (
            robots("slow.test") + at("slow.test", (1, 1, "/1")),
            "slow.test: slow.test/1 after slow.test/robots.txt: 1.000 s later, not 4.980",
        ),
        (
            robots("calm.test") + at("calm.test", (3, 3, "/1"), (5, 5, "/2")),
            "calm.test: calm.test/2 after calm.test/1: 2.000 s later, not 2.980",
        ),
        (
            robots("a.test") + at("a.test", (1, 1, "/1", 429, 7.0), (3, 3, "/1")),
            "a.test: a.test/1 after a.test/1: 2.000 s later, not 6.980",
        ),
        (
            robots("a.test") + at("a.test", (1, 1.5, "/1"), (4, 4, "/2")),
            "a.test: a.test/2 after a.test/1: 2.500 s later, not 4.980",
        ),
        (
            robots("a.test", address="x") + robots("b.test", 0.5, address="x"),
            "x: b.test/robots.txt after a.test/robots.txt: 0.500 s later, not 0.980",
        ),
        (
            robots("b.test", 0.5, "x") + at("a.test", (0, 1, "/robots.txt"), address="x"),
            "x: b.test/robots.txt after a.test/robots.txt: two connections at once, for 0.500 s",
        ),
    ],
)
def test_what_is_planted_is_found(log, message):
    assert violations(log, RULES) == [message]
