"""Who may access the label page, and what its responses forbid."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from focused.archive.archive import PageRow
from focused.errors import StateError
from focused.labelling.labelling_task import FetchedPages
from focused.labelling.page_renderer import PageRenderer, RenderedPage
from focused.labelling.session import LabellingSession
from focused.labels.label_file import LabelFile, read_labels
from focused.local_server import TOKEN_HEADER, TOKEN_IDLE_S
from tests.labelling.labelled_crawls import CATEGORIES, session, write_crawl
from tests.support.label_pages import Served, served


class Answer:
    """A server's complete response."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def ask(
    at: Served, path: str, body: Any = None, token: str | None = None, **headers: str
) -> Answer:
    """Send a request with the right token, unless another (or none, ``""``) is given."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token != "":
        sent[TOKEN_HEADER] = token or at.token
    if body is not None:
        sent.setdefault("Content-Type", "application/json")
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(at.origin.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body, sent)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_a_label_is_stored_and_the_next_page_returned(page, labels):
    first = ask(page, "/api/state").json
    posted = {"url": first["page"]["url"], "verdict": "yes", "category": CATEGORIES[0].name}
    second = ask(page, "/api/label", posted).json
    (label,) = read_labels(labels)
    assert (label.url, label.verdict, label.category) == tuple(posted.values())
    assert label.at == page.clock.now
    assert second["page"]["url"] != first["page"]["url"]
    assert second["last"]["url"] == first["page"]["url"]


def test_the_relevance_of_a_random_page_is_withheld_until_it_is_labelled(page):
    shown = ask(page, "/api/state").json["page"]
    assert shown["role"] == "evaluation"
    assert (shown["relevance"], shown["score"]) == (None, None)
    state = ask(page, "/api/label", {"url": shown["url"], "verdict": "no"}).json
    assert state["last"]["relevance"] is not None
    assert state["page"]["role"] == "training"
    assert state["page"]["relevance"] is not None


def test_shares_of_fewer_than_ten_answers_are_withheld(tmp_path, labels):
    write_crawl(tmp_path, pages=150)
    with LabelFile(labels) as file, served(session(tmp_path, file)) as at:
        seen = []
        state = ask(at, "/api/state").json
        for _ in range(45):
            seen.append(state["progress"])
            state = ask(at, "/api/label", {"url": state["page"]["url"], "verdict": "yes"}).json
    assert seen[0]["precision_missing"] == "too few answers: 0 of 10"
    assert all(one["harvest"] is None for one in seen if one["evaluated"] < 10)
    assert seen[-1]["evaluated"] > 10
    assert seen[-1]["harvest"]["value"] == 1.0
    assert seen[-1]["harvest_missing"] == ""


@pytest.mark.parametrize("token", ["", "wrong", "ü", "x" * 5_000])
@pytest.mark.parametrize(
    "path", ["/api/state", "/api/label", "/api/undo", "/api/search", "/api/show"]
)
def test_without_the_token_nothing_is_returned_or_stored(page, labels, token, path):
    token = token.encode().decode("latin-1")
    posted = {"url": "https://h0.example/0", "verdict": "yes", "query": "baleen"}
    body = None if path == "/api/state" else posted
    answer = ask(page, path, body, token=token)
    assert answer.status == 403
    assert b"example" not in answer.body
    assert read_labels(labels) == ()


def test_the_token_stands_in_no_answer(page):
    for path in ("/", "/label.js", "/label.css", "/api/state"):
        answer = ask(page, path)
        assert answer.status == 200
        assert page.token.encode() not in answer.body
        assert page.token not in str(answer.headers)
        assert "Set-Cookie" not in answer.headers


def test_a_token_that_was_not_used_for_long_has_expired(page):
    page.clock.now += TOKEN_IDLE_S - 1
    assert ask(page, "/api/state").status == 200
    page.clock.now += TOKEN_IDLE_S + 1
    answer = ask(page, "/api/state")
    assert (answer.status, answer.json["error"]) == (403, "The token has expired.")
    assert ask(page, "/api/state").status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
@pytest.mark.parametrize("path", ["/", "/api/state", "/original/x"])
def test_a_name_that_was_rebound_to_this_machine_is_refused(page, host, path):
    assert ask(page, path, Host=host).status == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80"])
def test_this_machines_own_names_are_served(page, host):
    assert ask(page, "/api/state", Host=host).status == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"url": 3, "verdict": "yes"}', 400),
        (b'{"url": "https://h0.example/0", "verdict": "maybe"}', 400),
        (b'{"url": "https://h0.example/0", "verdict": ["yes"]}', 400),
        (b'{"url": "https://h0.example/0", "verdict": "yes", "category": 1}', 400),
        (b'{"url": "https://h0.example/0", "verdict": "yes", "category": "Top/X"}', 409),
        (b'{"url": "https://elsewhere.example/", "verdict": "yes"}', 409),
        (b'{"url": "\\ud800", "verdict": "yes"}', 400),
        (b'{"url": "https://h0.example/0", "verdict": "yes", "category": "\\ud800"}', 400),
        (b"\xff", 400),
        (b" " * 20_000, 413),
        (b"[" * 10_000, 400),
    ],
)
def test_what_is_no_label_is_refused(page, labels, body, status):
    answer = ask(page, "/api/label", body)
    assert answer.status == status
    assert answer.json["error"]
    assert read_labels(labels) == ()


def test_a_form_of_another_site_is_no_label(page, labels):
    posted = b'{"url": "https://h0.example/0", "verdict": "yes"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert ask(page, "/api/label", posted, Content_Type=kind).status == 415
        assert ask(page, "/api/label", posted, token="", Content_Type=kind).status == 403
    assert read_labels(labels) == ()


def test_a_body_in_an_unknown_charset_is_refused(page):
    kind = "application/json; charset=none-such"
    answer = ask(page, "/api/label", b"{}", Content_Type=kind)
    assert (answer.status, answer.json["error"]) == (400, "The body is not valid JSON.")


def test_a_huge_body_is_refused_before_it_is_read(page):
    with socket.create_connection(page.origin.removeprefix("http://").split(":"), 10) as raw:
        raw.sendall(
            b"POST /api/label HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + f"{TOKEN_HEADER}: {page.token}\r\nContent-Length: 9000000000\r\n\r\n".encode()
            + b" " * 20_000
        )
        assert raw.recv(12) == b"HTTP/1.1 413"


@pytest.mark.parametrize(
    "sent",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_what_another_origin_makes_a_browser_send_is_refused_even_with_the_token(
    page, labels, sent
):
    shown = ask(page, "/api/state").json["page"]
    posted = {"url": shown["url"], "verdict": "yes"}
    assert ask(page, "/api/label", posted, **sent).status == 403
    assert ask(page, shown["original"], token="", **sent).status == 403
    assert read_labels(labels) == ()


def test_the_pages_own_requests_are_of_its_origin(page):
    own = {"Origin": page.origin, "Sec_Fetch_Site": "same-origin"}
    assert ask(page, "/api/state", **own).status == 200
    assert ask(page, "/", Sec_Fetch_Site="none").status == 200
    assert ask(page, "/", Sec_Fetch_Site="cross-site").status == 200  # the address, as a link


class FullSession(LabellingSession):
    """A session whose disk is full."""

    def answer(self, *_: object) -> None:
        raise StateError("the pages that were labelled cannot be kept: No space left on device")


def test_a_label_that_cannot_be_written_is_reported(tmp_path, labels):
    write_crawl(tmp_path, pages=6)
    with LabelFile(labels) as file, served(session(tmp_path, file, make=FullSession)) as page:
        shown = ask(page, "/api/state").json["page"]
        answer = ask(page, "/api/label", {"url": shown["url"], "verdict": "yes"})
    assert answer.status == 500
    assert "No space left" in answer.json["error"]
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_page_that_takes_long_to_prepare_does_not_hold_up_other_requests(tmp_path, labels):
    """Preparing waits until a second request was answered."""
    asked, answered = threading.Event(), threading.Event()

    class Slow(PageRenderer):
        def text(self, crawled: FetchedPages, page: PageRow) -> RenderedPage:
            asked.set()
            assert answered.wait(30)
            return RenderedPage("Krill.")

    write_crawl(tmp_path, pages=4)
    with (
        LabelFile(labels) as file,
        served(session(tmp_path, file), Slow()) as at,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(ask, at, "/api/state")
        assert asked.wait(30)
        assert ask(at, "/label.js").status == 200
        answered.set()
        assert waiting.result().json["page"]["text"] == "Krill."


def test_an_unprepared_page_is_reported(tmp_path, labels):
    class Failing(PageRenderer):
        def text(self, crawled: FetchedPages, page: PageRow) -> RenderedPage:
            return RenderedPage("", "Too <slow>.")

        original = text

    write_crawl(tmp_path, pages=4)
    with LabelFile(labels) as file, served(session(tmp_path, file), Failing()) as at:
        shown = ask(at, "/api/state").json["page"]
        assert shown["problem"] == "Too <slow>."
        assert b"Too &lt;slow&gt;." in ask(at, shown["original"]).body


def test_only_the_pages_own_script_may_run(page):
    policy = ask(page, "/").headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"


def test_the_original_may_run_send_and_load_nothing(page):
    original = ask(page, "/api/state").json["page"]["original"]
    answer = ask(page, original, token="")
    assert answer.status == 200
    assert b"<h1>Page" in answer.body
    rules = answer.headers["Content-Security-Policy"].split("; ")
    assert "sandbox" in rules
    assert "default-src 'none'" in rules
    assert "frame-ancestors 'self'" in rules
    assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]
    assert not any(rule.startswith(("script-src", "img-src", "connect-src")) for rule in rules)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_an_original_that_is_not_shown_cannot_be_requested(page):
    first = ask(page, "/api/state").json["page"]
    assert ask(page, "/original/0", token="").status == 404
    ask(page, "/api/label", {"url": first["url"], "verdict": "skip"})
    assert ask(page, first["original"], token="").status == 404


def test_every_answer_forbids_keeping_and_guessing(page):
    for path in ("/", "/label.js", "/api/state", "/nothing", "/original/x"):
        headers = ask(page, path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-DNS-Prefetch-Control"] == "off"
        assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_a_search_lists_pages_and_the_picked_one_is_shown(page):
    found = ask(page, "/api/search", {"query": "baleen"}).json["found"]
    assert found and set(found[0]) == {"url", "title"}
    shown = ask(page, "/api/show", {"url": found[-1]["url"]}).json["page"]
    assert shown["url"] == found[-1]["url"]
    assert shown["reason"].startswith("Searched for")


def test_a_page_that_is_not_there_cannot_be_shown(page):
    assert ask(page, "/api/show", {"url": "https://elsewhere.example/"}).status == 409
    assert ask(page, "/api/show", {"url": 7}).status == 400
    assert ask(page, "/api/search", {"query": ["x"]}).status == 400
