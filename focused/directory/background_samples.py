"""The general background: shipped samples of unrelated text in more than fifty languages.

Each sample is a bag of about a hundred words. With it a topic can be trained from good
samples alone, and a page in another language is not mistaken for one of them.
``training/background.py`` builds the file; ``training/README.md`` lists its sources.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib.resources import files

import msgspec

from focused.directory.directory_entry import DirectoryEntry, content_url
from focused.directory.sample_set import is_in_category
from focused.text.hash_sampling import hash_fraction

BACKGROUND_CATEGORY = "Background"
"""The parent category: ``Background/de`` is the German part."""


class _BackgroundLine(msgspec.Struct):
    language: str
    source: str
    text: str


def background_samples(number: int | None = None, seed: int = 0) -> tuple[DirectoryEntry, ...]:
    """Return up to ``number`` background samples (None: all), with text, not to be fetched.

    A deterministic hash sample: fewer samples with the same seed are the first of more. Half of
    them are English. Words are in alphabetical order.
    """
    lines = _load_lines()
    chosen = sorted(lines, key=lambda line: hash_fraction(line.text, seed))[:number]
    return tuple(
        DirectoryEntry(
            f"{BACKGROUND_CATEGORY}/{line.language}",
            content_url(line.text.encode()),
            text=line.text,
        )
        for line in chosen
    )


@cache
def _load_lines() -> tuple[_BackgroundLine, ...]:
    packed = files(__package__).joinpath("data", "background.jsonl.xz").read_bytes()
    decoder = msgspec.json.Decoder(_BackgroundLine)
    return tuple(decoder.decode_lines(lzma.decompress(packed)))


def is_background(category: str) -> bool:
    """Whether ``category`` is part of the background."""
    return is_in_category(category, BACKGROUND_CATEGORY)
