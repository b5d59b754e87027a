"""The commands in sequence: import a web, train, crawl, report, explain."""

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from focused.cli import main
from tests.support.command import focused
from tests.support.forked import ROOT, run_forked
from tests.support.made_up_topic import BASE, write_site


def in_a_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked(
        ["focused", *arguments],
        folder=folder,
        environment={"PYTHONPATH": str(ROOT), "COLUMNS": "120"},
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a topic file and a recorded web."""
    home = tmp_path_factory.mktemp("home")
    write_site(home / "site")
    done = in_a_process(home, "web", "import", "site", "--base-url", BASE, "--folder", "web")
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture(scope="module")
def crawled(home: Path) -> subprocess.CompletedProcess[str]:
    return in_a_process(home, "crawl", "cheese.toml", "--web", "web")


def test_a_crawl_of_a_recorded_web_trains_crawls_and_ends_in_order(home, crawled):
    assert crawled.returncode == 0, crawled.stderr
    assert "Traceback" not in crawled.stderr
    pages = pd.read_parquet(home / "out/pages.parquet")
    assert len(pages[pages["url"].str.contains("cheese|garden")]) == 40
    new = pages[~pages["training"] & pages["url"].str.contains("cheese")]
    assert len(new) == 10
    assert new["on_topic"].all()


@pytest.fixture
def at_home(home, crawled, monkeypatch):
    """Where the crawl was made."""
    monkeypatch.chdir(home)
    return home


def test_a_finished_crawl_is_reported_again_by_its_folder_or_its_topic_file(at_home):
    assert "harvest rate" in focused("report", "out").stdout
    assert focused("report", "cheese.toml").stdout == focused("report", "out").stdout


def test_a_report_is_written_where_it_is_wanted(at_home, tmp_path):
    focused("report", "out", "--out", str(tmp_path / "new"))
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"report.json", "harvest.png"}


def test_why_tells_the_way_from_the_seed(at_home):
    output = focused("why", f"{BASE}cheese4.html", "--folder", "out").stdout
    assert BASE in output
    assert "cheese4.html" in output


def test_looking_at_a_finished_crawl_writes_nothing_into_its_folder(at_home):
    before = contents(at_home / "out")
    focused("report", "out")
    focused("why", f"{BASE}cheese4.html", "--folder", "out")
    focused("frontier", "out")
    assert contents(at_home / "out") == before


def test_a_crawl_without_parquet_files_is_reported_from_its_state(at_home, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree("out", copy)
    for name in ("pages.parquet", "links.parquet"):
        (copy / name).unlink()
    before = contents(copy)
    assert focused("report", str(copy)).stdout == focused("report", "out").stdout
    way = focused("why", f"{BASE}cheese4.html", "--folder", str(copy)).stdout
    assert way == focused("why", f"{BASE}cheese4.html", "--folder", "out").stdout
    assert contents(copy) == before


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files in a folder: what they hold, and when they were written."""
    return {
        str(file): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


COMPLETION = re.findall(
    r"(_FOCUSED_COMPLETE)=(\w+)_source", (ROOT / "docs/reference/commands.md").read_text()
)


@pytest.mark.parametrize(("variable", "shell"), COMPLETION)
def test_the_documented_variable_prints_the_completion_of_the_shell(variable, shell):
    done = CliRunner().invoke(
        main, prog_name="focused", env={variable: f"{shell}_source"}, complete_var=variable
    )
    assert done.exit_code == 0
    assert f"{variable}={shell}_complete" in done.output


def test_commands_are_completed():
    done = CliRunner().invoke(
        main,
        prog_name="focused",
        env={"_FOCUSED_COMPLETE": "bash_complete", "COMP_WORDS": "focused hist", "COMP_CWORD": "1"},
    )
    assert done.output == "plain,history\n"
