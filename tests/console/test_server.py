"""The console's HTTP interface: who may use it, and what it refuses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from focused.console.server import ConsoleServer
from focused.crawl.steering import ControlFolder, Pause
from focused.local_server import TOKEN_HEADER
from focused.topic import topic_to_json
from tests.support.label_pages import Clock, served_app
from tests.support.simulated import Simulation, page, site, topic

SEED = "http://a.test/"


class Console:
    """A served console of one crawl."""

    def __init__(self, origin: str, token: str, crawl: Simulation) -> None:
        self.origin, self.token, self.crawl = origin, token, crawl
        self.control = ControlFolder(crawl.topic.output.folder)

    def ask(self, path: str, body: Any = None, **headers: str) -> Any:
        """Return the decoded response."""
        sent = {TOKEN_HEADER: self.token, "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.origin + path, data, sent), timeout=60) as response:
            return json.loads(response.read())

    def status(self, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        """Return the status and the message of a refusal."""
        with pytest.raises(HTTPError) as refused:
            self.ask(path, body, **headers)
        return refused.value.code, json.loads(refused.value.read())["error"]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    crawl = Simulation(topic(tmp_path, SEED), site(page(SEED, "http://a.test/1")))
    settings = {"topic": topic_to_json(crawl.topic), "policy": "focused"}
    (crawl.topic.output.folder / "settings.json").write_text(json.dumps(settings))
    server = ConsoleServer([tmp_path], Clock()).app()
    with served_app(server.application) as origin:
        yield Console(origin, server.token, crawl)
    crawl.close()


def test_crawls_are_listed(console):
    found = console.ask("/api/crawls")
    (crawl,) = found["crawls"]
    assert crawl["topic"] == "whales"
    assert crawl["is_running"]


@pytest.mark.parametrize(
    "path", ["/api/crawls", *(f"/api/crawls/0/{name}" for name in ("events", "pages", "hosts"))]
)
def test_without_the_token_nothing_is_told(console, path):
    assert console.status(path, **{TOKEN_HEADER: "guess"})[0] == 403


def test_commands_need_the_token_and_come_from_the_same_site(console):
    command = {"action": "pause"}
    assert console.status("/api/crawls/0/commands", command, **{TOKEN_HEADER: ""})[0] == 403
    foreign = {"Origin": "http://evil.test"}
    assert console.status("/api/crawls/0/commands", command, **foreign)[0] == 403
    assert list(console.control.take()) == []


def test_a_rebound_host_name_is_refused(console):
    assert console.status("/api/crawls", Host="evil.test")[0] == 403


def test_a_command_reaches_the_crawls_folder(console):
    sent = console.ask("/api/crawls/0/commands", {"action": "pause"})
    (command,) = console.control.take()
    assert (command.id, command.command) == (sent["id"], Pause())
    assert command.by.endswith(", console")


@pytest.mark.parametrize(
    "body",
    [{}, {"action": "fly"}, {"action": "pause", "more": 1}, {"action": "pause", "undoes": 5}],
)
def test_what_is_no_command_is_refused(console, body):
    assert console.status("/api/crawls/0/commands", body)[0] == 400
    assert list(console.control.take()) == []


def test_a_crawl_that_does_not_run_takes_no_commands(console):
    console.crawl.close()
    status, message = console.status("/api/crawls/0/commands", {"action": "pause"})
    assert status == 409
    assert "focused frontier" in message
    assert list(console.control.take()) == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/crawls/7/pages", 404),
        ("/api/crawls/0/page?url=http://nowhere.test/", 404),
        ("/api/crawls/0/pages?kind=best", 400),
        ("/api/crawls/0/pages?sort=worst", 400),
        ("/api/crawls/0/pages?offset=-1", 400),
    ],
)
def test_wrong_questions_are_refused(console, path, status):
    assert console.status(path)[0] == status


def test_events_stream_the_state_of_the_crawl(console):
    console.crawl.run().close()
    request = Request(
        f"{console.origin}/api/crawls/0/events", headers={TOKEN_HEADER: console.token}
    )
    with urlopen(request, timeout=60) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        assert "default-src 'none'" in stream.headers["Content-Security-Policy"]
        event = json.loads(stream.readline().removeprefix(b"data: "))
    assert not event["is_running"]
    assert event["curve"]["pages"] == [1]


def test_models_are_listed(console):
    console.crawl.run().close()
    assert console.ask("/api/crawls/0/models") == {"models": []}
