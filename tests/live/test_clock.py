"""Changes of the system's clock neither stall a crawl nor shorten a delay."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.webs import SEED, pages_asked, wide_web
from tests.support.crawling import ROOT, Finished, command, write_topic
from tests.support.crawling import crawl as run_crawl
from tests.support.forked import HANGS_AFTER_S
from tests.support.recorded_web import Served, impolite, served

HOUR_S = 3600
DELAY_S = 0.3
PAGES = 40
# time.time is the system's clock: from the JUMP_AT-th second of the process on it is another.
JUMPING = """
import os, time
began, wall, counted = time.time(), time.time, time.monotonic
start = counted()
before, after, at = (float(os.environ[name]) for name in ("BEFORE", "AFTER", "JUMP_AT"))
time.time = lambda: wall() + (before if counted() - start < at else after)
from scrapy.cmdline import execute
execute()
"""


def crawl(
    topic: Path, site: Served, *, before: float = 0, after: float = 0, jump_at: float = 0
) -> Finished:
    """Crawl to the end where the system's clock is wrong by ``before``, then by ``after``."""
    environment = {"BEFORE": str(before), "AFTER": str(after), "JUMP_AT": str(jump_at)}
    done = subprocess.run(
        [sys.executable, "-c", JUMPING, *command(topic, site.address)[3:]],
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=HANGS_AFTER_S,
        check=False,
    )
    return Finished(done.returncode, done.stdout, topic.parent / "out")


@pytest.mark.parametrize("jump_s", [-HOUR_S, 24 * HOUR_S])
def test_a_clock_that_jumps_in_mid_crawl_changes_nothing(tmp_path, jump_s):
    topic = write_topic(tmp_path, SEED, delay_s=DELAY_S, budget=f"pages = {PAGES}")
    with served(wide_web()) as site:
        ended = crawl(topic, site, after=jump_s, jump_at=3.0)
        accesses = site.accesses
    assert ended.status == 0, ended.output
    assert len(ended.fetched()) == PAGES
    # From request to request: server and crawl disagree on when an answer was whole.
    assert not impolite(accesses, DELAY_S, from_end=False)
    stats = ended.stats
    assert 0 < stats["elapsed_s"] < HOUR_S


@pytest.mark.parametrize("jump_s", [-HOUR_S, 24 * HOUR_S])
def test_a_clock_that_jumped_between_two_sessions_stalls_nothing(tmp_path, jump_s):
    with served(wide_web()) as site:
        topic = write_topic(tmp_path, SEED, delay_s=DELAY_S, budget="pages = 10")
        first = run_crawl(topic, site.address)
        assert first.status == 0, first.output
        topic = write_topic(tmp_path, SEED, delay_s=DELAY_S, budget=f"pages = {PAGES}\nhours = 1")
        ended = crawl(topic, site, before=jump_s, after=jump_s)
        asked = pages_asked(site)
        accesses = site.accesses
    assert ended.status == 0, ended.output
    assert len(ended.fetched()) == PAGES
    assert len(asked) == len(set(asked))
    # From request to request: server and crawl disagree on when an answer was whole.
    assert not impolite(accesses, DELAY_S, from_end=False)
