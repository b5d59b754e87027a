"""A continuous crawl over HTTP, of a web whose pages change, that is killed again and again."""

import random
import time
from collections import Counter
from itertools import pairwise

import pytest

from focused.archive.archive import page_rows
from focused.archive.page_history import VisitResult, VisitRow, page_histories, visit_rows
from focused.archive.warc_files import warc_files
from focused.durations import DAY_S
from focused.storage.state_store import StateStore
from focused.web.warc_reader import WarcResponse, read_responses
from focused_lab.change_history import Change, ChangeKind
from focused_lab.changing_web.change_options import ChangeOptions
from focused_lab.changing_web.changing_replay import ChangingSource
from focused_lab.changing_web.changing_web import ChangingWeb
from focused_lab.recorded_web.replay_clock import ReplayClock
from tests.lab.changing_web.test_changing_web import HOME, START, histories, record
from tests.live.webs import answered
from tests.support.crawling import finish, start, write_topic
from tests.support.recorded_web import served

SPEED = 400_000.0
KILLS = 10
DAYS = 120
CHANGES = [Change(ChangeKind.CHANGED, day * DAY_S, 40, 20) for day in range(5, DAYS, 5)]


@pytest.mark.long
def test_ten_kills_lose_no_visit(tmp_path):
    rng = random.Random(1)
    topic = write_topic(
        tmp_path, HOME, revisit=f"continuous = true\nhours = {DAYS * 24}\npages_per_day = 20"
    )
    with record(tmp_path / "web") as web:
        changing = ChangingWeb(web, histories(*CHANGES), ChangeOptions(noise=0.0))
        clock = ReplayClock(START, time.time(), SPEED)
        with served(ChangingSource(changing, clock), clock=clock) as site:
            for _ in range(KILLS):
                process = start(topic, site.address, FOCUSED_CLOCK=clock)
                enough = answered(site) + rng.randint(3, 30)
                while answered(site) < enough and process.poll() is None:
                    time.sleep(0.005)
                process.kill()
                process.communicate()
            ended = finish(start(topic, site.address, FOCUSED_CLOCK=clock), topic)
    assert ended.status == 0, ended.output
    with StateStore.open_for_reading(ended.folder / "state") as (store, _):
        visits = list(visit_rows(store.tables))
        histories_by_page = dict(page_histories(store.tables))
        rows = {row["seq"]: row for row in page_rows(store.tables)}
        collection = [
            seq
            for seq, row in rows.items()
            if row["outcome"] in ("fetched", "feed") and row["duplicate_of"] is None
        ]
        assert len(visits) > 100
        assert set(histories_by_page) == set(collection)
        for seq, history in histories_by_page.items():
            own = [visit for visit in visits if visit.page == seq]
            kinds = Counter(visit.result for visit in own)
            assert history.versions == 1 + kinds[VisitResult.CHANGED]
            _assert_in_order(own, rows[seq]["fetched_at"])
        scheduled = len(list(store.tables.members("revisit_queue", b"all")))
        queued = store.tables.count("links")
        assert queued == store.tables.count("released_pages")
        assert scheduled + queued == len(collection), "each page is visited again"
    records = [each for path in warc_files(ended.folder) for each in read_responses(path)]
    assert records
    assert all(isinstance(each, WarcResponse) for each in records), "no record is damaged"


def _assert_in_order(visits: list[VisitRow], first_seen: float) -> None:
    assert all(one.at < other.at for one, other in pairwise(visits))
    for one, other in pairwise(visits):
        assert other.previous_at == one.at
    if visits:
        assert visits[0].previous_at == first_seen
