"""The Parquet files and the report of a crawl that has ended."""

import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from scrapy.settings import BaseSettings
from scrapy.utils.log import StreamLogger

from focused.errors import StateError
from focused.scrapy_addon import crawl_session
from focused.scrapy_addon.crawl_session import write_results
from focused.topic import Output
from tests.support.simulated import Simulation, page, site, topic

SEED = "http://sea.example/"


@pytest.fixture
def ended(tmp_path):
    """A crawl that is closed and has written no Parquet files."""
    whales = topic(tmp_path, SEED, output=Output(tmp_path / "out", parquet=False))
    done = Simulation(whales, site(page(SEED, "/whales"), page(SEED + "whales"))).run()
    done.close()
    (whales.output.folder / "stats.json").write_text("{}")
    settings = {"policy": "focused", "topic": {"name": "whales", "training": {"good": []}}}
    (whales.output.folder / "settings.json").write_text(json.dumps(settings))
    return topic(tmp_path, SEED)


def settings(**values):
    return BaseSettings({"FOCUSED_PARTITION": None, "FOCUSED_RECORDED_WEB": None, **values})


@pytest.mark.parametrize("reports", [True, False])
def test_files_are_written_and_the_report_is_printed_where_it_is_asked_for(ended, reports, capsys):
    write_results(settings(FOCUSED_REPORT=reports), ended)
    assert pq.read_table(ended.output.folder / "pages.parquet")["url"].to_pylist() == [
        SEED,
        SEED + "whales",
    ]
    assert ("downloaded" in capsys.readouterr().out) == reports
    assert (ended.output.folder / "report.json").exists() == reports


def test_colours_that_are_asked_for_are_printed_into_a_pipe_too(ended, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    write_results(settings(FOCUSED_REPORT=True), ended)
    assert "\x1b[" in capsys.readouterr().out


@pytest.mark.parametrize("stdout", [None, StreamLogger(logging.getLogger("stdout"))])
def test_files_are_written_whatever_standard_output_is(ended, stdout, monkeypatch):
    monkeypatch.setattr(sys, "stdout", stdout)
    write_results(settings(FOCUSED_REPORT=True), ended)
    assert (ended.output.folder / "report.json").is_file()


def test_a_character_that_the_terminal_does_not_have_ends_no_report(ended, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    write_results(settings(FOCUSED_REPORT=True), ended)
    shown = printed.getvalue()
    assert b"| downloaded " in shown and b"0.8?0.9" in shown  # has a dash


def test_a_report_that_nobody_reads_is_a_line(ended, monkeypatch, capfd):
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.suppress(BrokenPipeError), open(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        write_results(settings(FOCUSED_REPORT=True), ended)
    assert f"run: focused report {ended.output.folder}" in capfd.readouterr().err


def test_no_process_starts_without_files_to_write(ended, monkeypatch):
    monkeypatch.delattr(subprocess, "Popen")
    off = topic(ended.path.parent, SEED, output=Output(ended.output.folder, parquet=False))
    write_results(settings(FOCUSED_REPORT=True), off)
    write_results(settings(FOCUSED_REPORT=True, FOCUSED_PARTITION=0), ended)


def test_an_error_of_the_system_is_told_as_here(ended):
    (ended.output.folder / "pages.parquet").mkdir()
    with pytest.raises(IsADirectoryError):
        write_results(settings(FOCUSED_REPORT=True), ended)


def test_a_damaged_state_is_a_line(ended):
    (ended.output.folder / "state" / "data.mdb").write_bytes(b"damaged" * 9_000)
    with pytest.raises(StateError, match="damaged"):
        write_results(settings(FOCUSED_REPORT=True), ended)


def test_a_process_that_dies_leaves_the_command_that_helps(ended, monkeypatch):
    dies = [sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"]
    monkeypatch.setattr(crawl_session, "python_command", lambda *_: dies)
    with pytest.raises(StateError, match=r"status -9.*focused report"):
        write_results(settings(FOCUSED_REPORT=True), ended)


def test_a_report_that_fails_leaves_the_files(ended, capfd):
    (ended.output.folder / "settings.json").write_text("[]")
    write_results(settings(FOCUSED_REPORT=True), ended)
    assert "settings.json" in capfd.readouterr().err
    assert (ended.output.folder / "pages.parquet").is_file()
