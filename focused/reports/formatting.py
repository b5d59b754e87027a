"""Format numbers and untrusted text for a terminal."""

from __future__ import annotations

from fractions import Fraction

from focused.errors import escape_control_characters

_NUMBER_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)


def odds_in_words(probability: float) -> str:
    """Put a probability in [0, 1] into words: 0.83 is ``"five in six"``."""
    if probability < 0.001:
        return "next to none"
    if probability > 0.999:
        return "all but certain"
    if probability < 0.1:
        return f"one in {_number_word(_round_to_two_digits(1 / probability))}"
    if probability > 0.9:
        parts = _round_to_two_digits(1 / (1 - probability))
        return f"{_number_word(parts - 1)} in {_number_word(parts)}"
    simplest = Fraction(probability).limit_denominator(10)
    return f"{_number_word(simplest.numerator)} in {_number_word(simplest.denominator)}"


def format_percent(part: int, whole: int) -> str:
    """Format ``part`` of ``whole`` as ``"25%"``, or a dash when ``whole`` is 0."""
    return f"{part / whole:.0%}" if whole else "–"


def format_bytes(count: int) -> str:
    """Format bytes with a decimal unit: ``"1.2 MB"``."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def format_duration(seconds: float) -> str:
    """Format seconds by their two largest units: ``"3 min 20 s"``."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def single_line(text: str, width: int = 0) -> str:
    """Put untrusted text on one line, white space collapsed, controls escaped.

    ``width`` above 0 cuts it to that many characters.
    """
    line = escape_control_characters(" ".join(text.split()))
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def _number_word(number: int) -> str:
    return _NUMBER_WORDS[number] if number < len(_NUMBER_WORDS) else str(number)


def _round_to_two_digits(number: float) -> int:
    """Round to two leading digits: 247 becomes 250."""
    whole = round(number)
    return whole if whole < 100 else round(whole, 2 - len(str(whole)))
