"""``focused label`` as a process: what it stores, and what it refuses."""

import http.client
import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from focused.labelling.labelling_task import find_labelling_task
from focused.labels.label_file import LabelFile, labelled_page_reader, read_labels
from focused.local_server import TOKEN_HEADER
from tests.labelling.labelled_crawls import write_crawl
from tests.support.command import focused
from tests.support.forked import HANGS_AFTER_S, ForkedCommand

TOPIC = """
name = "whales"
description = "Whales and their songs."
[seeds]
urls = ["https://h0.example/0"]
[training]
directory = ["samples.tsv"]
good = ["Top/Animals"]
[politeness]
user_agent = "Bot/1 (+https://bot.example/about)"
[output]
folder = "crawl"
"""


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    """A topic file with a directory, and its crawl."""
    lines = [("Top/Animals/Whales", n) for n in range(3)] + [("Top/Other/Ships", n) for n in (3, 4)]
    text = "".join(f"{name}\thttps://s.example/{n}\tT\tD\n" for name, n in lines)
    (tmp_path / "samples.tsv").write_text(text)
    (tmp_path / "whales.toml").write_text(TOPIC)
    (tmp_path / "crawl").mkdir()
    write_crawl(tmp_path / "crawl", pages=30)
    return tmp_path / "whales.toml"


@contextmanager
def label(*words: str) -> Iterator[tuple[ForkedCommand, str]]:
    """The running command, and the address that it printed."""
    process = ForkedCommand(["focused", "label", *words, "--no-browser"], errors_apart=True)
    try:
        line = process.first_line()
        assert line.startswith("Label here: http://127.0.0.1:"), line
        yield process, line.removeprefix("Label here: ").strip()
    finally:
        process.kill()
        process.communicate(60)


def ask(address: str, path: str, body: object = None) -> dict[str, object]:
    at = urlsplit(address)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
    sent = None if body is None else json.dumps(body)
    headers = {TOKEN_HEADER: at.fragment, "Content-Type": "application/json"}
    connection.request("GET" if sent is None else "POST", path, sent, headers)
    answer = connection.getresponse()
    found: dict[str, object] = json.loads(answer.read())
    connection.close()
    assert answer.status == 200, found
    return found


def test_what_was_acknowledged_outlives_kill_9(topic):
    labels = topic.parent / "whales.labels.jsonl"
    labelled = []
    with label(str(topic)) as (process, address):
        state = ask(address, "/api/state")
        for _ in range(6):
            url = state["page"]["url"]  # type: ignore[index]
            state = ask(address, "/api/label", {"url": url, "verdict": "yes"})
            labelled.append(url)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [one.url for one in read_labels(labels)] == labelled
    read = labelled_page_reader(labels)
    assert all(read(url) is not None for url in labelled)
    with label(str(topic)) as (_, address):
        progress = ask(address, "/api/state")["progress"]
        assert progress["yes"] == 6  # type: ignore[index]


def test_it_listens_on_loopback_alone(topic):
    with label(str(topic)) as (_, address):
        port = urlsplit(address).port
        assert port is not None
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        others = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), port)}
        for other in others - {"127.0.0.1", "::1", "127.0.1.1"}:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((other, port), timeout=5)
        # Another loopback address is not listened at: the socket is not bound to a wildcard.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5)


def test_it_ends_in_order_when_interrupted(topic):
    with label(str(topic)) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANGS_AFTER_S) == 0


def test_a_second_session_on_the_same_labels_is_refused(topic):
    with LabelFile(topic.parent / "whales.labels.jsonl"):
        done = focused("label", topic, "--no-browser", status=2)
    assert "another session is labelling into this file" in done.output


def test_a_port_that_is_taken_is_reported(topic):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = focused("label", topic, "--no-browser", "--port", port, status=2)
    assert "cannot serve there" in done.output


def test_a_folder_without_pages_is_reported(tmp_path):
    done = focused("label", tmp_path, status=2)
    assert "topic file of this crawl was moved or deleted" in done.output


def test_the_subject_of_a_topic_file_has_its_categories_good_ones_first(topic):
    task = find_labelling_task(topic)
    assert [(one.name, one.good) for one in task.categories] == [
        ("Top/Animals/Whales", True),
        ("Top/Other/Ships", False),
    ]
    assert (task.name, task.good_samples, task.classifier) == ("whales", 3, None)
    assert task.labels == topic.parent / "whales.labels.jsonl"


def test_a_crawls_folder_finds_its_topic_file(topic):
    folder = topic.parent / "crawl"
    (folder / "settings.json").write_text(json.dumps({"topic": {"path": str(topic)}}))
    assert find_labelling_task(folder) == find_labelling_task(topic)


def test_without_the_topic_file_the_labels_must_be_named(topic, tmp_path):
    labels = tmp_path / "mine.jsonl"
    task = find_labelling_task(topic.parent / "crawl", labels)
    assert (task.name, task.labels, task.categories) == ("crawl", labels, ())
