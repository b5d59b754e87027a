"""Measure how CPU time grows with the length of what strangers write.

    python benchmarks/growth.py [--reader NAME ...] [--pairs] [--chars N]

Each reader of ``growth_functions.py`` is called with texts of repeated pieces, of n, 2n and 4n
characters. The exponent of growth is 1 for linear functions and 2 for quadratic ones. The table has
the worst text of each reader; the exit status is 1 if an exponent exceeds 1.5.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from growth_functions import READERS, Reader

ROUNDS = 6
MOST_EXPONENT = 1.5
"""Linear is 1, quadratic 2. Half-way, because caches make long inputs dearer than short ones."""
_LEAST_S = 0.0005
_TELLING_S = 0.3


Timer = Callable[[Callable[[Any], object], Any], float]
"""Returns the CPU time of a call with an input."""


def cpu_s(call: Callable[[Any], object], given: Any) -> float:
    """Return the CPU time of one call, without garbage collections."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        call(given)
        return time.thread_time() - began
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Pumped:
    """A text of a repeated piece, as long as wanted."""

    prefix: str
    piece: str
    suffix: str

    def text(self, chars: int) -> str:
        """Return a text of at least so many characters."""
        count = max(1, (chars - len(self.prefix) - len(self.suffix)) // len(self.piece))
        return self.prefix + self.piece * count + self.suffix


@dataclass(frozen=True, slots=True)
class Growth:
    """The exponent of growth for one text, and the CPU time at its full length."""

    reader: str
    pumped: Pumped
    exponent: float
    full_s: float

    @property
    def is_harmful(self) -> bool:
        """Whether the time grows by more than the length."""
        return self.exponent > MOST_EXPONENT


def texts_of(reader: Reader, *, pairs: bool = False) -> Iterator[Pumped]:
    """Yield the texts of a reader; with ``pairs`` two pieces in turn, and one after the other."""
    pieces = reader.pieces()
    for prefix, suffix in reader.frames:
        for piece in pieces:
            yield Pumped(prefix, piece, suffix)
    if pairs:
        prefix, suffix = reader.frames[0]
        for one, other in itertools.permutations(pieces, 2):
            yield Pumped(prefix, one + other, suffix)
            yield Pumped(prefix + one, other, suffix)


def measure(
    reader: Reader,
    pumped: Pumped,
    chars: int | None = None,
    cpu_s: Timer = cpu_s,
) -> Growth:
    """Return the growth for one text."""
    exponent, full_s = exponent_of(
        reader.read, pumped.text, chars or reader.chars, reader.noise_s, cpu_s
    )
    return Growth(reader.name, pumped, exponent, full_s)


def exponent_of(
    call: Callable[[Any], object],
    make: Callable[[int], Any],
    full: int,
    noise_s: float = 0.005,
    cpu_s: Timer = cpu_s,
) -> tuple[float, float]:
    """Return the exponent of CPU time, and the CPU time of the longest input.

    The lesser of the exponents from n to 2n and from 2n to 4n, which is ``full``; 0 for a time
    below ``noise_s``, which tells nothing. What seems harmful in a short time is measured at four
    times its length, and again, until the time tells: what is quadratic stays so, and what only
    just left a cache, or met other work on the machine, does not. ``cpu_s`` measures a call.
    """
    while True:
        exponent, full_s = _exponent_up_to(call, make, full, noise_s, cpu_s)
        if exponent <= MOST_EXPONENT or full_s >= _TELLING_S:
            return exponent, full_s
        full *= 4


def _exponent_up_to(
    call: Callable[[Any], object],
    make: Callable[[int], Any],
    full: int,
    noise_s: float,
    cpu_s: Timer,
) -> tuple[float, float]:
    """Return the exponent and the CPU time up to one length.

    By the least times of several rounds: other work on the machine makes a round longer, and none
    shorter. The rounds end as soon as the growth is harmless.
    """
    full_s = cpu_s(call, make(full))
    if full_s < noise_s:
        return 0.0, full_s
    inputs = [make(full // share) for share in (4, 2, 1)]
    least = [math.inf, math.inf, full_s]
    exponent = math.inf
    for _ in range(ROUNDS):
        for place, given in enumerate(inputs):
            least[place] = min(least[place], cpu_s(call, given))
        quarter_s, half_s, full_s = (max(each, _LEAST_S) for each in least)
        exponent = min(math.log2(half_s / quarter_s), math.log2(full_s / half_s))
        if exponent <= MOST_EXPONENT or full_s < noise_s:
            break
    return 0.0 if full_s < noise_s else exponent, full_s


def growths(reader: Reader, texts: Iterable[Pumped], chars: int | None = None) -> Iterator[Growth]:
    """Yield the growth for each text."""
    reader.read("a")  # what is imported and compiled at the first call
    for pumped in texts:
        yield measure(reader, pumped, chars)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a function grows by more than the length of its text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reader", action="append", help="only this one; may be repeated")
    parser.add_argument("--pairs", action="store_true", help="pairs of pieces, too: takes an hour")
    parser.add_argument("--chars", type=int, help="length of the texts; each reader has its own")
    options = parser.parse_args(arguments)
    harmful = 0
    print(
        "| reader | texts | worst text | exponent | CPU s at full length |\n|---|---|---|---|---|"
    )
    for reader in READERS:
        if options.reader and reader.name not in options.reader:
            continue
        found = list(growths(reader, texts_of(reader, pairs=options.pairs), options.chars))
        bad = sorted(filter(lambda each: each.is_harmful, found), key=lambda each: -each.full_s)
        harmful += len(bad)
        for each in bad or [max(found, key=lambda each: each.full_s)]:
            shown = f"{each.pumped.prefix[-40:]!r} {each.pumped.piece!r} {each.pumped.suffix!r}"
            print(
                f"| {reader.name} | {len(found)} | {shown.replace('|', '&#124;')} "
                f"| {each.exponent:.2f} | {each.full_s:.3f} |",
                flush=True,
            )
    return int(harmful > 0)


if __name__ == "__main__":
    sys.exit(main())
