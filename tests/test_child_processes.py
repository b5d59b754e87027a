"""Child processes: what lies in the working directory, and what the environment holds."""

import ast
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from focused import child_processes
from focused.child_processes import (
    drop_secrets,
    inherited_environment,
    module_path,
    python_command,
    python_environment,
    spawn_context,
)
from focused.console.server import ChildCommands
from focused.errors import FocusedError
from focused.parser_process import ParserProcess, ParsingLimits
from focused.scrapy_addon.model_training import _fetch_samples
from focused.topic import Topic
from focused_lab.live_runs import _start_crawl
from focused_lab.recorded_web.replay_process import ReplayProcess
from tests.support import simulated

ROOT = Path(__file__).parents[1]
HOSTILE = "open({marker!r}, 'a').write(__name__ + '\\n')\nraise ImportError('hostile')\n"
SECRET = "PASSWORD_OF_THE_LOGIN"


WAITING = """
import signal, sys
from focused.child_processes import end_with_parent
end_with_parent(signal.SIGTERM)
print("ready", file=sys.stderr, flush=True)
sys.stdin.read()
"""
IMPORTING = """
import sys
print("ready", file=sys.stderr, flush=True)
sys.stdin.read()
"""
LATE = """
import os, signal, sys
from focused.child_processes import end_with_parent
parent = os.getppid()
print("ready", file=sys.stderr, flush=True)
while os.getppid() == parent:
    pass
end_with_parent(signal.SIGTERM)
print("goes on", file=sys.stderr, flush=True)
"""
PARENT = """
import os, sys
from focused.child_processes import run_child
try:
    run_child([sys.executable, "-c", sys.argv[1]], os.environ)
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr, flush=True)
"""


def environment_of(message: bytes) -> bytes:
    return repr(dict(os.environ)).encode()


def start_parser(folder: Path) -> None:
    with ParserProcess(environment_of, ParsingLimits()) as parser:
        parser.ask(b"page")


def start_replay(folder: Path) -> None:
    with ReplayProcess(folder / "web"):
        pass


def open_label_page(folder: Path) -> None:
    commands = ChildCommands()
    try:
        commands.open_label_page(folder / "crawl")
    finally:
        commands.close()


def fetch_samples(folder: Path) -> None:
    _fetch_samples(missing_topic(folder), None, lambda line: None)


def crawl_live(folder: Path) -> None:
    with _start_crawl(missing_topic(folder), "bfs", "127.0.0.1:9") as crawl:
        assert crawl.wait() != 0


def run_in_pool(folder: Path) -> None:
    with ProcessPoolExecutor(1, spawn_context()) as pool:
        pool.submit(os.getpid).result()


def missing_topic(folder: Path) -> Topic:
    """A topic whose file does not exist, so that the child ends when it has imported all."""
    return replace(simulated.topic(folder), path=folder / "missing.toml")


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with files that are named like modules."""
    source = HOSTILE.format(marker=str(tmp_path / "executed"))
    for name in ("msgspec", "pickle", "json", "multiprocessing", "scrapy", "focused", "signal"):
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(child_processes._SAFE_PATH, "")  # as a user's shell has it
    return tmp_path


STARTERS: list[Callable[[Path], None]] = [
    start_parser,
    start_replay,
    open_label_page,
    fetch_samples,
    crawl_live,
    run_in_pool,
]


@pytest.mark.parametrize("start", STARTERS, ids=lambda start: start.__name__)
def test_files_of_the_working_directory_are_no_modules_of_children(start, hostile_folder):
    with contextlib.suppress(FocusedError):  # the folders and files of the commands are missing
        start(hostile_folder)
    assert not (hostile_folder / "executed").exists()


def test_the_hostile_files_would_run_without_the_option(hostile_folder):
    command = [part for part in python_command("focused.parser_process", "0") if part != "-P"]
    subprocess.run(command, check=False, capture_output=True)
    assert (hostile_folder / "executed").read_text().splitlines()


def test_only_one_function_names_the_interpreter():
    found = [
        str(path.relative_to(ROOT))
        for package in ("focused", "spiders", "training")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in ("executable", "get_context"))
        or (isinstance(node, ast.ImportFrom) and node.module == "multiprocessing")
    ]
    assert set(found) == {"focused/child_processes.py"}


def test_children_get_no_passwords_by_their_environment(monkeypatch):
    monkeypatch.setenv(SECRET, "s3cret")
    with ParserProcess(environment_of, ParsingLimits()) as parser:
        assert b"s3cret" not in parser.ask(b"page")


@pytest.mark.parametrize("name", ["PATH", "LANG", "LC_ALL", "PYTHONUTF8", "OMP_NUM_THREADS"])
def test_children_get_what_programs_need(name, monkeypatch):
    monkeypatch.setenv(name, "value")
    assert inherited_environment()[name] == "value"


def test_children_that_crawl_get_what_logins_refer_to(monkeypatch):
    monkeypatch.setenv(SECRET, "s3cret")
    assert python_environment(has_secrets=True)[SECRET] == "s3cret"


def test_workers_of_a_pool_drop_what_they_inherited(monkeypatch):
    monkeypatch.setenv(SECRET, "s3cret")
    with ProcessPoolExecutor(1, spawn_context(), drop_secrets) as pool:
        assert pool.submit(os.getenv, SECRET).result() is None


@pytest.mark.parametrize(
    ("folder", "expected"), [("/", ["/installed", "/"]), (str(ROOT), [str(ROOT), "/installed"])]
)
def test_modules_of_the_users_project_are_found_last_unless_it_is_a_checkout(
    folder, expected, monkeypatch
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", folder, "/installed"])
    assert module_path() == expected


@contextlib.contextmanager
def parent_of(child: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for a child, which is ready."""
    command = [sys.executable, "-c", PARENT, child]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, process_group=0) as parent:
        assert parent.stderr.readline() == b"ready\n"
        yield parent


def last_output(parent: subprocess.Popen[bytes]) -> bytes:
    """What is written until neither process has the stream any more."""
    assert select.select([parent.stderr], [], [], 30)[0]
    return parent.stderr.read()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell nobody of a parent's death")
def test_a_child_ends_with_its_parent():
    with parent_of(WAITING) as parent:
        parent.kill()
        assert last_output(parent) == b""


def test_a_child_whose_parent_died_while_it_started_ends():
    with parent_of(LATE) as parent:
        parent.kill()
        assert last_output(parent) == b""


def test_ctrl_c_ends_a_child_that_imports_modules_without_a_traceback():
    with parent_of(IMPORTING) as parent:
        parent.send_signal(signal.SIGINT)
        assert last_output(parent) == b"interrupted\n"
