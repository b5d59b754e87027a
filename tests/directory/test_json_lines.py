"""JSON Lines as a directory."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.directory import DirectoryEntry
from focused.directory.sample_files import read_json_lines
from focused.errors import ConfigurationError

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def read(tmp_path, *lines):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return list(read_json_lines(path))


def test_a_line_is_an_object_with_category_and_url(tmp_path):
    line = (
        '{"category": "Top/Food/", "url": "HTTP://A.example/x#top", "title": "Brie", '
        '"description": "Soft", "weight": 2, "source": "mine"}'
    )
    assert read(tmp_path, line) == [
        DirectoryEntry("Top/Food", "http://a.example/x", "Brie", "Soft", 2.0)
    ]


def test_a_text_needs_no_address_and_is_not_fetched(tmp_path):
    first, second, same = read(
        tmp_path,
        '{"category": "Top/Food", "text": "Brie is soft."}',
        '{"category": "Top/Food", "text": "Cheddar is hard."}',
        '{"category": "Top/Other", "text": "Brie is soft.", "url": null}',
    )
    assert not first.needs_fetch
    assert first.url == same.url != second.url


def test_a_text_with_an_address_keeps_it_and_is_not_fetched(tmp_path):
    line = '{"category": "Top", "text": "Brie", "url": "https://a.example/"}'
    (entry,) = read(tmp_path, line)
    assert (entry.url, entry.needs_fetch) == ("https://a.example/", False)


def test_a_compressed_file_is_read_by_its_ending(tmp_path):
    path = tmp_path / "samples.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"category": "Top", "url": "http://a.example/"}\n'))
    assert [entry.url for entry in read_json_lines(path)] == ["http://a.example/"]


def test_a_cut_off_compressed_file_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "samples.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"category": "Top", "url": "http://a.example/"}\n' * 99)[:-9])
    with pytest.raises(ConfigurationError, match=r"cannot read .*samples\.jsonl\.gz"):
        list(read_json_lines(path))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not a JSON object on one line"),
        ("[]", "Expected `object`, got `array`"),
        ('{"url": "http://a.example/"}', "missing required field `category`"),
        ('{"category": 3, "url": "http://a.example/"}', "Expected `str`, got `int`"),
        ('{"category": "Top"}', "neither url nor text"),
        ('{"category": " / ", "text": "x"}', "category is empty"),
        ('{"category": "Top", "url": "ftp://a.example/"}', "not an http or https address"),
        ('{"x": ' + "[" * 9_999 + "]" * 9_999 + "}", "not a JSON object on one line"),
        ('{"category": "Top", "text": "x", "weight": 0}', "weight must be a number above 0"),
        ('{"category": "Top", "text": "x", "weight": -1}', "weight must be a number above 0"),
    ],
)
def test_a_bad_line_is_an_error_that_names_file_and_line(tmp_path, line, complaint):
    good = '{"category": "Top", "text": "x"}'
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, good, "", line)
    assert "samples.jsonl:3: " in str(error.value)
    assert complaint in str(error.value)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"category": st.just("Top"), "text": _TEXT.filter(str.strip)},
            optional={"title": _TEXT, "description": _TEXT},
        )
    )
)
def test_whatever_json_writes_is_read_back(tmp_path_factory, samples):
    folder = tmp_path_factory.mktemp("json")
    path = folder / "samples.jsonl"
    lines = [json.dumps(sample) for sample in samples]
    path.write_text("\n".join(lines), encoding="utf-8")
    texts = [sample["text"].strip() for sample in samples]
    assert [entry.text for entry in read_json_lines(path)] == texts
