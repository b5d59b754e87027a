"""A running crawl is watched and steered through its control folder."""

import json
import time

from focused.crawl.steering import (
    Action,
    AddSeeds,
    ChangeDelay,
    Command,
    ControlFolder,
    Pause,
    Resume,
    Stop,
)
from tests.live.webs import (
    LATENCIES,
    SEED,
    all_pages,
    pages_asked,
    wait_for_answers,
    wait_until,
    wide_web,
)
from tests.support.crawling import crawl, finish, start, write_topic
from tests.support.forked import ForkedCommand
from tests.support.recorded_web import served


def executed(control: ControlFolder, command: Command, process: ForkedCommand) -> Action:
    sent = control.send(command, by="test", now=time.time())
    found: list[Action] = []

    def is_logged() -> bool:
        found[:] = [each for each in control.read_actions(10) if each.id == sent]
        return bool(found)

    wait_until(is_logged, process)
    return found[0]


def test_an_operator_watches_pauses_steers_and_stops_a_crawl(tmp_path):
    topic = write_topic(tmp_path, SEED)
    control = ControlFolder(tmp_path / "out")
    with served(wide_web(), LATENCIES) as site:
        process = start(topic, site.address)
        wait_for_answers(site, 20, process)
        control.watch()
        assert executed(control, Pause(), process).undo == Resume()

        def is_quiet() -> bool:
            control.watch()
            status = control.read_status() or {}
            return bool(status.get("is_paused")) and status.get("in_flight") == 0

        wait_until(is_quiet, process)
        asked = len(pages_asked(site))
        status = control.read_status()
        assert status is not None
        assert 0 < status["stats"]["fetched"] < len(all_pages())
        assert status["stats"]["frontier"] > 0
        refused = executed(control, ChangeDelay(-1.0), process)
        assert "delay_s" in refused.error
        added = executed(control, AddSeeds(("http://new.test/",)), process)
        assert added.message == "added 1 link"
        assert len(pages_asked(site)) == asked, "a paused crawl requests nothing"
        executed(control, Resume(), process)
        wait_for_answers(site, asked + 5, process)
        executed(control, Stop(), process)
        stopped = finish(process, topic)
        assert stopped.status == 0, stopped.output
        stats = json.loads((tmp_path / "out" / "stats.json").read_text())
        assert stats["end_reason"] == "stopped by its operator"
        control.send(Stop(), by="test", now=time.time())
        ended = crawl(topic, site.address)
    assert ended.status == 0, ended.output
    assert set(ended.fetched()) == all_pages(), "a command of an earlier session does nothing"
    assert "discarded" in control.read_actions(1)[0].error
