"""A stopped crawl's frontier is edited by the command, and the crawl resumes with it."""

import signal

import pandas as pd

from tests.live.webs import (
    INTERRUPTED_DELAY_S,
    LATENCIES,
    SEED,
    all_pages,
    pages_asked,
    wait_for_answers,
    wide_web,
)
from tests.support.command import focused
from tests.support.crawling import crawl, finish, start, write_topic
from tests.support.recorded_web import html, page, served

ADDED = "http://h3.test/nobody-links-here"


def frontier(*arguments: object) -> str:
    return focused("frontier", *arguments).stdout


def test_what_was_added_is_fetched_and_what_was_dropped_is_not(tmp_path):
    topic = write_topic(tmp_path, SEED, delay_s=INTERRUPTED_DELAY_S)
    links = tmp_path / "links.parquet"
    with served(wide_web(page(ADDED, html("Found by an operator"))), LATENCIES) as site:
        process = start(topic, site.address)
        wait_for_answers(site, 40, process)
        process.send_signal(signal.SIGINT)
        stopped = finish(process, topic)
        write_topic(tmp_path, SEED)
        before = set(stopped.fetched())
        folder = stopped.folder
        frontier("export", folder, links)
        queued = pd.read_parquet(links)
        host = queued["host"].value_counts().index[0]
        dropped = set(queued[queued["host"] == host]["url"])
        assert frontier("drop", folder, "--host", host).startswith(f"dropped {len(dropped)} links")
        assert frontier("add", folder, ADDED) == "added 1 link\n"
        first = frontier(folder, "--best", 1).splitlines()[-1]
        ended = crawl(topic, site.address)
    assert ended.status == 0, ended.output
    assert first.endswith(ADDED)
    after = ended.fetched()[len(before) :]
    assert next(url for url in after if url.startswith("http://h3.test/")) == ADDED
    assert dropped
    assert dropped.isdisjoint(pages_asked(site))
    assert (set(queued["url"]) - dropped) & all_pages() <= set(after)
