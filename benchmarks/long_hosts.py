"""The hosts and the words of a generated web.

Hosts have names, sizes, sections, subjects, addresses and failures. Words are the model's own, by
category, and unknown ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.classifier.topic_classifier import LinearTopicClassifier

_MIN_PAGES = 20
_SIZE_EXPONENT = 0.9
_HOSTS_PER_DOMAIN = 8
_HOSTS_PER_ADDRESS = 1.5
_ONE_IN_DEAD, _ONE_IN_FAILING, _ONE_IN_WITHOUT_ROBOTS, _ONE_IN_SLOW = 200, 200, 5, 50
ROBOTS = "User-agent: *\nDisallow: /search\nDisallow: /cgi-bin/\nDisallow: /{section}/private\n"

DRAWS = 1 << 16
"""Words sampled in advance for each subject: two bytes of a hash select one."""

_UNKNOWN_WORDS = 50_000
_OF_SUBJECT, _OF_ALL = 0.5, 0.2
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]

Words = NDArray[np.object_]


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


def generate_hosts(hosts: int, pages: int, subjects: int, seed: int) -> Sequence[Host]:
    """``hosts`` hosts with about ``pages`` pages in total, largest first, sizes by Zipf's law."""
    weights = (np.arange(hosts) + 10.0) ** -_SIZE_EXPONENT
    sizes = (weights / weights.sum() * pages).astype(int) + _MIN_PAGES
    return [_host(number, int(sizes[number]), hosts, subjects, seed) for number in range(hosts)]


def _host(number: int, pages: int, hosts: int, subjects: int, seed: int) -> Host:
    bits = xxhash.xxh3_128_intdigest(f"{seed} host {number}".encode())

    def one_of(choices: int) -> int:
        nonlocal bits
        bits, choice = divmod(bits, choices)
        return choice

    folders = 2 + min(30, pages // 200)
    sections = tuple(generate_word(5_000 + one_of(20_000)) for _ in range(min(folders, 6)))
    sections += tuple(f"{sections[n % 6]}-{generate_word(n)}" for n in range(6, folders))
    # One host in eight shares its domain with others.
    domain = f"{generate_word(100 + number)}{('.com', '.org', '.net', '.io')[one_of(4)]}"
    if one_of(8) == 0:
        domain = f"{generate_word(number // _HOSTS_PER_DOMAIN)}hosting.net"
    address = one_of(int(hosts / _HOSTS_PER_ADDRESS) or 1)
    crawl_delay = f"Crawl-delay: {1 + one_of(5)}\n" if one_of(_ONE_IN_SLOW) == 0 else ""
    without_robots = one_of(_ONE_IN_WITHOUT_ROBOTS) == 0
    return Host(
        number,
        f"{generate_word(number)}.{domain}",
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


def sample_words(model: LinearTopicClassifier, seed: int) -> Sequence[Words]:
    """For each category of the model, :data:`DRAWS` words of a page on it, shape (DRAWS,).

    Half are sampled from the words that the category makes likelier than others do, by how much; a
    fifth from all words; the rest are generated, with Zipf-distributed frequencies.
    """
    drawing = np.random.default_rng(seed)
    known = np.array(model.vocabulary.words, dtype=object)
    unknown = np.array([generate_word(number) for number in range(_UNKNOWN_WORDS)], dtype=object)
    of_category = model.taxonomy.log_likelihood[: len(model.taxonomy.categories)].astype(float)
    ranks = 1.0 / (np.arange(_UNKNOWN_WORDS) + 20.0)
    subjects = []
    for likelier in np.clip(of_category - of_category.mean(axis=0), 0.0, None):
        of_subject = int(DRAWS * _OF_SUBJECT)
        of_all = int(DRAWS * _OF_ALL)
        words = np.concatenate(
            [
                drawing.choice(known, of_subject, p=likelier / likelier.sum()),
                drawing.choice(known, of_all),
                drawing.choice(unknown, DRAWS - of_subject - of_all, p=ranks / ranks.sum()),
            ]
        )
        drawing.shuffle(words)
        subjects.append(words)
    return subjects


def generate_word(number: int) -> str:
    """The generated word of that number, a syllable or more."""
    parts = []
    left = number + len(_SYLLABLES)
    while left:
        left, syllable = divmod(left, len(_SYLLABLES))
        parts.append(_SYLLABLES[syllable])
    return "".join(parts)
