"""Model files round-trip, and loading never executes code."""

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.classifier_file import MODEL_FORMAT, MODEL_FORMAT_VERSION
from focused.classifier.model_file import load_model, save_model
from focused.errors import ModelError
from focused.topic import ESTIMATORS
from tests.support.made_up_topic import page, trained


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("made"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_saves_plain_data_that_classifies_alike(estimator, tmp_path):
    made = trained(tmp_path, estimator=estimator)
    save_model(made, tmp_path / "made.joblib")
    loaded = load_model(tmp_path / "made.joblib")  # which refuses all but plain data
    assert loaded.report.estimator == estimator
    for kind in ("cheese", "garden"):
        assert loaded.classifier.classify(page(kind, 7)) == made.classifier.classify(page(kind, 7))
    texts = ["brie and cheddar", "tulip", ""]
    assert np.array_equal(loaded.classifier.score_texts(texts), made.classifier.score_texts(texts))


def test_a_loaded_model_rates_meanings_as_the_saved_one(model, saved):
    texts = ["mozzarella", "rake", ""]
    loaded = load_model(saved).classifier
    assert loaded.score_meanings(texts) == pytest.approx(model.classifier.score_meanings(texts))
    assert loaded.score_meanings(texts)[0] > loaded.score_meanings(texts)[1]


def test_a_model_of_another_embedding_table_is_refused(saved, monkeypatch):
    monkeypatch.setattr("focused.classifier.classifier_file.load_embedding", lambda: None)
    with pytest.raises(ModelError, match=r"embedding table .*: train again"):
        load_model(saved)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "cheese.joblib"
    save_model(model, path)
    return path


class Bomb:
    """Touches a file when unpickled by somebody careless."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


def content_of(path: Path) -> dict:
    return joblib.load(path)


def rewritten(path: Path, tmp_path: Path, **changes: object) -> Path:
    changed = tmp_path / "changed.joblib"
    joblib.dump({**content_of(path), **changes}, changed)
    return changed


def test_a_loaded_model_classifies_as_the_saved_one(model, saved):
    pages = [page(kind, n) for kind in ("cheese", "garden") for n in range(300, 320)]
    loaded = load_model(saved).classifier
    assert [loaded.classify(one) for one in pages] == [
        model.classifier.classify(one) for one in pages
    ]


def test_a_loaded_model_has_the_report_it_was_saved_with(model, saved):
    assert load_model(saved).report == model.report


def test_saving_a_loaded_model_gives_the_same_bytes(saved, tmp_path):
    save_model(load_model(saved), tmp_path / "again.joblib")
    assert (tmp_path / "again.joblib").read_bytes() == saved.read_bytes()


def test_saving_leaves_nothing_but_model_and_card(model, tmp_path):
    save_model(model, tmp_path / "deep" / "cheese.joblib")
    assert {one.name for one in (tmp_path / "deep").iterdir()} == {"cheese.joblib", "cheese.md"}


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_key(model, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError, match=r"training\.model"):
        save_model(model, tmp_path / "file" / "cheese.joblib")


def test_a_missing_model_raises_an_error_with_a_remedy(tmp_path):
    with pytest.raises(ModelError, match=r"none\.joblib.*train"):
        load_model(tmp_path / "none.joblib")


@pytest.mark.parametrize("protocol", range(6))
def test_a_file_that_would_run_a_command_is_refused_and_runs_nothing(tmp_path, protocol):
    path, trace = tmp_path / "evil.joblib", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace), protocol))
    with pytest.raises(ModelError, match="more than plain data"):
        load_model(path)
    assert not trace.exists()


def test_a_bomb_inside_a_proper_model_is_refused_and_does_not_go_off(saved, tmp_path):
    trace = tmp_path / "trace"
    path = rewritten(saved, tmp_path, meta=Bomb(trace))
    with pytest.raises(ModelError, match="more than plain data"):
        load_model(path)
    assert not trace.exists()


@pytest.mark.parametrize("compress", [0, 3])
def test_an_array_of_objects_with_a_payload_is_refused(tmp_path, compress):
    path, trace = tmp_path / "objects.joblib", tmp_path / "trace"
    joblib.dump({"arrays": np.array([Bomb(trace)], dtype=object)}, path, compress=compress)
    with pytest.raises(ModelError):
        load_model(path)
    assert not trace.exists()


def test_even_an_honest_array_object_is_refused(tmp_path):
    path = tmp_path / "array.joblib"
    joblib.dump(
        {"format": MODEL_FORMAT, "version": MODEL_FORMAT_VERSION, "arrays": np.zeros(3)}, path
    )
    with pytest.raises(ModelError, match="more than plain data"):
        load_model(path)


@pytest.mark.parametrize(
    "attack",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"(S'true'\nios\nsystem\n.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
        b"\x80\x02Ptarget\n.",
        b"\x80\x02\x82\x01.",
        b"\x80\x04}Q.",
    ],
)
def test_opcodes_that_name_or_call_are_refused(tmp_path, attack):
    path = tmp_path / "attack.joblib"
    path.write_bytes(attack)
    with pytest.raises(ModelError):
        load_model(path)


def test_few_bytes_that_allocate_much_memory_are_refused(tmp_path):
    (tmp_path / "m.joblib").write_bytes(b"\x80\x04}r\x00\x00\x10\x00.")  # a memo of a million
    with pytest.raises(ModelError, match="more than plain data"):
        load_model(tmp_path / "m.joblib")


@pytest.mark.parametrize("place", ["version", "shape", "dtype"])
def test_lists_that_hold_one_another_many_times_are_never_spelled_out(saved, tmp_path, place):
    laughs: list = []
    for _ in range(60):
        laughs = [laughs, laughs]
    content = content_of(saved)
    if place == "version":
        content["version"] = laughs
    else:
        content["arrays"]["idf"][place] = laughs
    joblib.dump(content, tmp_path / "m.joblib", protocol=4)
    with pytest.raises(ModelError) as error:
        load_model(tmp_path / "m.joblib")
    assert len(str(error.value)) < 1_000


def test_bytes_after_the_end_are_refused(saved, tmp_path):
    path = tmp_path / "longer.joblib"
    path.write_bytes(saved.read_bytes() + pickle.dumps("more"))
    with pytest.raises(ModelError, match="not a Focused topic model"):
        load_model(path)


def test_a_truncated_file_is_refused_wherever_it_was_cut(saved, tmp_path):
    data, path = saved.read_bytes(), tmp_path / "short.joblib"
    for size in [*range(60), *range(60, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(ModelError):
            load_model(path)


bit_flips = st.tuples(st.floats(min_value=0, max_value=1, exclude_max=True), st.integers(0, 7))


@given(flips=bit_flips.map(lambda flip: [flip]) | st.lists(bit_flips, min_size=2, max_size=40))
def test_flipped_bits_are_noticed_or_change_nothing(saved, tmp_path_factory, flips):
    data = bytearray(saved.read_bytes())
    for place, bit in flips:
        data[int(place * len(data))] ^= 1 << bit
    path = tmp_path_factory.mktemp("flips") / "flipped.joblib"
    path.write_bytes(data)
    # Flips that change nothing exist: a memo number never used, a frame's length.
    try:
        loaded = load_model(path)
    except ModelError:
        return
    assert loaded.report == load_model(saved).report
    assert np.array_equal(loaded.classifier.weights, load_model(saved).classifier.weights)


def test_the_same_samples_give_the_same_bytes_in_any_process(saved, tmp_path):
    made = [saved.read_bytes()]
    for seed in ("0", "1"):
        path = tmp_path / seed / "cheese.joblib"
        code = (
            "from pathlib import Path; from tests.support.made_up_topic import trained; "
            "from focused.classifier.model_file import save_model; "
            f"folder = Path({str(tmp_path / seed)!r}); folder.mkdir(); "
            f"save_model(trained(folder), Path({str(path)!r}))"
        )
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        made.append(path.read_bytes())
    assert made[0] == made[1] == made[2]


def signed(saved: Path, tmp_path: Path, meta: dict) -> Path:
    """The saved model with other metadata, and their digest."""
    content = {**content_of(saved), "meta": json.dumps(meta)}
    return rewritten(saved, tmp_path, **{**content, "digest": digest_or_none(content)})


@pytest.mark.parametrize(
    "parents", [[], [0, -1], [-1, -1, 5], [-2, -1], [True, -1], ["-1", -1], [-1, 2, 1]]
)
def test_categories_that_make_no_tree_are_refused(saved, tmp_path, parents):
    meta = json.loads(content_of(saved)["meta"]) | {"parents": parents}
    with pytest.raises(ModelError):
        load_model(signed(saved, tmp_path, meta))


@pytest.mark.parametrize(
    "curve",
    [
        {"points": [1.0], "shares": []},
        {"points": [1.0, 0.0], "shares": [0.2, 0.4]},
        {"points": [0.0], "shares": [1.5]},
        {"points": ["0"], "shares": [0.5]},
    ],
)
def test_a_calibration_that_is_no_curve_is_refused(saved, tmp_path, curve):
    meta = json.loads(content_of(saved)["meta"])
    meta["calibration"]["curve"] |= curve
    with pytest.raises(ModelError):
        load_model(signed(saved, tmp_path, meta))


def test_a_newer_format_is_refused_with_advice(saved, tmp_path):
    path = rewritten(saved, tmp_path, version=MODEL_FORMAT_VERSION + 1)
    with pytest.raises(ModelError, match=f"format {MODEL_FORMAT_VERSION + 1}.*update the program"):
        load_model(path)


@pytest.mark.parametrize("version", [0, None, "1", True, 1.0])
def test_an_odd_format_version_is_refused(saved, tmp_path, version):
    with pytest.raises(ModelError, match="train again"):
        load_model(rewritten(saved, tmp_path, version=version))


@pytest.mark.parametrize("other", [{}, [], "text", 7, None, {"format": "something else"}])
def test_plain_data_that_is_no_model_is_refused(tmp_path, other):
    path = tmp_path / "other.joblib"
    joblib.dump(other, path)
    with pytest.raises(ModelError, match="not a Focused topic model"):
        load_model(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"meta": "{}"},
        {"meta": "not json"},
        {"meta": 7},
        {"meta": "[" * 100_000},
        {"arrays": {}},
        {"arrays": [1, 2]},
        {"arrays": {"idf": {"dtype": "|O", "shape": [1], "data": b"12345678"}}},
        {"arrays": {"idf": {"dtype": "<f4", "shape": [10**12], "data": b"1234"}}},
        {"arrays": {"idf": {"dtype": "<f4", "shape": [1], "data": b"\xff\xff\xff\xff"}}},
    ],
)
def test_contents_that_do_not_fit_are_refused(saved, tmp_path, changes):
    content = {**content_of(saved), **changes}
    with pytest.raises(ModelError):
        load_model(rewritten(saved, tmp_path, **changes))
    # Nor does a fitting digest help.
    path = tmp_path / "signed.joblib"
    joblib.dump({**content, "digest": digest_or_none(content)}, path)
    with pytest.raises(ModelError):
        load_model(path)


def digest_or_none(content: dict) -> str | None:
    from focused.classifier.classifier_file import content_digest

    try:
        return content_digest(content["meta"], content["arrays"])
    except (TypeError, AttributeError, KeyError):
        return None


def test_the_card_has_all_sections(model, tmp_path):
    card = save_model(model, tmp_path / "cheese.joblib")
    text = card.read_text(encoding="utf-8")
    assert card.name == "cheese.md"
    for part in ("# Topic model: cheese", "2023-11-14", "30 good samples", "directory.tsv"):
        assert part in text
    for figure in ("precision", "recall", "AUC", "ECE", "Before", "After", "scikit-learn"):
        assert figure in text
    assert re.search(r"on topic from a relevance of \*\*0\.\d\d\*\*", text)
    assert "cheddar (" in text


def test_the_card_warns_when_whole_hosts_could_not_be_left_out(tmp_path):
    from tests.support.made_up_topic import web

    card = save_model(trained(tmp_path, web(hosts=1)), tmp_path / "cheese.joblib")
    assert "are optimistic" in card.read_text(encoding="utf-8")
