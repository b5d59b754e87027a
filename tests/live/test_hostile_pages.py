"""A live crawl with pages that exceed the limits of time or memory."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from focused.web.html.parse import MAX_QUICK_BYTES
from tests.live.exhausting_models import MARK
from tests.live.webs import pages_asked
from tests.support.crawling import Finished, finish, start, write_topic
from tests.support.forked import HANGS_AFTER_S
from tests.support.recorded_web import MemoryWeb, Served, html, page, served

SEED = "http://start.test/"
GOOD = [f"http://good-{number}.test/" for number in range(4)]
LONG = "whales and words " * (MAX_QUICK_BYTES // 16)
"""Pages of that text are parsed in another process."""
ENDLESS, HUGE = "http://endless.test/", "http://huge.test/"
SHAPES = {
    "http://options.test/": "<select>" + "<option>whale" * 150_000,
    "http://ruby.test/": "<rt>whale" * 200_000,
    "http://formatting.test/": "<b><i><u><a href=x><p>whale" * 15_000,
    "http://fonts.test/": "".join(f"<font a{n}>" for n in range(1_000)) + "<p>whale" * 200_000,
    "http://attributes.test/": ("<p " + " ".join(f"a{n}" for n in range(8_000)) + ">whale") * 40,
}


def web() -> MemoryWeb:
    hostile = [
        page(ENDLESS, html("endless", text=LONG)),
        page(HUGE, html("huge", text=LONG)),
        *(page(url, f"<title>whales</title>{body}") for url, body in SHAPES.items()),
    ]
    links = [ENDLESS, HUGE, *SHAPES, *GOOD]
    good = [page(url, html("whales", text=f"whales of {url}")) for url in GOOD]
    return MemoryWeb(page(SEED, html("whales", *links)), *hostile, *good)


def begun(topic: Path, site: Served, timeout_s: float = 4.0) -> Popen[str]:
    return start(
        topic,
        site.address,
        FOCUSED_MODELS="tests.live.exhausting_models.models",
        FOCUSED_PARSE_TIMEOUT_S=timeout_s,
    )


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Finished, list[str]]]:
    topic = write_topic(tmp_path_factory.mktemp("hostile"), SEED)
    with served(web()) as site:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEST_ON_ONE_CORE", "1")
            process = begun(topic, site)
        yield finish(process, topic), pages_asked(site)


def test_the_crawl_ends_with_all_good_pages_on_one_core(crawled):
    done, _ = crawled
    assert done.status == 0, done.output
    assert {SEED, *GOOD} <= set(done.fetched())


@pytest.mark.parametrize("url", SHAPES)
def test_known_shapes_are_read_within_the_limits(url, crawled):
    assert url in crawled[0].fetched()


@pytest.mark.parametrize(("url", "kind"), [(ENDLESS, "parse-timeout"), (HUGE, "parse-memory")])
def test_a_page_beyond_its_limits_is_a_named_failure_and_requested_once(url, kind, crawled):
    done, asked = crawled
    assert done.pages.loc[url, "failure"] == kind
    assert asked.count(url) == 1


@pytest.fixture
def parsing(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Popen[str], Path, Served]]:
    """A crawl that is parsing a page without end, and would for so many seconds of CPU time."""
    monkeypatch.setenv(MARK, str(tmp_path / "parsing"))
    topic = write_topic(tmp_path, ENDLESS, *GOOD, politeness="max_tries = 1")
    with served(web()) as site:
        process = begun(topic, site, timeout_s=request.param)
        until = time.monotonic() + 60
        while not (tmp_path / "parsing").exists():
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        yield process, topic, site


@pytest.mark.parametrize("parsing", [200.0], indirect=True)
def test_a_page_that_was_being_parsed_when_the_crawl_was_killed_has_used_a_try(parsing):
    process, topic, site = parsing
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=HANGS_AFTER_S)
    resumed = finish(begun(topic, site), topic)
    assert resumed.status == 0, resumed.output
    assert resumed.pages.loc[ENDLESS, "failure"] == "internal-error"
    assert pages_asked(site).count(ENDLESS) == 1
    assert set(GOOD) <= set(resumed.fetched())


@pytest.mark.parametrize("parsing", [3.0], indirect=True)
def test_ctrl_c_ends_a_crawl_that_is_parsing_such_a_page(parsing):
    process, topic, site = parsing
    process.send_signal(signal.SIGINT)
    stopped = finish(process, topic)
    assert "Traceback" not in (stopped.folder / "crawl.log").read_text()
    resumed = finish(begun(topic, site, timeout_s=0.5), topic)
    assert resumed.pages.loc[ENDLESS, "failure"] == "parse-timeout"
    assert set(GOOD) <= set(resumed.fetched())
