"""The hosts of a generated web: names, sizes, sections, subjects, addresses, failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from long_words import made_up

_LEAST_PAGES = 20
_SIZE_EXPONENT = 0.9
_HOSTS_A_DOMAIN = 8
_HOSTS_AN_ADDRESS = 1.5
_ONE_IN_DEAD, _ONE_IN_FAILING, _ONE_IN_WITHOUT_ROBOTS, _ONE_IN_SLOW = 200, 200, 5, 50
ROBOTS = "User-agent: *\nDisallow: /search\nDisallow: /cgi-bin/\nDisallow: /{section}/private\n"


@dataclass(frozen=True, slots=True)
class Host:
    """One host; ``subject`` is a number, ``sections`` are the names of its folders.

    The first ``pure`` sections are on its subject. ``style`` selects the form of its URLs.
    """

    number: int
    name: str
    scheme: str
    pages: int
    subject: int
    sections: tuple[str, ...]
    pure: int
    style: int
    address: str
    dead: bool
    failing: bool
    robots: str | None


def made_up_hosts(hosts: int, pages: int, subjects: int, seed: int) -> Sequence[Host]:
    """``hosts`` hosts with about ``pages`` pages in total, largest first, sizes by Zipf's law."""
    weights = (np.arange(hosts) + 10.0) ** -_SIZE_EXPONENT
    sizes = (weights / weights.sum() * pages).astype(int) + _LEAST_PAGES
    return [_host(number, int(sizes[number]), hosts, subjects, seed) for number in range(hosts)]


def _host(number: int, pages: int, hosts: int, subjects: int, seed: int) -> Host:
    lots = xxhash.xxh3_128_intdigest(f"{seed} host {number}".encode())

    def one_of(choices: int) -> int:
        nonlocal lots
        lots, choice = divmod(lots, choices)
        return choice

    folders = 2 + min(30, pages // 200)
    sections = tuple(made_up(5_000 + one_of(20_000)) for _ in range(min(folders, 6)))
    sections += tuple(f"{sections[n % 6]}-{made_up(n)}" for n in range(6, folders))
    # One host in eight shares its domain with others.
    domain = f"{made_up(100 + number)}{('.com', '.org', '.net', '.io')[one_of(4)]}"
    if one_of(8) == 0:
        domain = f"{made_up(number // _HOSTS_A_DOMAIN)}hosting.net"
    address = one_of(int(hosts / _HOSTS_AN_ADDRESS) or 1)
    crawl_delay = f"Crawl-delay: {1 + one_of(5)}\n" if one_of(_ONE_IN_SLOW) == 0 else ""
    without_robots = one_of(_ONE_IN_WITHOUT_ROBOTS) == 0
    return Host(
        number,
        f"{made_up(number)}.{domain}",
        "https" if one_of(4) else "http",
        pages,
        one_of(subjects),
        sections,
        max(1, folders * one_of(4) // 4),
        one_of(3),
        f"8.{address >> 16}.{(address >> 8) & 255}.{address & 255}",
        # The largest hosts have most in-links: they don't fail.
        number > 500 and one_of(_ONE_IN_DEAD) == 0,
        number > 500 and one_of(_ONE_IN_FAILING) == 0,
        None if without_robots else ROBOTS.format(section=sections[0]) + crawl_delay,
    )
