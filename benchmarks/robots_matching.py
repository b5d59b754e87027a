"""Cost of a robots.txt of 500 KiB: reading it, and matching each URL.

python benchmarks/robots_matching.py
"""

from __future__ import annotations

import random
import string
from time import process_time

from focused.web.page import Fetched
from focused.web.robots.robots_rules import MAX_ROBOTS_BYTES, RobotsRules, rules_from_fetch

SHAPES = {
    "prefixes": "/????????",
    "a star": "/*??????",
    "a star and an end": "/*?????$",
    "two stars": "/*???*???",
    "six stars, against the matcher": "/*?*?*?*?*?*?",
}
URLS = 100
ROBOTS = "http://example.org/robots.txt"


def filled(shape: str, rng: random.Random) -> str:
    """Replace each question mark of the shape by a random letter."""
    return "".join(rng.choice(string.ascii_lowercase) if char == "?" else char for char in shape)


def full_file(shape: str) -> bytes:
    """A file with as many rules of the shape as are read."""
    rng, lines, size = random.Random(1), ["User-agent: *"], 0
    while size < MAX_ROBOTS_BYTES - 100:
        lines.append(f"Disallow: {filled(shape, rng)}")
        size += len(lines[-1]) + 1
    return "\n".join(lines).encode()


def seconds(rules: RobotsRules, urls: list[str]) -> float:
    """CPU time for one URL."""
    began = process_time()
    for url in urls:
        rules.allows(url, "ExampleBot")
    return (process_time() - began) / len(urls)


def main() -> None:
    """Print a line a shape."""
    rng = random.Random(2)
    urls = [f"http://example.org/wiki/{filled('?' * 40, rng)}?q={n}" for n in range(URLS)]
    print(f"{'rules with':32}{'read, s':>9}{'a URL, ms':>11}")
    for name, shape in SHAPES.items():
        rules = rules_from_fetch(Fetched(ROBOTS, 200, {}, full_file(shape)), 0.0)
        read_s = seconds(rules, urls[:1])
        print(f"{name:32}{read_s:9.2f}{1000 * seconds(rules, urls):11.2f}", flush=True)


if __name__ == "__main__":
    main()
