"""FOLDOC: a dictd dictionary as a web of small labelled pages."""

import gzip
import string
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import RecordedWebError
from focused_lab.builders.foldoc import (
    DictEntry,
    FoldocEntry,
    build_foldoc,
    categories,
    decode_number,
    foldoc_pages,
    parse_entries,
    parse_entry,
    read_dictionary,
)
from focused_lab.recorded_web.recorded_web import RecordedWeb

DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"

BROKER = "broker\n\n   <networking, standard> A go-between, see {object\n   request broker}.\n"
ORB = "object request broker\nORB\n\n   <programming> (ORB) Part of {CORBA}.\n\n   (1995-02-07)\n"
PLAIN = "plain C\n\n   {C} without <angles>, see {the page (http://c.example/)}.\n"


def encode_number(number: int) -> str:
    digits = DIGITS[number % 64]
    while number := number // 64:
        digits = DIGITS[number % 64] + digits
    return digits


def dictionary(folder: Path, entries: Mapping[str, str]) -> tuple[Path, Path]:
    """A dictd dictionary of entries by headword, joined by commas when there are several."""
    folder.mkdir(parents=True, exist_ok=True)
    text = b""
    lines = []
    for words, entry in entries.items():
        place = f"{encode_number(len(text))}\t{encode_number(len(entry.encode()))}"
        lines += [f"{word}\t{place}\n" for word in words.split(",")]
        text += entry.encode()
    index, data = folder / "foldoc.index", folder / "foldoc.dict.dz"
    index.write_text("".join(sorted(lines)))
    data.write_bytes(gzip.compress(text))
    return index, data


def entry(text: str, *headwords: str) -> FoldocEntry:
    parsed = parse_entry(DictEntry(headwords, text))
    assert parsed is not None
    return parsed


@pytest.fixture
def pages() -> dict[str, str]:
    """What stands on the pages, by URL."""
    entries = [entry(BROKER), entry(ORB), entry(PLAIN)]
    return {page.url: page.body for page in foldoc_pages(entries)}


@given(number=st.integers(min_value=0, max_value=2**40))
def test_base_64_numbers_are_read_back(number):
    assert decode_number(encode_number(number)) == number


@pytest.mark.parametrize("digits", ["", "A!", "=="])
def test_other_signs_are_no_number(digits):
    with pytest.raises(ValueError, match="base-64"):
        decode_number(digits)


def test_words_of_one_entry_are_brought_together(tmp_path):
    files = dictionary(tmp_path, {"broker": BROKER, "object request broker,orb": ORB})
    assert read_dictionary(*files) == [
        DictEntry(("broker",), BROKER),
        DictEntry(("object request broker", "orb"), ORB),
    ]


def test_entries_about_the_database_are_excluded(tmp_path):
    files = dictionary(tmp_path, {"00-database-short": "00\n\n   FOLDOC\n", "broker": BROKER})
    assert [found.headwords for found in read_dictionary(*files)] == [("broker",)]


@pytest.mark.parametrize("line", ["word\tA\n", "word\tA\t!\n", "word\tA\t////\n"])
def test_a_damaged_index_line_is_named(tmp_path, line):
    index, data = dictionary(tmp_path, {"broker": BROKER})
    index.write_text(index.read_text() + line)
    with pytest.raises(RecordedWebError, match=r"foldoc\.index, line 2"):
        read_dictionary(index, data)


def test_a_damaged_data_file_is_an_error(tmp_path):
    index, data = dictionary(tmp_path, {"broker": BROKER})
    data.write_bytes(data.read_bytes()[:-10])
    with pytest.raises(RecordedWebError, match="cannot be read"):
        read_dictionary(index, data)


def test_the_tag_is_taken_out_and_becomes_the_subjects():
    parsed = entry(BROKER)
    assert parsed.subjects == ("networking", "standard")
    assert parsed.paragraphs == ("A go-between, see {object request broker}.",)


def test_subjects_become_categories():
    parsed = entry("x\n\n   <operating system, file format> An x.\n")
    assert categories(parsed) == ["Top/Computers/Operating_System", "Top/Computers/File_Format"]


def test_every_sense_has_its_tag():
    parsed = entry("x\n\n   1. <storage> One.\n\n   2. <hardware,\n   storage> Two.\n")
    assert parsed.subjects == ("storage", "hardware")
    assert parsed.paragraphs == ("1. One.", "2. Two.")


def test_a_tag_may_stand_behind_pronunciation_and_abbreviation():
    assert entry("exec\n\n   /eg-zek'/ <operating system> Run.\n").subjects == ("operating system",)
    assert entry("SSD\n\n   (SSD) <storage> A disk.\n").subjects == ("storage",)


def test_angle_brackets_inside_the_text_are_no_tag():
    parsed = entry("x\n\n   Write <left, right> and <b>.\n")
    assert parsed.subjects == ()
    assert parsed.paragraphs == ("Write <left, right> and <b>.",)


def test_entries_without_a_tag_have_no_category():
    assert categories(entry(PLAIN)) == []


def test_an_entry_without_a_title_is_none():
    assert parse_entry(DictEntry(("x",), "\n\n\n")) is None


def test_names_may_be_joined_by_percent_signs():
    assert entry("FOLDOC%%%this\ndictionary\n\n   Words.\n").names == (
        "FOLDOC",
        "this",
        "dictionary",
    )


def test_of_two_entries_with_one_title_the_first_stays():
    raw = [DictEntry((), "x\n\n   One.\n"), DictEntry((), "x\n\n   Two.\n")]
    assert [found.paragraphs for found in parse_entries(raw)] == [("One.",)]


@pytest.mark.parametrize(
    ("title", "path"),
    [("plain C", "plain+C"), ("C++", "C%2B%2B"), ("CSMA/CD", "CSMA%2FCD"), ("C#", "C%23")],
)
def test_titles_become_addresses(title, path):
    assert entry(f"{title}\n\n   x\n").url == f"http://foldoc.org/{path}"


def test_the_tag_is_not_on_the_page(pages):
    assert "networking" not in pages["http://foldoc.org/broker"]


def test_cross_references_are_links_even_over_line_breaks(pages):
    link = '<a href="http://foldoc.org/object+request+broker">object request broker</a>.'
    assert link in pages["http://foldoc.org/broker"]


def test_cross_references_that_lead_nowhere_are_text(pages):
    assert "Part of CORBA." in pages["http://foldoc.org/object+request+broker"]


def test_references_to_other_sites_keep_their_address(pages):
    assert '<a href="http://c.example/">the page</a>' in pages["http://foldoc.org/plain+C"]


def test_text_is_escaped(pages):
    assert "&lt;angles&gt;" in pages["http://foldoc.org/plain+C"]


def test_an_entry_is_found_by_its_other_names():
    assert "ORB" in entry(ORB, "object request broker", "orb").names


def test_every_entry_can_be_reached_from_the_home_page(pages):
    assert 'href="/contents/p.html"' in pages["http://foldoc.org/"]
    assert 'href="http://foldoc.org/plain+C"' in pages["http://foldoc.org/contents/p.html"]


def test_the_package_becomes_a_labelled_web(tmp_path, debian):
    index, data = dictionary(tmp_path / "files", {"broker": BROKER, "plain c": PLAIN})
    folder = "/usr/share/dictd/"
    files = {folder + index.name: index.read_bytes(), folder + data.name: data.read_bytes()}
    debian.add("dict-foldoc", files)
    built = build_foldoc(tmp_path / "web", tmp_path / "cache", lambda line: None)
    assert (built.fresh, built.pages) == (True, 5)
    with RecordedWeb.open(tmp_path / "web") as web:
        assert web.labels == {
            "http://foldoc.org/broker": {"Top/Computers/Networking", "Top/Computers/Standard"}
        }
    again = build_foldoc(tmp_path / "web", tmp_path / "cache", lambda line: None)
    assert not again.fresh
