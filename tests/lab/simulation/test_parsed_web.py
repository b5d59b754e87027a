"""Cached pages equal freshly parsed ones."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import focused.kernels
import focused.web
from focused.errors import RecordedWebError
from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched, Link, Page
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation import parsed_web
from focused_lab.simulation.parsed_web import CACHE_FOLDER, ParsedWeb
from focused_lab.simulation.simulator import RecordedNetwork
from tests.support.recorded_web import page, record_web, redirect

PAGE = """<html lang="en"><title>Whales &amp; ships</title><meta name="description" content="About">
<h1>Whales</h1><h2>Ships</h2><p>Some text <a href="a?x=1">one anchor</a> and more.</p>
<div class="nav"><a rel="nofollow" href="//other.test/">Other é\u2028</a></div>
<link rel="canonical" href="/canon"><meta name="robots" content="noindex">"""
FEED = "<rss><channel><item><title>T</title><link>http://a.test/x</link></item></channel></rss>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return record_web(
        tmp_path / "web",
        page("https://a.test/dir/", PAGE),
        page("https://a.test/empty", "<html></html>"),
        page("https://a.test/feed", FEED, content_type="application/rss+xml"),
        page("https://a.test/robots.txt", "User-agent: *\nDisallow: /x\n"),
        redirect("https://a.test/old", "/dir/"),
    )


@pytest.fixture
def web(folder: Path) -> Iterator[ParsedWeb]:
    with ParsedWeb(RecordedWeb.open(folder)) as parsed:
        yield parsed


def fetched(web: ParsedWeb, url: str) -> Fetched:
    answer = web.answer(url, 0.0, 0.5)
    assert isinstance(answer, Fetched)
    return answer


@pytest.mark.parametrize(
    "url", ["https://a.test/dir/", "http://a.test/dir/", "https://a.test/dir/index.html"]
)
def test_a_cached_page_equals_the_parsed_page_of_the_requested_url(web, url):
    first = web.parse(fetched(web, url))
    assert isinstance(first, Page) and len(first.links) == 2
    again = fetched(web, url)
    assert web.parse(again) == first
    response = web.web.get(url)
    assert response is not None
    assert first == parse_page(Fetched(url, 200, response.headers, response.body))
    assert (len(again.body), again.elapsed_s) == (len(response.body), 0.5)


def test_a_page_that_cannot_be_parsed_fails_again(web):
    results = [web.parse(fetched(web, "https://a.test/empty")) for _ in range(2)]
    assert all(isinstance(x, Failed) and x.kind is FailureKind.EMPTY for x in results)
    assert results[0] == results[1]


@pytest.mark.parametrize("url", ["https://a.test/feed", "https://a.test/robots.txt"])
def test_feeds_and_robots_txt_keep_their_body(web, url):
    body = fetched(web, url).body
    web.parse(fetched(web, url))
    assert fetched(web, url).body == body


@pytest.mark.parametrize(
    "url", ["https://a.test/old", "https://a.test/missing", "https://nowhere.test/"]
)
def test_other_answers_are_those_of_the_recorded_web(web, url):
    assert web.answer(url, 0.0, 0.0) == RecordedNetwork(web.web).answer(url, 0.0, 0.0)


def test_a_second_opening_finds_the_pages_parsed(folder):
    for _ in range(2):
        with ParsedWeb(RecordedWeb.open(folder)) as web:
            answer = fetched(web, "https://a.test/dir/")
            page = web.parse(answer)
    assert answer.body == bytes(len(PAGE.encode()))
    assert isinstance(page, Page) and page.title == "Whales & ships"


def test_a_web_recorded_anew_is_parsed_anew(folder):
    with ParsedWeb(RecordedWeb.open(folder)) as web:
        web.parse(fetched(web, "https://a.test/dir/"))
    warc = next(folder.glob("*.warc.gz"))
    whole = warc.read_bytes()
    warc.write_bytes(whole + whole)
    with ParsedWeb(RecordedWeb.open(folder)) as web:
        assert fetched(web, "https://a.test/dir/").body == PAGE.encode()


@pytest.mark.parametrize(
    ("package", "source"), [(focused.web, "html/parse.py"), (focused.kernels, "page_links.py")]
)
def test_another_parser_parses_anew(folder, tmp_path, monkeypatch, package, source):
    with ParsedWeb(RecordedWeb.open(folder)):
        made_from = (folder / CACHE_FOLDER / "made-from").read_text()
    changed = tmp_path / "changed"
    shutil.copytree(package.__path__[0], changed, ignore=shutil.ignore_patterns("*.so"))
    with (changed / source).open("a") as file:
        file.write("# another\n")
    monkeypatch.setattr(package, "__path__", [str(changed)])
    with ParsedWeb(RecordedWeb.open(folder)):
        assert (folder / CACHE_FOLDER / "made-from").read_text() != made_from


def test_while_one_process_makes_the_cache_others_wait(folder, monkeypatch):
    others_wait = []

    def try_to_open(path: Path, **options: object) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            others_wait.append(False)
        except BlockingIOError:
            others_wait.append(True)
        finally:
            os.close(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(parsed_web.shutil, "rmtree", try_to_open)
        ParsedWeb(RecordedWeb.open(folder)).close()
    assert others_wait == [True]
    ParsedWeb(RecordedWeb.open(folder)).close()  # the lock is released


def test_an_unusable_folder_is_an_error_with_its_name(folder):
    (folder / CACHE_FOLDER).write_text("in the way")
    with pytest.raises(RecordedWebError, match="cannot store parsed pages"):
        ParsedWeb(RecordedWeb.open(folder))


def test_a_damaged_record_is_a_server_error_and_the_rest_goes_on(folder):
    with RecordedWeb.open(folder) as web:
        warc = next(folder.glob("*.warc.gz"))
        warc.write_bytes(bytes(warc.stat().st_size))
        answer = RecordedNetwork(web).answer("https://a.test/dir/", 0.0, 0.0)
    assert isinstance(answer, Failed) and answer.kind is FailureKind.SERVER_ERROR


def test_texts_that_no_encoding_can_write_survive(folder, monkeypatch):
    odd = Page("https://a.test/dir/", "a\ud800", text="\udfff", links=(Link("https://b.test/"),))
    monkeypatch.setattr(parsed_web, "parse_page", lambda fetched: odd)
    for _ in range(2):
        with ParsedWeb(RecordedWeb.open(folder)) as web:
            assert web.parse(fetched(web, odd.url)) == odd


def test_an_answer_that_was_never_parsed_gives_its_page_later(web):
    first = web.parse(fetched(web, "https://a.test/dir/"))
    answers = [fetched(web, "https://a.test/dir/") for _ in range(3)]
    assert [web.parse(each) for each in answers] == [first] * 3
