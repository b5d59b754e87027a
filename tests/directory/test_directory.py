"""Directory files: samples, and errors with file and line."""

from pathlib import Path

import pytest

from focused.directory import DirectoryEntry, is_in_category
from focused.directory.directory_reader import load_directory
from focused.directory.sample_set import make_sample_set
from focused.errors import ConfigurationError, TrainingError


def written(tmp_path: Path, text: str) -> list[Path]:
    path = tmp_path / "samples.tsv"
    path.write_text(text, encoding="utf-8")
    return [path]


def test_a_line_is_category_url_title_and_description(tmp_path):
    line = "Top/Food/Cheese\thttps://cheese.example/brie\tBrie\tA soft cheese\n"
    assert load_directory(written(tmp_path, line)) == [
        DirectoryEntry("Top/Food/Cheese", "https://cheese.example/brie", "Brie", "A soft cheese")
    ]


def test_title_and_description_may_be_left_out(tmp_path):
    (entry,) = load_directory(written(tmp_path, "Top/Food\thttp://a.example/\n"))
    assert (entry.title, entry.description) == ("", "")


def test_comments_blank_lines_header_and_byte_order_mark_are_skipped(tmp_path):
    text = "\ufeff# cheeses\n\nCategory\tURL\ttitle\tdescription\r\nTop/Food\thttp://a.example/\r\n"
    assert [entry.url for entry in load_directory(written(tmp_path, text))] == ["http://a.example/"]


def test_addresses_are_normalised(tmp_path):
    (entry,) = load_directory(written(tmp_path, "Top/Food\tHTTP://A.Example:80/x#top\n"))
    assert entry.url == "http://a.example/x"


def test_slashes_around_a_category_do_not_count(tmp_path):
    (entry,) = load_directory(written(tmp_path, "/Top/Food/\thttp://a.example/\n"))
    assert entry.category == "Top/Food"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("Top/Food", "1 column"),
        ("Top/Food\thttp://a.example/\tt\td\tmore", "5 column"),
        ("Top/Food\tmailto:me@a.example", "not an http or https address"),
        ("Top/Food\t/relative", "not an http or https address"),
        ("\thttp://a.example/", "category is empty"),
    ],
)
def test_a_bad_line_is_an_error_that_names_file_and_line(tmp_path, line, complaint):
    paths = written(tmp_path, f"# comment\n{line}\n")
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        load_directory(paths)
    assert f"{paths[0]}:2" in str(caught.value)


def test_a_missing_file_is_an_error_that_names_key_and_file(tmp_path):
    with pytest.raises(ConfigurationError, match=r"training\.directory.*nowhere\.tsv"):
        load_directory([tmp_path / "nowhere.tsv"])


def test_a_file_in_another_encoding_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "latin.tsv"
    path.write_bytes("Top/Food\thttp://a.example/\nTop/Käse\thttp://b.example/\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"latin\.tsv:2.*UTF-8"):
        load_directory([path])


def test_an_empty_directory_is_an_error_that_names_the_key(tmp_path):
    with pytest.raises(TrainingError, match=r"training\.directory.*samples\.tsv"):
        load_directory(written(tmp_path, "# nothing yet\n"))


def test_a_prefix_covers_itself_and_whole_parts_below():
    assert is_in_category("Top/A", "Top/A")
    assert is_in_category("Top/A/B", "Top/A/")
    assert not is_in_category("Top/AB", "Top/A")
    assert not is_in_category("Top", "Top/A")


def test_good_categories_are_those_below_any_prefix():
    names = ["Top/A", "Top/A/B", "Top/AB", "Top/C"]
    listed = [DirectoryEntry(name, f"https://{i}.example/") for i, name in enumerate(names)]
    assert make_sample_set(listed, ["Top/A", "Top/C"]).good == (True, True, False, True)


def test_a_good_category_without_a_sample_is_an_error_that_names_the_key():
    with pytest.raises(TrainingError, match=r"training\.good: 'Top/Food'.*Top/Home"):
        make_sample_set([DirectoryEntry("Top/Home", "https://a.example/")], ["Top/Food"])


def test_a_page_listed_as_good_and_as_other_counts_as_good():
    both = "http://both.example/"
    listed = [
        DirectoryEntry("Top/Home", both),
        DirectoryEntry("Top/Food", both),
        DirectoryEntry("Top/Home", "http://other.example/"),
    ]
    samples = make_sample_set(listed, ["Top/Food"])
    assert dict(zip([e.url for e in samples.entries], samples.good, strict=True)) == {
        both: True,
        "http://other.example/": False,
    }
    assert samples.conflicts == 1


def test_a_repeated_line_counts_once():
    entry = DirectoryEntry("Top/Food", "http://a.example/")
    samples = make_sample_set([entry, entry], ["Top/Food"])
    assert (len(samples.entries), samples.repeats, samples.conflicts) == (1, 1, 0)
