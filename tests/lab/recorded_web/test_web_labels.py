"""labels.tsv: url, tab, category."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import RecordedWebError
from focused_lab.recorded_web.recorded_web import read_web_labels, write_web_labels

WORDS = st.text(
    st.characters(exclude_characters="\t\r\n", exclude_categories=["Cs"]), min_size=1
).filter(lambda text: text.strip() == text and not text.startswith("#"))


@given(labels=st.lists(st.tuples(WORDS, WORDS), max_size=20))
def test_labels_are_read_back_as_sets(tmp_path_factory, labels):
    path = tmp_path_factory.mktemp("labels") / "labels.tsv"
    assert write_web_labels(path, labels) == len(set(labels))
    read = read_web_labels(path)
    assert {(url, category) for url, names in read.items() for category in names} == set(labels)


def test_without_a_file_nothing_is_labelled(tmp_path):
    assert read_web_labels(tmp_path / "labels.tsv") == {}


def test_empty_lines_and_comments_are_skipped(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("# url\tcategory\n\nhttps://a.example/\tTop/A\r\n")
    assert read_web_labels(path) == {"https://a.example/": frozenset({"Top/A"})}


@pytest.mark.parametrize("line", ["https://a.example/", "\tTop/A", "https://a.example/\tA\tB"])
def test_a_broken_line_is_named_by_file_and_number(tmp_path, line):
    path = tmp_path / "labels.tsv"
    path.write_text(f"https://a.example/\tTop/A\n{line}\n")
    with pytest.raises(RecordedWebError, match=r"labels\.tsv, line 2"):
        read_web_labels(path)


def test_a_file_that_is_not_a_text_is_an_error(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecordedWebError, match="UTF-8"):
        read_web_labels(path)


@pytest.mark.parametrize("label", [("https://a.example/", ""), ("a\tb", "Top"), ("a", "To\np")])
def test_a_label_that_would_break_the_file_is_refused(tmp_path, label):
    with pytest.raises(RecordedWebError, match="one URL and one category"):
        write_web_labels(tmp_path / "labels.tsv", [label])
