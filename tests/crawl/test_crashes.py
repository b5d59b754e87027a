"""A crash before a commit leaves WARC, rows and frontier consistent."""

import pytest

from focused.archive.warc_files import WARC_FILE
from focused.crawl import Done, Wait
from focused.web.page import FailureKind
from focused.web.warc_reader import WarcResponse, read_responses
from tests.support.simulated import Simulation, failed, moved, page, site, topic, with_politeness

A = "http://a.test/"


def web() -> dict:
    answers = site(
        page(A, "/1", "/2", "/3", "http://b.test/", "/gone"),
        page(A + "1", "/4", text="whale"),
        page(A + "2", "/4", title="same", text="same"),
        page(A + "3", "/5", title="same", text="same"),
        moved(A + "4", "http://b.test/4"),
        page("http://b.test/", A),
        page("http://b.test/4", A, text="whale"),
    )
    flaky = A + "5"
    return answers | {flaky: [failed(flaky, FailureKind.RESET), page(flaky)]}


def whole_story(crawl) -> set:
    return {
        (row["url"], row["outcome"], row["failure"], row["on_topic"]) for row in crawl.rows.values()
    }


@pytest.mark.parametrize("commit", range(1, 13))
def test_a_crash_at_a_commit_loses_nothing_but_the_answer_it_would_have_kept(
    commit, simulate, tmp_path
):
    whole = simulate(topic(tmp_path / "whole", A), web()).run()
    crawl = simulate(topic(tmp_path / "crashed", A), web()).crash_at_commit(commit).run()
    assert whole_story(crawl) == whole_story(whole)
    assert len(crawl.asked) <= len(whole.asked) + 1
    assert crawl.crawl.counters.fetched == whole.crawl.counters.fetched
    assert crawl.crawl.counters.on_topic == whole.crawl.counters.on_topic
    records = list(read_responses(crawl.topic.output.folder / WARC_FILE))
    assert all(isinstance(record, WarcResponse) for record in records)
    assert {record.url: record.offset for record in records} == {
        url: row["warc_offset"] for url, row in crawl.rows.items() if row["warc_offset"] is not None
    }


def crash_over(crawl: Simulation, url: str) -> bool:
    """Let the crawl's process die while it parses the page; False when it is not asked for."""
    for _ in range(100):
        step = crawl.crawl.next(crawl.now)
        if isinstance(step, Done):
            return False
        if isinstance(step, Wait):
            crawl.now = step.until
        elif step.url == url:
            crawl.crawl.begin_parsing(step.lease)
            crawl.die()
            return True
        else:
            nothing = failed(step.url, FailureKind.GONE)
            crawl.crawl.settle(step.lease, crawl.web.get(step.url, nothing), crawl.now)
    raise AssertionError("the crawl does not end")


def test_a_page_that_crawls_die_over_is_dead_after_as_many_tries(simulate, tmp_path):
    three_pages = site(page(A, "/1", "/2", "/3"), *(page(f"{A}{n}") for n in (1, 2, 3)))
    crawl = simulate(with_politeness(topic(tmp_path, A), max_tries=2), three_pages)
    assert [crash_over(crawl, A + "2") for _ in range(3)] == [True, True, False]
    assert crawl.rows[A + "2"]["failure"] == "internal-error"
    assert crawl.rows[A + "3"]["outcome"] == "fetched"


def test_a_page_that_a_crawl_died_over_once_is_requested_again(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web())
    assert crash_over(crawl, A + "2")
    assert crawl.run().rows[A + "2"]["outcome"] == "fetched"


def test_a_crawl_that_is_stopped_while_it_parses_a_page_used_no_try(simulate, tmp_path):
    two_pages = site(page(A, "/1"), page(A + "1"))
    crawl = simulate(with_politeness(topic(tmp_path, A), max_tries=1), two_pages).run(pages=1)
    step = crawl.crawl.next(crawl.now + 10)
    assert step.url == A + "1"
    crawl.crawl.begin_parsing(step.lease)
    crawl.restart().run()
    assert crawl.rows[A + "1"]["outcome"] == "fetched"


def test_half_a_record_at_the_end_of_the_warc_is_cut_off(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), web()).run(pages=2)
    crawl.close()
    path = tmp_path / "out" / WARC_FILE
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 3])
    crawl.restart().run()
    records = list(read_responses(path))
    assert all(isinstance(record, WarcResponse) for record in records)
    assert len(records) == crawl.crawl.counters.fetched
