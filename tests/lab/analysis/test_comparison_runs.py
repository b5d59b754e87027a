"""Reading a comparison's document: foreign or damaged parts are reported with their place."""

import json

import pytest

from focused.errors import FocusedError
from focused_lab.analysis.comparison_runs import (
    curves_frame,
    parse_comparison,
    read_comparison,
    runs_frame,
    runs_of,
)
from tests.lab.analysis.comparison_rows import document, run


def test_a_document_is_read_from_its_file(tmp_path):
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(document([run("bfs", 0.2)])))
    comparison = read_comparison(path)
    assert (comparison.focused, comparison.settings.budget) == ("0.1.0", "100")
    assert [(each.policy, each.harvest) for each in comparison.runs] == [("bfs", 0.2)]
    assert comparison.webs[0].pages == 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "was not written by 'focused compare --json'"),
        ('{"runs": []}', "was not written by 'focused compare --json'"),
        ('{"focused": "1", "runs": [{}]}', "missing required field `web` - at `$.runs[0]`"),
    ],
)
def test_what_is_no_comparison_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(FocusedError) as error:
        read_comparison(path)
    assert str(path) in str(error.value) and message in str(error.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FocusedError, match=r"none\.json cannot be read"):
        read_comparison(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"harvest": 1.2}, r"Expected `float` <= 1.0 - at `\$\.runs\[1\]\.harvest`"),
        ({"fetched": "many"}, r"Expected `int`, got `str` - at `\$\.runs\[1\]\.fetched`"),
        ({"on_topic": 101}, r"runs\[1\] has more pages on topic than fetched"),
        ({"curve": [[1, 1], [2, 0]]}, r"runs\[1\]\.curve decreases"),
        ({"policy": "bfs"}, r"runs\[1\] is the same policy and start as runs\[0\]"),
    ],
)
def test_a_damaged_run_is_reported_with_its_place(changed, message):
    rows = [run("bfs", 0.2), run("focused", 0.4) | changed]
    with pytest.raises(FocusedError, match=message):
        parse_comparison(document(rows))


def test_what_later_versions_add_is_passed_over():
    (read,) = runs_of([run("bfs", 0.2) | {"new_measure": 7}])
    assert read.policy == "bfs"


def test_frames_are_flat_and_keep_what_is_missing():
    rows = [run("bfs", 0.2, host_cap=300), run("dfs", 0.1, half_recall_pages=40)]
    read = runs_of(rows)
    frame = runs_frame(read)
    assert "curve" not in frame
    assert frame["host_cap"].isna().tolist() == [False, True]
    assert frame["half_recall_pages"].dtype == "Int64"
    curves = curves_frame(read)
    assert len(curves) == 200
    assert curves[curves["policy"] == "bfs"]["on_topic"].max() == 20
