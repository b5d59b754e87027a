"""The label file loses no acknowledged label."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from focused.errors import LabelError
from focused.labels.label_file import Label, LabelFile, read_labels

URLS = ("https://a.example/", "https://b.example/ü?x=\u2028", "https://c.example/")


def label(url: str = URLS[0], **fields: object) -> Label:
    return Label(**{"url": url, "verdict": "yes", "role": "training", "at": 1.5, **fields})  # type: ignore[arg-type]


LABELS = st.builds(
    Label,
    url=st.sampled_from(URLS),
    verdict=st.sampled_from(("yes", "no", "skip")),
    role=st.sampled_from(("evaluation", "training")),
    at=st.floats(0, 2e9),
    category=st.text(max_size=5),
    reason=st.sampled_from(("random", "uncertain", "doubtful", "high", "given")),
    relevance=st.none() | st.floats(0, 1),
    model=st.text(max_size=5),
    title=st.text(max_size=20),
)
STEPS = st.lists(LABELS | st.sampled_from(URLS), max_size=12)
"""Labels to append, and URLs to undo."""


def expected(steps: list[Label | str]) -> tuple[Label, ...]:
    """What stands after ``steps``: each undo strikes out its URL's last label."""
    messages: list[Label] = []
    for step in steps:
        if isinstance(step, Label):
            messages.append(step)
        else:
            struck = [i for i, one in enumerate(messages) if one.url == step]
            if struck:
                del messages[struck[-1]]
    return tuple(
        one for i, one in enumerate(messages) if one.url not in {x.url for x in messages[i + 1 :]}
    )


def play(path: Path, steps: list[Label | str]) -> list[int]:
    """Write ``steps`` in one session; the file's length after each."""
    lengths = [0]
    with LabelFile(path) as file:
        for step in steps:
            if isinstance(step, Label):
                file.append(step)
            else:
                file.undo(step, at=2.0)
            lengths.append(path.stat().st_size)
        assert file.labels == expected(steps)
    return lengths


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("labels") / "mine.labels.jsonl"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # busy machines
@given(steps=STEPS)
def test_any_appends_and_undos_leave_the_last_word_on_each_page(path, steps):
    path.unlink(missing_ok=True)
    play(path, steps)
    assert read_labels(path) == expected(steps)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # busy machines
@given(steps=STEPS.filter(bool), more=STEPS, data=st.data())
def test_a_crash_at_any_byte_of_the_last_line_loses_that_line_at_most(path, steps, more, data):
    path.unlink(missing_ok=True)
    lengths = play(path, steps)
    cut = data.draw(st.integers(lengths[-2], lengths[-1]))
    content = path.read_bytes()[:cut]
    path.write_bytes(content)
    # A line is whole from its last brace on: the line feed says nothing more.
    kept = steps if cut >= lengths[-1] - 1 else steps[:-1]
    assert read_labels(path) == expected(kept)
    play_on = [*kept, *more]
    with LabelFile(path) as file:
        for step in more:
            file.append(step) if isinstance(step, Label) else file.undo(step, at=2.0)
    assert read_labels(path) == expected(play_on)


def test_a_file_that_does_not_exist_has_no_labels(tmp_path):
    assert read_labels(tmp_path / "none.jsonl") == ()


def test_labels_are_read_from_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "labels.jsonl")
    with pytest.raises(LabelError, match="cannot be read: this is no regular file"):
        read_labels(tmp_path / "labels.jsonl")


def test_an_undo_restores_the_previous_label(tmp_path):
    with LabelFile(tmp_path / "l.jsonl") as file:
        first, second = label(verdict="no"), label(verdict="yes")
        file.append(first)
        file.append(second)
        assert file.undo(first.url, at=3.0) == second
        assert file.labels == (first,)
        assert file.undo(first.url, at=4.0) == first
        assert file.undo(first.url, at=5.0) is None
    assert len((tmp_path / "l.jsonl").read_text().splitlines()) == 4, "nothing is deleted"


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "1",
        "null",
        '{"url": ""}',
        '{"url": "u", "verdict": "maybe", "role": "training", "at": 1}',
        '{"url": "u", "verdict": "yes", "role": "boss", "at": 1}',
        '{"url": "u", "verdict": "yes", "role": "training", "at": 1, "relevance": 1.5}',
        '{"url": "u", "verdict": "yes", "role": "training", "at": 1, "colour": "red"}',
        '{"undo": 3, "at": 1}',
        '{"url": "\\ud800", "verdict": "yes", "role": "training", "at": 1}',
        b'{"url": "\xff", "verdict": "yes", "role": "training", "at": 1}',
    ],
)
def test_a_line_that_is_no_label_is_an_error_that_names_file_and_line(tmp_path, line):
    path = tmp_path / "l.jsonl"
    with LabelFile(path) as file:
        file.append(label())
    broken = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(path.read_bytes() + broken + b"\n")
    with pytest.raises(LabelError, match=r"l\.jsonl:2: is not a label"):
        read_labels(path)
    with pytest.raises(LabelError, match=r"l\.jsonl:2: is not a label"):
        LabelFile(path)


def test_blank_lines_and_a_missing_last_line_feed_are_no_harm(tmp_path):
    path = tmp_path / "by-hand.jsonl"
    path.write_text('\n{"url": "u", "verdict": "yes", "role": "training", "at": 1}')
    with LabelFile(path) as file:
        file.append(label())
    assert [one.url for one in read_labels(path)] == ["u", URLS[0]]


def test_a_byte_order_mark_that_an_editor_left_is_no_harm(tmp_path):
    path = tmp_path / "x.labels.jsonl"
    with LabelFile(path) as file:
        file.append(label())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_labels(path) == (label(),)


def test_a_line_nested_beyond_all_measure_is_an_error_like_any_other(tmp_path):
    path = tmp_path / "x.labels.jsonl"
    path.write_bytes(b'{"url": ' + b"[" * 99_999 + b"]" * 99_999 + b"}\n")
    with pytest.raises(LabelError, match=r"x\.labels\.jsonl:1"):
        read_labels(path)


def test_a_second_session_on_the_same_file_is_refused_until_the_first_ends(tmp_path):
    first = LabelFile(tmp_path / "l.jsonl")
    with pytest.raises(LabelError, match="another session"):
        LabelFile(tmp_path / "l.jsonl")
    first.close()
    LabelFile(tmp_path / "l.jsonl").close()


def test_a_label_survives_kill_9_the_moment_append_returns(tmp_path):
    path = tmp_path / "l.jsonl"
    program = f"""
        import itertools
        from pathlib import Path
        from focused.labels.label_file import Label
        from focused.labels.label_file import LabelFile
        file = LabelFile(Path({str(path)!r}))
        for number in itertools.count():
            file.append(Label(url=f"https://a/{{number}}", verdict="no", role="evaluation", at=1))
            print(number, flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        output = [int(child.stdout.readline()) for _ in range(20)]
        child.send_signal(signal.SIGKILL)
        output += [int(line) for line in child.stdout if line.endswith("\n")]
    kept = [int(one.url.rsplit("/", 1)[1]) for one in read_labels(path)]
    assert kept[: len(output)] == output
    assert len(kept) <= len(output) + 1
    LabelFile(path).close()  # the lock died with its holder


def test_a_full_disk_raises_an_error_and_damages_no_line(tmp_path):
    path = tmp_path / "l.jsonl"
    program = f"""
        import resource, signal
        from pathlib import Path
        from focused.errors import LabelError
        from focused.labels.label_file import Label
        from focused.labels.label_file import LabelFile
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        file = LabelFile(Path({str(path)!r}))
        file.append(Label(url="u", verdict="no", role="evaluation", at=1))
        size = Path({str(path)!r}).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
        try:
            file.append(Label(url="v", verdict="no", role="evaluation", at=1))
        except LabelError as error:
            print(error, [one.url for one in file.labels])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert "l.jsonl: cannot be written: File too large ['u']" in done.stdout
    assert path.read_bytes().endswith(b"\n")
    assert [one.url for one in read_labels(path)] == ["u"]
