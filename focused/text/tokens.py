"""Tokenises text of any language by Unicode letters.

A word is a case-folded run of letters and their combining marks. Digits, punctuation and
underscores separate words. Scripts without spaces between words (Han, Kana, Hangul, Thai,
Lao, Khmer, Myanmar) give overlapping character bigrams, which perform about as well as
dictionary segmentation (Nie, Gao, Zhang, Zhou 2000, "On the use of words and n-grams for
Chinese information retrieval"). Optional marks (soft hyphens, joiners, vowel points of
Hebrew and Arabic) are dropped. There is no stop list: the weights handle frequent words.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache
from urllib.parse import unquote

MAX_WORD_CHARS = 40
"""Longer runs of letters (base64, minified names) are dropped."""

# Splitting bytes takes a third of the time of a regular expression.
_ASCII_LETTERS = bytes(ord(chr(b).lower()) if chr(b).isalpha() else 32 for b in range(128))
_ASCII_LETTERS_ONLY = _ASCII_LETTERS + bytes([32] * 128)
_ASCII_LETTERS_AND_NON_ASCII = _ASCII_LETTERS + bytes(range(128, 256))
_ASCII = bytes(range(128))
_ENCODING_ERRORS = "surrogatepass"
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
)
_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
# Optional in spelling: soft hyphens, joiners, Arabic tatweel, vowel points of Hebrew and Arabic.
_IGNORED_CODE_POINTS = dict.fromkeys(
    (
        *(0xAD, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x640, 0x670),
        *(0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7),
        *range(0x591, 0x5BE),
        *range(0x64B, 0x660),
    )
)
_IGNORED_CHARS = frozenset(map(chr, _IGNORED_CODE_POINTS))
_LETTER_RUN = re.compile(r"[^\W\d_]+")
_FEW_SEPARATORS = 32
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def _combining_marks() -> str:
    r"""Return combining marks for use inside a character class.

    ``\w`` of :mod:`re` omits them, which would split Devanagari, Tamil or decomposed Latin
    words at their vowel signs.
    """
    return "".join(
        re.escape(chr(code))
        for code in range(0x300, 0xFFFF)
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    )


@cache
def _word_with_marks() -> re.Pattern[str]:
    return re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_combining_marks()}])*")


@cache
def _unspaced_run() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}][{_UNSPACED}{_combining_marks()}]*")


def tokenize(text: str) -> list[str]:
    """Return the words of ``text`` in order, with repeats.

    Drops single ASCII letters and runs longer than :data:`MAX_WORD_CHARS`. Compatibility
    forms (full width, ligatures) give the same words as plain forms.
    """
    runs = separate_words(text).decode("utf-8", _ENCODING_ERRORS).split()
    runs = [run for run in runs if len(run) <= MAX_WORD_CHARS]
    return [run for run in runs if len(run) > 1 or not run.isascii()]


def separate_words(text: str) -> bytes:
    """Return the runs of letters of ``text`` in UTF-8, with nothing but blanks between them.

    Those of :func:`tokenize`, and the ones that it drops for their length.
    """
    raw = text.encode("utf-8", _ENCODING_ERRORS)
    non_ascii = _non_ascii_chars(raw)
    if not non_ascii.isdisjoint(_IGNORED_CHARS):
        return separate_words(text.translate(_IGNORED_CODE_POINTS))
    if any(unicodedata.category(char)[0] in "LM" for char in non_ascii):
        return _separate_non_ascii(unicodedata.normalize("NFKC", text).casefold())
    return raw.translate(_ASCII_LETTERS_ONLY)


def _separate_non_ascii(text: str) -> bytes:
    """:func:`separate_words` of case-folded text with non-ASCII letters."""
    raw = text.encode("utf-8", _ENCODING_ERRORS)
    non_ascii = _non_ascii_chars(raw)
    has_marks = any(unicodedata.category(char) in ("Mn", "Mc") for char in non_ascii)
    separators = [char for char in non_ascii if not _LETTER_RUN.match(char)]
    if has_marks or len(separators) > _FEW_SEPARATORS:
        pattern = _word_with_marks() if has_marks else _LETTER_RUN
        raw = " ".join(pattern.findall(text)).encode("utf-8", _ENCODING_ERRORS)
    else:
        for char in separators:
            raw = raw.replace(char.encode("utf-8", _ENCODING_ERRORS), b" ")
        raw = raw.translate(_ASCII_LETTERS_AND_NON_ASCII)
    if not _UNSPACED_CHAR.search("".join(non_ascii)):
        return raw
    unspaced = _unspaced_run()
    runs = raw.decode("utf-8", _ENCODING_ERRORS).split()
    parts = [part for run in runs for part in _split_mixed_run(run, unspaced)]
    return " ".join(parts).encode("utf-8", _ENCODING_ERRORS)


def _non_ascii_chars(raw: bytes) -> set[str]:
    """Return the distinct non-ASCII characters of UTF-8 text."""
    return set(raw.translate(None, _ASCII).decode("utf-8", _ENCODING_ERRORS))


def _split_mixed_run(run: str, unspaced: re.Pattern[str]) -> list[str]:
    """Split one run of letters: bigrams of its unspaced parts, other parts whole."""
    found: list[str] = []
    end = 0
    for match in unspaced.finditer(run):
        if run[end : match.start()]:
            found.append(run[end : match.start()])
        found.extend(_bigrams(match.group()))
        end = match.end()
    if run[end:]:
        found.append(run[end:])
    return found


def _bigrams(run: str) -> list[str]:
    """Return overlapping character bigrams, or the single character."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def url_words(url: str) -> str:
    """Return a URL's host, path and query as text for :func:`tokenize`.

    Decodes percent escapes and splits camel case. Frequent parts (``www``, ``html``, ``com``)
    stay: the weights handle them.
    """
    _, _, rest = url.partition("://")
    if "%" in rest:
        with suppress(UnicodeDecodeError):  # keep escapes of other charsets
            rest = unquote(rest, errors="strict")
    return rest if rest.islower() else _CAMEL_CASE_BOUNDARY.sub(" ", rest)
