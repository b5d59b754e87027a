"""A crawl whose process is suspended (SIGSTOP) continues."""

import signal
import time

import pytest

from tests.live.webs import LATENCIES, SEED, all_pages, answered, pages_asked, wide_web
from tests.support.crawling import finish, start, write_topic
from tests.support.recorded_web import impolite, served

DELAY_S = 0.2


@pytest.mark.parametrize("stopped_s", [12.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_a_crawl_that_was_stopped_continues_without_haste_and_loses_nothing(tmp_path, stopped_s):
    """It is stopped for longer than any answer may take."""
    topic = write_topic(tmp_path, SEED, delay_s=DELAY_S, timeout_s=10.0)
    with served(wide_web(), LATENCIES) as site:
        process = start(topic, site.address)
        while answered(site) < 40:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        process.send_signal(signal.SIGCONT)
        ended = finish(process, topic)
        asked, accesses = pages_asked(site), site.accesses
    assert ended.status == 0, ended.output
    assert set(ended.fetched()) == all_pages()
    # What was under way may have timed out, and is asked for once more.
    assert len(asked) - len(set(asked)) <= 10
    assert not impolite(accesses, DELAY_S, from_end=False)
