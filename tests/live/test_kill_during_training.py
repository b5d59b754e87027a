"""``kill -9`` during online training: the apprentice knows exactly the harvested pages."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from focused.archive.archive import page_rows
from focused.crawl.online_training import OnlineTraining
from focused.crawl.policy import Policy
from focused.frontier.disk_frontier import DiskFrontier
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.protocols import TrainingExample, decode_example
from focused.storage.state_store import StateStore
from tests.live.webs import (
    INTERRUPTED_DELAY_S,
    LATENCIES,
    SEED,
    all_pages,
    answered,
    wait_for_answers,
    wide_web,
)
from tests.support.crawling import finish, start, write_topic
from tests.support.recorded_web import served
from tests.support.whale_models import WhaleClassifier

KILLS = 3
KILLED = -9
GUIDE = "tests.support.whale_models.learning_models"


@dataclass(frozen=True)
class Left:
    """What a process left behind; ``state`` is what an apprentice knows that is taught from it."""

    harvested: list[tuple[str, float]]
    examples: list[TrainingExample]
    state: bytes

    @classmethod
    def in_folder(cls, folder: Path) -> Left:
        store = StateStore.reopen(folder / "state")
        try:
            rows = [
                (row["url"], row["relevance"])
                for row in page_rows(store.tables)
                if row["outcome"] == "fetched" and row["duplicate_of"] is None
            ]
            examples = [decode_example(row) for _, row in store.tables.scan("training_examples")]
            apprentice = Apprentice(WhaleClassifier())
            OnlineTraining(Policy("focused", apprentice), DiskFrontier(store.tables), store.tables)
            return cls(rows, examples, apprentice.state())
        finally:
            store.close()


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> list[Left]:
    """What was left at each kill, and at the end."""
    folder = tmp_path_factory.mktemp("killed")
    rng = random.Random(30)
    topic = write_topic(folder, SEED, delay_s=INTERRUPTED_DELAY_S)
    found = []
    with served(wide_web(), LATENCIES) as site:
        for _ in range(KILLS):
            process = start(topic, site.address, FOCUSED_MODELS=GUIDE)
            wait_for_answers(site, answered(site) + rng.randint(20, 50), process)
            process.kill()
            assert finish(process, topic).status == KILLED
            found.append(Left.in_folder(folder / "out"))
        write_topic(folder, SEED)
        end = finish(start(topic, site.address, FOCUSED_MODELS=GUIDE), topic)
    assert end.status == 0, end.output
    assert "Traceback" not in end.output
    assert set(end.fetched()) == all_pages()
    return [*found, Left.in_folder(folder / "out")]


def test_each_page_that_was_harvested_was_learned_from_once_and_in_order(left):
    for each in left:
        assert [(example.url, example.relevance) for example in each.examples] == each.harvested
    assert len(left[-1].examples) == len(all_pages())


def test_no_lesson_is_lost_or_changed_by_a_kill(left):
    assert all(each.examples for each in left)
    for before, after in pairwise(left):
        assert after.examples[: len(before.examples)] == before.examples


def test_the_next_process_knows_what_one_that_was_never_killed_would(left):
    apprentice = Apprentice(WhaleClassifier())
    for example in left[-1].examples:
        apprentice.learn(example)
    assert left[-1].state == apprentice.state()


def test_lessons_hold_the_evidence_by_which_their_links_were_fetched(left):
    of_links = [example for example in left[-1].examples if example.url != SEED]
    assert {len(example.features) for example in of_links} == {len(Apprentice.feature_names)}
    assert all(example.parent and example.tag_path_key for example in of_links)
