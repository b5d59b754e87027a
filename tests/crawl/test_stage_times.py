"""Stage times, by a clock that ticks at each reading."""

from itertools import count

import pytest

from focused.crawl.crawl_stats import Stage, StageTimes
from tests.support.simulated import Simulation, page, site, topic


def ticking() -> StageTimes:
    ticks = count()
    return StageTimes(lambda: float(next(ticks)))


def test_a_stage_adds_up_what_its_blocks_took():
    stages = ticking()
    for _ in range(3):
        with stages(Stage.SCORING):
            pass
    stages.add(Stage.SCORING, 2.0)
    assert stages.seconds["scoring"] == 5.0
    assert stages.seconds["parsing"] == 0.0


def test_a_block_that_fails_is_timed_too():
    stages = ticking()
    with pytest.raises(ValueError, match="broken"), stages(Stage.PARSING):
        raise ValueError("broken")
    assert stages.seconds["parsing"] == 1.0


def test_every_stage_of_a_crawl_is_timed_and_none_within_another(tmp_path):
    stages = ticking()
    web = site(page("http://a.test/", "/whales"), page("http://a.test/whales"))
    Simulation(topic(tmp_path, "http://a.test/"), web, stages=stages).run().close()
    assert all(stages.seconds.values()), stages.seconds
    asked_once_more = stages.clock()
    assert sum(stages.seconds.values()) < asked_once_more


def test_a_crawl_without_a_clock_tells_nothing(tmp_path):
    web = site(page("http://a.test/"))
    stages = StageTimes()
    Simulation(topic(tmp_path, "http://a.test/"), web, stages=stages).run().close()
    assert not any(stages.seconds.values())
