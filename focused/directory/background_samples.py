"""The general background: samples of anything else, shipped with the library.

Bags of words of about a hundred each, in more than fifty languages, so that a topic can be
learned from good samples alone, and a page in another language is not taken for one of
them. ``training/background.py`` made them; ``training/README.md`` tells from what.
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
"""The category that all of it lies below: ``Background/de`` is the German part."""


class _BackgroundLine(msgspec.Struct):
    language: str
    source: str
    text: str


def background_samples(number: int | None = None, seed: int = 0) -> tuple[DirectoryEntry, ...]:
    """So many background samples, at most those there are, each with a text and not fetched.

    They are drawn by lot, and in its order: fewer with the same seed are the first of more.
    None takes all. Half of them are English. The words of a text stand in the order of the
    alphabet.
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
    """Whether ``category`` is one of the background's."""
    return is_in_category(category, BACKGROUND_CATEGORY)
