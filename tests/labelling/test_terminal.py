"""Labelling on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.errors import LabelError
from focused.labelling.page_renderer import PageRenderer
from focused.labelling.terminal import LabellingTerminal
from focused.labels.label_file import LabelFile
from tests.support.labelled_crawls import CATEGORIES, first_shown_url, session, write_crawl


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LabelFile]:
    with LabelFile(tmp_path / "l.labels.jsonl") as opened:
        yield opened


def play(folder: Path, file: LabelFile, keys: str | list[str]) -> None:
    """Press ``keys``, then end the input."""
    pressed = iter(keys)

    def read_key() -> str:
        try:
            return next(pressed)
        except StopIteration:
            raise EOFError from None

    with PageRenderer() as reader:
        asked = session(folder, file)
        LabellingTerminal(asked, clock=lambda: 7.0, reader=reader, read_key=read_key).run()


def test_keys_label_undo_and_categorise(tmp_path: Path, file: LabelFile) -> None:
    write_crawl(tmp_path, pages=24)
    play(tmp_path, file, "ynsux12q")
    labels = [(one.verdict, one.category, one.at) for one in file.labels]
    assert labels == [
        ("yes", "", 7.0),
        ("no", "", 7.0),
        ("spam", "", 7.0),
        ("yes", CATEGORIES[0].name, 7.0),
        ("no", CATEGORIES[1].name, 7.0),
    ]


def test_other_keys_label_nothing(tmp_path: Path, file: LabelFile) -> None:
    write_crawl(tmp_path, pages=24)
    play(tmp_path, file, ["z", "9", "0", "²", "\x1b[A", "u", " ", "b", "\r", "q"])
    assert file.labels == ()


def test_without_a_terminal_it_says_so(tmp_path: Path, file: LabelFile) -> None:
    write_crawl(tmp_path, pages=24)

    def no_terminal() -> str:
        raise OSError(6, "No such device or address")

    with PageRenderer() as reader:
        asked = session(tmp_path, file)
        terminal = LabellingTerminal(asked, clock=lambda: 7.0, reader=reader, read_key=no_terminal)
        with pytest.raises(LabelError, match="no terminal"):
            terminal.run()


@pytest.mark.parametrize("end", ["q", "\x03", "\x04", ""])
def test_it_ends_on_a_signal_and_keeps_the_answers(
    tmp_path: Path, file: LabelFile, end: str
) -> None:
    write_crawl(tmp_path, pages=24)
    play(tmp_path, file, ["y", end, "y", "y"])
    assert len(file.labels) == 1


def test_it_ends_with_the_pages(
    tmp_path: Path, file: LabelFile, capsys: pytest.CaptureFixture[str]
) -> None:
    write_crawl(tmp_path, pages=3)
    play(tmp_path, file, "y" * 10)
    assert len(file.labels) == 3
    assert "are labelled" in capsys.readouterr().out


def test_the_relevance_of_a_random_page_is_printed_after_the_label(
    tmp_path: Path, file: LabelFile, capsys: pytest.CaptureFixture[str]
) -> None:
    write_crawl(tmp_path, pages=24)
    play(tmp_path, file, "yq")
    before, after = capsys.readouterr().out.split("You said yes", 1)
    assert "hidden until you answer" in before
    assert "relevance 0." not in before
    assert "The classifier gave it 0." in after


def test_shares_of_fewer_than_ten_answers_are_withheld(
    tmp_path: Path, file: LabelFile, capsys: pytest.CaptureFixture[str]
) -> None:
    write_crawl(tmp_path, pages=24)
    play(tmp_path, file, "yyyyq")
    out = capsys.readouterr().out
    assert "harvest too few answers: 2 of 10" in out
    assert "%" not in out


def test_long_pages_are_turned_over_and_back(
    tmp_path: Path,
    file: LabelFile,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "20")
    url = first_shown_url("l.example")
    lines = "".join(f"<p>Line {n} of a long page about whales.</p>" for n in range(60))
    write_crawl(tmp_path, pages=3, bodies={url: lines})
    play(tmp_path, file, "   bq")
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("(screen")]
    assert [line.split()[1] for line in shown] == ["1", "2", "3", "4", "3"]


@pytest.mark.parametrize("keys", ["yq", "yuq"])
def test_a_page_cannot_steer_the_terminal(
    tmp_path: Path, file: LabelFile, capsys: pytest.CaptureFixture[str], keys: str
) -> None:
    url = first_shown_url("b.example")
    html = "<title>\x1b]0;taken\x07</title><p>\x1b[2J\x9b31m whales \u202e sdrawkcab</p>"
    write_crawl(tmp_path, pages=3, bodies={url: html})
    play(tmp_path, file, keys)
    out = capsys.readouterr().out.replace("\x1b[2J\x1b[1;1H", "")
    assert "whales" in out
    assert "\x1b]" not in out
    assert not {"\x07", "\x9b", "\u202e"} & set(out)


def search_for(folder: Path, file: LabelFile, *lines: str, keys: str = "/yq") -> list[str]:
    """Press ``keys`` and type ``lines``; return the terminal's prompts."""
    typed, asked, pressed = iter(lines), [], iter(keys)

    def read_line(prompt: str) -> str:
        asked.append(prompt)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    with PageRenderer() as reader:
        LabellingTerminal(
            session(folder, file),
            clock=lambda: 7.0,
            reader=reader,
            read_key=lambda: next(pressed),
            read_line=read_line,
        ).run()
    return asked


def test_a_slash_searches_and_a_number_picks_the_page(tmp_path: Path, file: LabelFile) -> None:
    write_crawl(tmp_path, pages=24)
    assert len(search_for(tmp_path, file, "baleen", "2")) == 2
    (label,) = file.labels
    assert (label.reason, label.verdict) == ("searched", "yes")


def test_a_search_without_a_hit_says_so(
    tmp_path: Path, file: LabelFile, capsys: pytest.CaptureFixture[str]
) -> None:
    write_crawl(tmp_path, pages=24)
    search_for(tmp_path, file, "giraffe", keys="/q")
    assert "No page without a label has these words" in capsys.readouterr().out


def test_a_search_that_is_broken_off_goes_on_with_the_page(tmp_path: Path, file: LabelFile) -> None:
    write_crawl(tmp_path, pages=24)
    search_for(tmp_path, file, "baleen")
    assert [one.reason for one in file.labels] == ["random"]
