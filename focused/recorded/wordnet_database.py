"""WordNet's database files: synsets, their words, glosses and pointers.

The format is that of WordNet's manual page wndb(5WN). A line of ``data.noun``
reads ``offset lex_filenum ss_type w_cnt word lex_id ... p_cnt pointer ... |
gloss``; lines that begin with a space are the licence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from focused.errors import RecordedWebError

PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
DATA_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_MARKER = re.compile(r"\((?:a|p|ip)\)\Z")


@dataclass(frozen=True, slots=True)
class Pointer:
    """A relation to another synset; ``symbol`` as in wninput(5WN), such as ``@``."""

    symbol: str
    target: str


@dataclass(frozen=True, slots=True)
class Synset:
    """Words of one meaning. ``key`` is part of speech and offset: ``noun-08395465``."""

    key: str
    words: tuple[str, ...]
    gloss: str
    pointers: tuple[Pointer, ...]

    @property
    def part_of_speech(self) -> str:
        """``noun``, ``verb``, ``adj`` or ``adv``."""
        return self.key.partition("-")[0]

    def targets(self, *symbols: str) -> list[str]:
        """Keys of the synsets that pointers of these symbols lead to, each once."""
        return list(dict.fromkeys(p.target for p in self.pointers if p.symbol in symbols))


def read_synsets(folder: Path) -> dict[str, Synset]:
    """All synsets by key, in the order of the files.

    Raises RecordedWebError naming the file, and the line, that is missing or damaged.
    """
    synsets: dict[str, Synset] = {}
    for name in DATA_FILES:
        try:
            lines = (folder / name).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise RecordedWebError(f"{folder / name} cannot be read: {error}") from error
        for number, line in enumerate(lines, start=1):
            if line.startswith(" "):
                continue
            try:
                synset = parse_synset(line)
            except ValueError as error:
                raise RecordedWebError(f"{folder / name}, line {number}: {error}") from error
            synsets[synset.key] = synset
    _require_targets(synsets, folder)
    return synsets


def parse_synset(line: str) -> Synset:
    """One line of a data file; ValueError when it is none."""
    data, bar, gloss = line.partition(" | ")
    fields = data.split()
    try:
        offset, _, kind, word_count = fields[:4]
        words_end = 4 + 2 * int(word_count, 16)
        words = fields[4:words_end:2]
        pointers_end = words_end + 1 + 4 * int(fields[words_end])
        pointers = fields[words_end + 1 : pointers_end]
        if not bar or not words or len(fields) < pointers_end:
            raise ValueError("it is cut off")
        return Synset(
            f"{PARTS_OF_SPEECH[kind]}-{offset}",
            tuple(_MARKER.sub("", word).replace("_", " ") for word in words),
            " ".join(gloss.split()),
            tuple(
                Pointer(symbol, f"{PARTS_OF_SPEECH[target_kind]}-{target}")
                for symbol, target, target_kind in zip(
                    pointers[::4], pointers[1::4], pointers[2::4], strict=True
                )
            ),
        )
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"no synset as wndb(5WN) has it: {error}") from error


def _require_targets(synsets: Mapping[str, Synset], folder: Path) -> None:
    for synset in synsets.values():
        for pointer in synset.pointers:
            if pointer.target not in synsets:
                raise RecordedWebError(
                    f"{folder}: {synset.key} points at {pointer.target}, which is not there"
                )
