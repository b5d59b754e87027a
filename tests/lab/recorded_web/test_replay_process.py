"""The replay server as a child process: it starts, serves, and ends with its parent."""

import http.client
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from focused.errors import ConfigurationError, RecordedWebError
from focused_lab.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    write_change_history,
)
from focused_lab.changing_web.changing_replay import ChangingReplay
from focused_lab.recorded_web.replay_clock import ReplayClock
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from focused_lab.recorded_web.replay_process import ReplayProcess
from focused_lab.recorded_web.replay_server import serve_forever
from tests.support.recorded_web import page, record_web

PARENT = """
import sys, time
from pathlib import Path
from focused_lab.recorded_web.replay_process import ReplayProcess
with ReplayProcess(Path(sys.argv[1])) as replay:
    print(replay.address, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return record_web(tmp_path / "web", page("https://a.example/", "<p>secure a"))


def ask(address: str, host: str = "a.example", path: str = "/") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", path, headers={"Host": host, "X-Focused-Scheme": "https"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_web_on_disk_is_served_while_the_context_lasts(folder):
    with ReplayProcess(folder) as replay:
        address = replay.address
        assert ask(address) == (200, b"<p>secure a")
    with pytest.raises(ConnectionRefusedError):
        ask(address)


def test_two_replays_of_one_web_do_not_meet(folder):
    with ReplayProcess(folder) as one, ReplayProcess(folder) as other:
        assert one.address != other.address
        assert ask(one.address) == ask(other.address)


def test_a_folder_that_is_not_a_recorded_web_is_reported_by_the_parents_error(tmp_path):
    missing = tmp_path / "nowhere"
    with pytest.raises(RecordedWebError, match="nowhere"), ReplayProcess(missing):
        raise AssertionError("served a web that does not exist")


def test_faults_and_access_log_reach_the_child(folder, tmp_path):
    plan = FaultPlan((parse_fault("*:kind=429,retry_after_s=1,rate=0.5"),), seed=3)
    log = tmp_path / "access.jsonl"
    with ReplayProcess(folder, faults=plan, access_log=log) as replay:
        for _ in range(20):
            ask(replay.address)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    expected = [
        429 if plan.effects("a.example", "/", attempt).fault else 200 for attempt in range(1, 21)
    ]
    assert [line["status"] for line in lines] == expected
    assert set(expected) == {429, 200}


def test_the_child_ends_when_its_parent_is_killed(folder):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert parent.stdout is not None
    with parent.stdout:
        address = parent.stdout.readline().strip()
    assert ask(address)[0] == 200
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    refused = False
    while not refused and time.monotonic() < deadline:
        try:
            ask(address)
        except ConnectionRefusedError:
            refused = True
        except (ConnectionResetError, http.client.RemoteDisconnected):
            continue  # caught it in the act
    assert refused


def test_serving_in_the_foreground_ends_when_told(folder):
    answers: list[tuple[int, bytes]] = []
    ports: list[int] = []

    def ask_and_stop() -> None:
        answers.append(ask(f"127.0.0.1:{ports[0]}"))

    serve_forever(folder, on_ready=ports.append, stop=ask_and_stop)
    assert answers == [(200, b"<p>secure a")]


def test_an_access_log_that_cannot_be_written_is_an_error_that_names_it(folder):
    with pytest.raises(ConfigurationError, match="no_such_folder"):
        serve_forever(folder, access_log=folder / "no_such_folder" / "log")


def test_a_server_is_in_a_group_of_its_own_which_ctrl_c_does_not_reach(folder):
    with ReplayProcess(folder):
        (server,) = multiprocessing.active_children()
        assert server.pid is not None
        assert os.getpgid(server.pid) != os.getpgid(0)


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    path = tmp_path / "site.tsv.gz"
    events = (Change(ChangeKind.CREATED, 0.0, 9), Change(ChangeKind.CHANGED, 3e7, 9, 9))
    write_change_history(path, SiteChanges("site", (PageChanges("page", events),)))
    return path


def test_the_command_prints_the_settings_of_a_crawl_of_pages_that_change(folder, changes):
    options = ["--port", "0", "--changes", changes, "--speed", "10000", "--day", "20"]
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "focused.cli", "web", "serve", folder, *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    with server.stdout:
        settings = dict(re.findall(r"-s (\w+)=(\S+)", server.stdout.readline()))
        answer = ask(settings["FOCUSED_REPLAY"])
    server.send_signal(signal.SIGINT)
    assert server.wait() == 0
    assert answer[0] == 200
    assert settings["FOCUSED_RECORDED_WEB"] == str(folder)
    assert ReplayClock.parse(settings["FOCUSED_CLOCK"]).speed == 10_000


def test_a_changing_web_is_served_with_its_clock(folder, changes, tmp_path):
    changing = ChangingReplay((changes,), speed=1e4, day=20.0, truth=tmp_path / "truth")
    with ReplayProcess(folder, changing=changing) as replay:
        assert ask(replay.address)[0] == 200
        clock = ReplayClock.parse(replay.clock)
    assert (clock.start, clock.speed) == (changing.options.start + 20 * 86_400, 1e4)
    assert (tmp_path / "truth" / "a.example.tsv.gz").is_file()


def test_a_wrong_change_history_is_reported_by_the_parents_error(folder, tmp_path):
    changing = ChangingReplay((tmp_path / "missing.tsv.gz",))
    with (
        pytest.raises(RecordedWebError, match=r"missing\.tsv\.gz"),
        ReplayProcess(folder, changing=changing),
    ):
        raise AssertionError("served without the history")
