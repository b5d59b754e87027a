"""Ctrl-C: a crawl stops in order, and the same command continues it."""

import signal

from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from tests.live.webs import (
    INTERRUPTED_DELAY_S,
    LATENCIES,
    SEED,
    all_pages,
    pages_asked,
    wait_for_answers,
    wait_until,
    wide_web,
)
from tests.support.crawling import crawl, finish, start, write_topic
from tests.support.recorded_web import served


def latency(seconds: float) -> FaultPlan:
    return FaultPlan((parse_fault(f"*/1*:kind=latency,latency_s={seconds}"),))


def test_ctrl_c_stops_in_order_and_the_same_command_continues(tmp_path):
    topic = write_topic(tmp_path, SEED, delay_s=INTERRUPTED_DELAY_S)
    with served(wide_web(), LATENCIES) as site:
        process = start(topic, site.address, FOCUSED_REPORT=True)
        wait_for_answers(site, 40, process)
        process.send_signal(signal.SIGINT)
        stopped = finish(process, topic)
        first = stopped.fetched()
        write_topic(tmp_path, SEED)
        ended = crawl(topic, site.address)
    assert (stopped.status, ended.status) == (0, 0), stopped.output
    assert "Traceback" not in stopped.output + ended.output
    for word in ("fetched", "harvest rate", "left in the frontier"):
        assert word in stopped.output
    assert 0 < len(first) < len(all_pages())
    assert ended.fetched()[: len(first)] == first
    assert set(ended.fetched()) == all_pages()
    asked = pages_asked(site)
    assert len(asked) == len(set(asked))


def test_ctrl_c_does_not_wait_for_hosts_that_are_not_due(tmp_path):
    topic = write_topic(tmp_path, SEED, delay_s=300.0)
    with served(wide_web()) as site:
        process = start(topic, site.address)
        wait_for_answers(site, 1, process)
        process.send_signal(signal.SIGINT)
        stopped = finish(process, topic, timeout_s=60.0)
    assert stopped.status == 0, stopped.output
    assert "Traceback" not in stopped.output


def test_a_second_ctrl_c_does_not_wait_for_slow_answers_and_loses_nothing(tmp_path):
    topic = write_topic(tmp_path, SEED, timeout_s=600.0, politeness="max_tries = 9")
    with served(wide_web(), latency(200.0)) as site:
        process = start(topic, site.address)
        wait_for_answers(site, 11, process)
        process.send_signal(signal.SIGINT)
        log = tmp_path / "out/crawl.log"
        wait_until(lambda: "shutting down gracefully" in log.read_text(), process)
        process.send_signal(signal.SIGINT)
        stopped = finish(process, topic, timeout_s=60.0)
    assert "Traceback" not in stopped.output
    with served(wide_web()) as site:
        ended = crawl(topic, site.address)
    assert set(ended.fetched()) == all_pages()
