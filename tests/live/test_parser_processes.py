"""A live crawl with parser processes."""

import signal
import time
from pathlib import Path

import pytest

from tests.live.webs import (
    INTERRUPTED_DELAY_S,
    LATENCIES,
    SEED,
    all_pages,
    pages_asked,
    wait_for_answers,
    wide_web,
)
from tests.support.crawling import crawl, finish, start, write_topic
from tests.support.forked import is_running
from tests.support.recorded_web import served


def test_the_same_pages_are_classified_alike_here_and_there(tmp_path):
    found = []
    for readers in (0, 2):
        topic = write_topic(tmp_path / str(readers), SEED)
        with served(wide_web()) as site:
            done = crawl(topic, site.address, FOCUSED_PARSER_PROCESSES=readers)
        assert set(done.fetched()) == all_pages()
        pages = done.pages[["relevance", "on_topic", "title", "duplicate_of", "failure"]]
        found.append(pages.sort_index().astype(str).to_dict("index"))
        measured = done.stats["profile"]
        assert measured["parser_processes"] == readers
        assert (measured["pages_parsed_in_processes"] > 0) == (readers > 0)
    assert found[0] == found[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(how, tmp_path):
    topic = write_topic(tmp_path, SEED, delay_s=INTERRUPTED_DELAY_S)
    with served(wide_web(), LATENCIES) as site:
        process = start(topic, site.address, FOCUSED_PARSER_PROCESSES=2)
        wait_for_answers(site, 40, process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(how)
        finish(process, topic)
        assert len(children) == 2
        until = time.monotonic() + 60
        while any(map(is_running, map(int, children))):
            assert time.monotonic() < until, "a process outlives its crawl"
            time.sleep(0.05)
        write_topic(tmp_path, SEED)
        ended = crawl(topic, site.address, FOCUSED_PARSER_PROCESSES=2)
    assert set(ended.fetched()) == all_pages()
    asked = pages_asked(site)
    again = 16 if how is signal.SIGKILL else 0  # what was under way is asked for once more
    assert len(asked) - len(set(asked)) <= again
