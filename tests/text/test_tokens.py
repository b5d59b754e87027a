"""Words by Unicode letters."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.text.tokens import MAX_WORD_CHARS, tokenize, url_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World 42", ["hello", "world"]),
        ("snake_case x don't", ["snake", "case", "don"]),
        ("Straße für Anfänger", ["strasse", "für", "anfänger"]),
        ("Ελλάδα ДОМ", ["ελλάδα", "дом"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ﬁle Ｆｕｌｌ", ["file", "full"]),
        ("日本語", ["日本", "本語"]),
        ("abc日本def", ["abc", "日本", "def"]),
        ("水", ["水"]),
        ("한국어", ["한국", "국어"]),
        ("ไทย", ["ไท", "ทย"]),
        ("ภาษาไทย python", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย", "python"]),
        ("اللغة العربية، كتاب", ["اللغة", "العربية", "كتاب"]),
        ("שלום, עולם", ["שלום", "עולם"]),
        ("機械学習 with Python で", ["機械", "械学", "学習", "with", "python", "で"]),
        ("naïve “quoted” — ¶", ["naïve", "quoted"]),
        ("", []),
    ],
)
def test_words(text, expected):
    assert tokenize(text) == expected


def test_punctuation_beyond_ascii_changes_no_word():
    assert tokenize("plain words ¶ · “here”") == tokenize("plain words here")


def test_composed_and_decomposed_letters_are_the_same_word():
    assert tokenize(unicodedata.normalize("NFD", "Käse")) == tokenize("Käse")


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("craw\u00adler", "crawler"),
        ("فُكُوسٌ كتــاب", "فكوس كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("می\u200cخواهم", "میخواهم"),
        ("क्\u200dया", "क्या"),
    ],
)
def test_a_word_is_the_same_with_and_without_marks_that_may_be_left_out(marked, plain):
    assert tokenize(marked) == tokenize(plain)


@pytest.mark.parametrize("letter", ["q", "é"])
def test_runs_too_long_to_be_words_are_left_out(letter):
    assert tokenize(f"short {letter * (MAX_WORD_CHARS + 1)} end") == ["short", "end"]


@given(st.text())
def test_any_text_gives_words_without_space_digit_or_upper_case(text):
    for word in tokenize(text):
        assert word == word.casefold() or not word.isascii()
        assert not any(char.isspace() or char in "0123456789_" for char in word)
        assert len(word) <= MAX_WORD_CHARS


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_text_gives_the_same_words_in_either_path(text):
    assert [w for w in tokenize(text + " é") if w != "é"] == tokenize(text)


@given(st.text(st.characters(max_codepoint=0xFF, categories=("L", "N", "P", "Z"))))
def test_words_are_the_runs_of_letters_that_a_pattern_finds(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    runs = re.findall(r"[^\W\d_]+", folded)
    assert tokenize(text) == [run for run in runs if len(run) > 1 or not run.isascii()]


def test_an_address_is_cut_at_punctuation_and_humps():
    address = "https://docs.example.org/3/lib/SSLContext.wrapSocket?user_name=x"
    assert tokenize(url_words(address)) == [
        *("docs", "example", "org", "lib"),
        *("ssl", "context", "wrap", "socket", "user", "name"),
    ]


def test_percent_escapes_of_utf8_are_words():
    assert tokenize(url_words("https://a.example/%E6%97%A5%E6%9C%AC")) == ["example", "日本"]


def test_escapes_of_another_charset_do_no_harm():
    assert "page" in tokenize(url_words("https://a.example/%E4%F6/page"))
