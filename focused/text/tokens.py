"""Words out of any language's text, by Unicode's letters and not by English rules.

A word is a run of letters and their combining marks, case-folded. Digits,
punctuation and underscores separate. Scripts that write no spaces between
words (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar) give overlapping pairs of
characters, which serve retrieval about as well as dictionary segmentation
(Nie, Gao, Zhang, Zhou 2000, "On the use of words and n-grams for Chinese
information retrieval"). Marks that a word may be written with or without (soft
hyphens, joiners, vowel points of Hebrew and Arabic) are dropped. There is no
stop list: weights learn what says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache, lru_cache
from urllib.parse import unquote

_MAX_CACHED_CHARS = 500

MAX_WORD_CHARS = 40
"""Longer runs of letters (base64, minified names) are dropped: nobody writes them."""

# Bytes are split in a third of the time that a pattern takes.
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
# What a word may be written with or without: soft hyphens, joiners, the stretched line of Arabic,
# and the vowel points of Hebrew and Arabic, which few texts have.
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
    r"""Combining marks as the inside of a character class.

    ``\w`` of :mod:`re` leaves them out, which would cut every Devanagari,
    Tamil or decomposed Latin word at its vowel signs.
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
    """The words of ``text`` in order, repeats kept.

    Single ASCII letters and runs over :data:`MAX_WORD_CHARS` are left out.
    Text in compatibility forms (full width, ligatures) gives the same words
    as its plain form.
    """
    # A waiting link's anchor and address are asked for again and again.
    return list(_cached_words(text)) if len(text) <= _MAX_CACHED_CHARS else _tokenize(text)


@lru_cache(1_024)
def _cached_words(text: str) -> tuple[str, ...]:
    return tuple(_tokenize(text))


def _tokenize(text: str) -> list[str]:
    raw = text.encode("utf-8", _ENCODING_ERRORS)
    odd = _non_ascii_chars(raw)
    if not odd.isdisjoint(_IGNORED_CHARS):
        return _tokenize(text.translate(_IGNORED_CODE_POINTS))
    if _has_letters(odd):
        return _tokenize_non_ascii(text)
    runs = raw.translate(_ASCII_LETTERS_ONLY).decode("ascii").split()
    return [run for run in runs if 1 < len(run) <= MAX_WORD_CHARS]


def has_only_ascii_letters(text: str) -> bool:
    """Whether all that is beyond ASCII in it separates words: quotes, dashes, arrows."""
    if text.isascii():
        return True
    odd = _non_ascii_chars(text.encode("utf-8", _ENCODING_ERRORS))
    return odd.isdisjoint(_IGNORED_CHARS) and not _has_letters(odd)


def _has_letters(odd: set[str]) -> bool:
    return any(unicodedata.category(char)[0] in "LM" for char in odd)


def _non_ascii_chars(raw: bytes) -> set[str]:
    """The different characters beyond ASCII of a text in UTF-8."""
    return set(raw.translate(None, _ASCII).decode("utf-8", _ENCODING_ERRORS))


def _tokenize_non_ascii(text: str) -> list[str]:
    """:func:`tokenize` of a text with letters beyond ASCII."""
    text = unicodedata.normalize("NFKC", text).casefold()
    odd = _non_ascii_chars(text.encode("utf-8", _ENCODING_ERRORS))
    runs = _letter_runs(text, odd)
    if not _UNSPACED_CHAR.search("".join(odd)):
        return [run for run in runs if _is_word(run)]
    unspaced = _unspaced_run()
    found: list[str] = []
    for run in runs:
        if not run.isascii() and unspaced.search(run):
            found.extend(filter(_is_word, _split_mixed_run(run, unspaced)))
        elif _is_word(run):
            found.append(run)
    return found


def _letter_runs(text: str, odd: set[str]) -> list[str]:
    """The runs of letters and marks of a folded text; ``odd`` are its characters beyond ASCII."""
    if any(unicodedata.category(char) in ("Mn", "Mc") for char in odd):
        return _word_with_marks().findall(text)
    separators = [char for char in odd if not _LETTER_RUN.match(char)]
    if len(separators) > _FEW_SEPARATORS:
        return _LETTER_RUN.findall(text)
    for char in separators:
        text = text.replace(char, " ")
    return (
        text.encode("utf-8", _ENCODING_ERRORS)
        .translate(_ASCII_LETTERS_AND_NON_ASCII)
        .decode("utf-8", _ENCODING_ERRORS)
        .split()
    )


def _is_word(run: str) -> bool:
    return 1 < len(run) <= MAX_WORD_CHARS or (len(run) == 1 and not run.isascii())


def _split_mixed_run(run: str, unspaced: re.Pattern[str]) -> list[str]:
    """Pairs of the unspaced parts of one run of letters; the other parts whole."""
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
    """Overlapping pairs of characters; a lone character stands for itself."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def url_words(url: str) -> str:
    """The words of a URL's host, path and query as a text fit for :func:`tokenize`.

    Percent escapes are decoded, camel case is cut at its humps; the scheme,
    a leading ``www`` and what every address has (``html``, ``com``) are left
    to the weights, which find that they say nothing.
    """
    _, _, rest = url.partition("://")
    with suppress(UnicodeDecodeError):  # escapes of another charset stay escapes
        rest = unquote(rest, errors="strict")
    return rest if rest.islower() else _CAMEL_CASE_BOUNDARY.sub(" ", rest)
