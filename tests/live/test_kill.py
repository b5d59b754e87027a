"""``kill -9`` at any moment: nothing harvested is lost, nothing settled is asked for again."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from focused.archive import page_rows
from focused.frontier.store import StateStore
from focused.recorded.warc_records import StoredRecord, read_responses
from tests.live.webs import (
    HOSTS,
    SEED,
    SLOWLY,
    all_pages,
    answered,
    pages_asked,
    wait_for_answers,
    wide_web,
)
from tests.support.crawling import Finished, finish, start, write_topic
from tests.support.recorded_web import served

KILLS = 6
KILLED = -9


def rows_in(folder: Path) -> list[dict[str, Any]]:
    store = StateStore.reopen(folder / "state")
    try:
        return list(page_rows(store))
    finally:
        store.close()


class Survivor:
    """A crawl that was killed :data:`KILLS` times and then let run to its end."""

    def __init__(self, folder: Path) -> None:
        rng = random.Random(20)
        topic = write_topic(folder, SEED)
        self.rows_at_kills: list[list[dict[str, Any]]] = []
        self.asked_at_kills: list[int] = []
        with served(wide_web(), SLOWLY) as site:
            for _ in range(KILLS):
                process = start(topic, site.address)
                wait_for_answers(site, answered(site) + rng.randint(3, 45), process)
                process.kill()
                assert finish(process, topic).status == KILLED
                self.rows_at_kills.append(rows_in(folder / "out"))
                self.asked_at_kills.append(len(pages_asked(site)))
            self.end: Finished = finish(start(topic, site.address), topic)
        self.asked = pages_asked(site)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Survivor:
    return Survivor(tmp_path_factory.mktemp("killed"))


def test_the_same_command_goes_on_to_the_same_end(survivor: Survivor) -> None:
    assert survivor.end.status == 0, survivor.end.said
    assert "Traceback" not in survivor.end.said
    assert set(survivor.end.fetched()) == all_pages()


def test_no_row_is_lost_or_changed_by_a_kill(survivor: Survivor) -> None:
    histories = [*survivor.rows_at_kills, rows_in(survivor.end.folder)]
    assert all(histories)
    for before, after in pairwise(histories):
        assert after[: len(before)] == before


def test_what_was_settled_before_a_kill_is_never_asked_for_again(survivor: Survivor) -> None:
    for rows, asked in zip(survivor.rows_at_kills, survivor.asked_at_kills, strict=True):
        assert not {row["url"] for row in rows} & set(survivor.asked[asked:])


def test_only_what_was_in_flight_is_asked_for_twice(survivor: Survivor) -> None:
    again = Counter(survivor.asked) - Counter(set(survivor.asked))
    # One fetch per host at a time: that many can be in flight.
    assert again.total() <= KILLS * HOSTS


def test_the_rows_are_numbered_without_gaps_and_each_page_has_one(survivor: Survivor) -> None:
    pages = survivor.end.pages
    assert list(pages["seq"]) == list(range(len(pages)))
    assert pages["url"].is_unique


def test_the_warc_holds_one_whole_record_per_page_at_its_offset(survivor: Survivor) -> None:
    records = list(read_responses(survivor.end.folder / "pages.warc.gz"))
    assert all(isinstance(record, StoredRecord) for record in records)
    pages = survivor.end.pages
    fetched = pages[pages["outcome"] == "fetched"]
    assert {record.offset: record.url for record in records} == dict(
        zip(fetched["warc_offset"], fetched["url"], strict=True)
    )
    web = wide_web()
    assert all(web.get(record.url).body == record.body for record in records)


def test_the_links_of_every_page_are_there_once(survivor: Survivor) -> None:
    links = pd.read_parquet(survivor.end.folder / "links.parquet")
    assert set(links["source"]) == all_pages()
    assert not links.duplicated(["source", "target"]).any()
