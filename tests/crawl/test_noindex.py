"""Pages with noindex: fetched, listed, not harvest."""

import pytest

from focused.web.warc_reader import read_response
from tests.support.simulated import START, page, raw, site, topic, with_politeness

A = "http://a.test/"
WHALE = "whale " * 20


def asking(url: str, directives: str = "noindex", name: str = "robots", link: str = "") -> object:
    meta = f"<meta name={name} content='{directives}'>"
    return raw(url, f"<title>{url}</title>{meta}<p>{WHALE}<a href='{link}'>whale</a>")


def test_a_noindex_page_is_listed_and_left_out_of_the_harvest(simulate, tmp_path):
    web = site(asking(A, link="/b"), page(A + "b", text=WHALE))
    done = simulate(topic(tmp_path, A), web).run()
    row = done.rows[A]
    assert (row["outcome"], row["on_topic"], row["title"]) == ("noindex", False, "")
    assert row["relevance"] > 0.5
    assert (done.crawl.counters.noindex, done.crawl.counters.on_topic) == (1, 1)
    assert (done.crawl.counters.fetched, done.crawl.counters.classified) == (2, 1)
    assert done.urls == [A, A + "b"], "it does not ask that its links are not followed"
    assert row["warc_offset"] is None
    kept = done.rows[A + "b"]
    stored = read_response(done.topic.output.folder / kept["warc_file"], kept["warc_offset"])
    assert stored.url == A + "b"


def test_a_copy_that_may_be_indexed_is_harvested(simulate, tmp_path):
    same = f"<title>same</title><p>{WHALE}"
    web = site(
        page(A, "/1", "/2"),
        raw(A + "1", f"<meta name=robots content=noindex>{same}"),
        raw(A + "2", same),
    )
    done = simulate(topic(tmp_path, A), web).run()
    assert done.rows[A + "1"]["outcome"] == "noindex"
    assert done.rows[A + "2"]["on_topic"] and done.rows[A + "2"]["duplicate_of"] is None


def test_with_keep_it_is_a_page_as_any(simulate, tmp_path):
    mine = with_politeness(topic(tmp_path, A), noindex="keep")
    done = simulate(mine, site(asking(A))).run()
    assert (done.rows[A]["outcome"], done.rows[A]["on_topic"]) == ("fetched", True)
    assert done.crawl.counters.noindex == 0


@pytest.mark.parametrize(
    ("name", "outcome"), [("FocusedTest", "noindex"), ("OtherBot", "fetched"), ("x", "fetched")]
)
def test_the_robot_that_is_meant_is_the_one_of_the_user_agent(simulate, tmp_path, name, outcome):
    done = simulate(topic(tmp_path, A), site(asking(A, name=name))).run()
    assert done.rows[A]["outcome"] == outcome


def test_the_header_says_as_much(simulate, tmp_path):
    web = site(page(A, text=WHALE, x_robots_tag="otherbot: all, focusedtest: noindex"))
    assert simulate(topic(tmp_path, A), web).run().rows[A]["outcome"] == "noindex"


def test_a_page_that_has_ended_is_left_out(simulate, tmp_path):
    # The clock of a simulation begins on 12 January 1970.
    assert START == 1_000_000.0
    web = site(
        page(A, "/old", "/new"),
        asking(A + "old", "unavailable_after: 1 Jan 1970 00:00:00 GMT"),
        asking(A + "new", "unavailable_after: 1 Feb 1970 00:00:00 GMT"),
    )
    done = simulate(topic(tmp_path, A), web).run()
    assert done.rows[A + "old"]["outcome"] == "noindex"
    assert done.rows[A + "new"]["outcome"] == "fetched"
