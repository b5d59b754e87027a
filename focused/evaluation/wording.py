"""Numbers and foreign text in words that a terminal can show."""

from __future__ import annotations

from fractions import Fraction

from focused.errors import visible

_NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def odds(probability: float) -> str:
    """A probability in [0, 1] as people say it: 0.83 is ``"five in six"``."""
    if probability < 0.001:
        return "next to none"
    if probability > 0.999:
        return "all but certain"
    if probability < 0.1:
        return f"one in {_numeral(_round_figure(1 / probability))}"
    if probability > 0.9:
        parts = _round_figure(1 / (1 - probability))
        return f"{_numeral(parts - 1)} in {_numeral(parts)}"
    simplest = Fraction(probability).limit_denominator(10)
    return f"{_numeral(simplest.numerator)} in {_numeral(simplest.denominator)}"


def percent(part: int, whole: int) -> str:
    """``"25%"``, or a dash of nothing."""
    return f"{part / whole:.0%}" if whole else "–"


def size(count: int) -> str:
    """Bytes with a decimal unit: ``"1.2 MB"``."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def duration(seconds: float) -> str:
    """Seconds as ``"3 min 20 s"``: the two largest units."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def plain(text: str, width: int = 0) -> str:
    """Foreign text on one line: white space becomes a blank, controls :func:`visible`.

    ``width`` above 0 cuts it to that many characters.
    """
    line = visible(" ".join(text.split()))
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def _numeral(number: int) -> str:
    return _NUMERALS[number] if number < len(_NUMERALS) else str(number)


def _round_figure(number: float) -> int:
    """Two leading digits: 247 is 250."""
    whole = round(number)
    return whole if whole < 100 else round(whole, 2 - len(str(whole)))
