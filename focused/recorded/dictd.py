"""Dictionaries in dictd's format: an ``.index`` and a ``.dict.dz``.

A line of the index reads ``headword<TAB>offset<TAB>length``, the numbers in
base 64 (RFC 4648's alphabet, most significant digit first, no padding). The
data file is gzip with an extra field for random access; it is read whole here.
"""

from __future__ import annotations

import gzip
import string
import zlib
from dataclasses import dataclass
from pathlib import Path

from focused.errors import RecordedWebError

_DIGITS = {
    digit: value
    for value, digit in enumerate(
        string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    )
}


@dataclass(frozen=True, slots=True)
class DictEntry:
    """One entry as it is printed; ``headwords`` are the index's words for it."""

    headwords: tuple[str, ...]
    text: str


def decode_number(digits: str) -> int:
    """The number that base-64 digits stand for; ValueError for any other sign."""
    if not digits or any(digit not in _DIGITS for digit in digits):
        raise ValueError(f"{digits!r} is no base-64 number")
    number = 0
    for digit in digits:
        number = number * 64 + _DIGITS[digit]
    return number


def read_entries(index: Path, data: Path) -> list[DictEntry]:
    """All entries in the order of the data file, those about the database left out.

    Raises RecordedWebError naming the file, and the index's line, that is damaged.
    """
    try:
        text = gzip.decompress(data.read_bytes())
        lines = index.read_text(encoding="utf-8").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecordedWebError(f"{index} or {data.name} cannot be read: {error}") from error
    words: dict[tuple[int, int], list[str]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            word, offset, length = line.split("\t")
            place = (decode_number(offset), decode_number(length))
        except ValueError as error:
            raise RecordedWebError(f"{index}, line {number}: {error}") from error
        if sum(place) > len(text):
            raise RecordedWebError(f"{index}, line {number}: points behind the end of {data.name}")
        if not word.startswith(("00-database", "00database")):
            words.setdefault(place, []).append(word)
    return [
        DictEntry(tuple(words[place]), text[place[0] : sum(place)].decode("utf-8", "replace"))
        for place in sorted(words)
    ]
