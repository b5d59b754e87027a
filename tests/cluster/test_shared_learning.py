"""One scorer per worker, trained on the examples of all partitions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.exchange import MemoryExchange
from focused.cluster.learning import EXAMPLES_PER_SNAPSHOT, SharedLearning, sharing_probability
from focused.cluster.messages import ExampleMessage, encode_example
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.protocols import TrainingExample, decode_example
from focused.storage.rows import pack
from tests.link_scoring.apprentices import LINKS, a_crawls_lessons, new_pupil, seen
from tests.support.memory_storage import MemoryStorage
from tests.support.partitions import DrivenPartition
from tests.support.pupil import Pupil
from tests.support.simulated import page, site


def publish(
    exchange: MemoryExchange,
    examples: Iterable[TrainingExample],
    *,
    sender: int = 0,
    token: int = 1,
    first: int = 0,
) -> None:
    for number, each in enumerate(examples, first):
        row = msgspec.Raw(pack(each))
        exchange.publish([encode_example(ExampleMessage(sender, token, number, row))])


def learn_all(learning: SharedLearning, limit: int = 500) -> SharedLearning:
    while learning.learn(limit):
        pass
    return learning


def scores_of(scorer: Apprentice) -> tuple[list[float], list[float]]:
    """The scores of links of a new page, and of queued links."""
    found = scorer.score_merged(seen(0.7, links=3), LINKS, [None] * len(LINKS))
    again = scorer.rescore([_Queued(each) for each in a_crawls_lessons(15, seed=9)])
    return found.rank_score.tolist(), [each.rank_score for each in again]


class _Queued:
    def __init__(self, example: TrainingExample) -> None:
        self.url, self.anchor, self.parent = example.url, example.anchor, example.parent
        self.tag_path_key, self.features = example.tag_path_key, example.features
        self.found_at = 0.0


# One order


def test_workers_that_read_the_same_stream_score_links_equally():
    exchange, one, other = MemoryExchange(), new_pupil(), new_pupil()
    examples = a_crawls_lessons(300)
    publish(exchange, examples[:150], sender=0)
    first = learn_all(SharedLearning(one, exchange, MemoryStorage()), limit=7)
    publish(exchange, examples[150:], sender=1)
    learn_all(first, limit=11)
    learn_all(SharedLearning(other, exchange, MemoryStorage()))
    assert scores_of(one) == scores_of(other) != scores_of(new_pupil())
    assert one.state() == other.state()


def test_a_worker_learns_what_a_single_crawl_would():
    exchange, shared, single = MemoryExchange(), new_pupil(), new_pupil()
    examples = a_crawls_lessons(100)
    publish(exchange, examples)
    learn_all(SharedLearning(shared, exchange, MemoryStorage()))
    for each in examples:
        single.learn(decode_example(pack(each)))
    assert scores_of(shared) == scores_of(single)


def test_a_worker_that_joins_begins_with_the_newest_snapshot():
    exchange, storage = MemoryExchange(max_published=50), MemoryStorage()
    one, joined = new_pupil(), new_pupil()
    learning = SharedLearning(one, exchange, storage)
    examples = a_crawls_lessons(330)
    for start in range(0, 300, 30):
        publish(exchange, examples[start : start + 30], first=start)
        learn_all(learning)
    learning.save()
    publish(exchange, examples[300:], first=300)
    learn_all(learning)
    late = SharedLearning(joined, exchange, storage)
    assert late.restore()
    learn_all(late)
    assert scores_of(joined) == scores_of(one)
    assert (late.counts.learned, late.counts.missed) == (30, 0)


def test_a_snapshot_is_due_well_before_its_place_in_the_stream_is_trimmed():
    exchange = MemoryExchange()
    learning = SharedLearning(Pupil(), exchange, MemoryStorage())
    publish(exchange, [a_pupils_example()] * EXAMPLES_PER_SNAPSHOT)
    learning.learn(EXAMPLES_PER_SNAPSHOT - 1)
    assert not learning.is_snapshot_due
    learn_all(learning)
    assert learning.is_snapshot_due
    learning.save()
    assert not learning.is_snapshot_due


# Skipped


def a_pupils_example(url: str = "http://a.test/", relevance: float = 0.5) -> TrainingExample:
    return TrainingExample(url, "", "", 7, (0.5, 0.5), b"", relevance)


def named(*urls: str) -> list[TrainingExample]:
    return [a_pupils_example(url) for url in urls]


def heard_of(exchange: MemoryExchange) -> tuple[list[str], SharedLearning]:
    pupil = Pupil()
    learning = learn_all(SharedLearning(pupil, exchange, MemoryStorage()))
    return pupil.heard, learning


def test_an_example_that_is_sent_twice_is_learned_once():
    exchange = MemoryExchange()
    publish(exchange, named("a", "b"))
    publish(exchange, named("a", "b", "c"))
    heard, learning = heard_of(exchange)
    assert heard == ["a", "b", "c"]
    assert learning.counts.repeated == 2


def test_an_example_that_two_owners_of_a_partition_sent_is_learned_once():
    """The first owner died after it sent the examples, before it removed them."""
    exchange = MemoryExchange()
    publish(exchange, named("a", "b"), token=1)
    publish(exchange, named("b", "c"), token=2, first=1)
    heard, _ = heard_of(exchange)
    assert heard == ["a", "b", "c"]


def test_an_owner_that_was_replaced_teaches_nothing_any_more():
    exchange = MemoryExchange()
    publish(exchange, named("a"), token=1)
    publish(exchange, named("b"), token=2, first=1)
    publish(exchange, named("asleep"), token=1, first=2)
    publish(exchange, named("c"), token=2, first=2)
    heard, learning = heard_of(exchange)
    assert heard == ["a", "b", "c"]
    assert learning.counts.repeated == 1


def test_examples_of_several_partitions_are_numbered_apart():
    exchange = MemoryExchange()
    publish(exchange, named("a"), sender=0)
    publish(exchange, named("b"), sender=1)
    assert heard_of(exchange)[0] == ["a", "b"]


def test_a_joined_worker_skips_what_was_sent_before_the_snapshot_and_again_after_it():
    exchange, storage = MemoryExchange(), MemoryStorage()
    publish(exchange, named("a", "b"))
    learn_all(SharedLearning(Pupil(), exchange, storage)).save()
    publish(exchange, named("b", "c"), first=1)
    pupil = Pupil()
    joined = SharedLearning(pupil, exchange, storage)
    joined.restore()
    learn_all(joined)
    assert pupil.heard == ["c"]


def test_examples_that_were_trimmed_before_they_were_read_are_counted(caplog):
    exchange, storage = MemoryExchange(max_published=5), MemoryStorage()
    publish(exchange, named(*"abc"))
    learn_all(SharedLearning(Pupil(), exchange, storage)).save()
    publish(exchange, named(*"defghijk"), first=3)
    pupil = Pupil()
    joined = SharedLearning(pupil, exchange, storage)
    joined.restore()
    learn_all(joined)
    assert pupil.heard == list("ghijk")
    assert joined.counts.missed == 3
    assert "partition 0: 3 training examples were removed" in caplog.text


def test_an_example_that_the_scorer_cannot_use_is_counted(caplog):
    class Brittle(Pupil):
        def learn(self, lesson):
            if lesson.url == "b":
                raise ValueError("no b")
            super().learn(lesson)

    exchange, pupil = MemoryExchange(), Brittle()
    publish(exchange, named("a", "b", "c"))
    learning = learn_all(SharedLearning(pupil, exchange, MemoryStorage()))
    assert pupil.heard == ["a", "c"]
    assert learning.counts.failed == 1
    assert "b could not be used for training" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"features": (math.nan, 0.0)},
        {"features": (math.inf, 0.0)},
        {"features": (1e300, 0.0)},
        {"features": (0.0,)},
        {"features": (0.0, 0.0, 0.0)},
        {"relevance": 1.5},
        {"relevance": -0.1},
        {"relevance": math.nan},
        {"tempered": 1.5},
        {"tempered": math.nan},
        {"words": b"12345"},
        {"tag_path_key": -1},
        {"url": "u" * 9_000},
        {"parent": "u" * 9_000},
        {"anchor": "a" * 2_000},
        {"words": b"word" * 100_000},
    ],
    ids=lambda changes: ", ".join(changes),
)
def test_an_example_with_impossible_values_is_counted_and_skipped(changes, caplog):
    exchange = MemoryExchange()
    hostile = msgspec.structs.replace(a_pupils_example("bad"), **changes)
    publish(exchange, [*named("a"), hostile, *named("c")])
    heard, learning = heard_of(exchange)
    assert heard == ["a", "c"]
    assert learning.counts.malformed == 1
    assert "a training example is skipped" in caplog.text


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
numbers = st.floats() | st.sampled_from([0.0, 1.0, 65_504.0])
examples = st.builds(
    TrainingExample,
    url=st.text(max_size=60) | st.sampled_from(["http://a.test/b/c?d=e", "http://[", "http://a:b"]),
    anchor=st.text(max_size=60),
    parent=st.text(max_size=60) | st.sampled_from(["http://a.test/b/", "//", "http://[::1"]),
    tag_path_key=st.integers(-(2**63), 2**64 - 1),
    features=st.just(()) | st.lists(numbers, min_size=15, max_size=15).map(tuple),
    words=st.binary(max_size=40),
    relevance=st.floats(0.0, 1.0) | numbers,
)
raw_messages = (
    st.binary(max_size=200)
    | anything.map(msgspec.msgpack.encode)
    | st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 30), anything).map(
        msgspec.msgpack.encode
    )
    | st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 30), examples).map(
        msgspec.msgpack.encode
    )
)


@given(st.lists(raw_messages, max_size=20), st.integers(0, 2**32))
def test_no_message_stops_a_worker_or_spoils_its_scorer(messages, seed):
    exchange, scorer = MemoryExchange(), new_pupil()
    rng = random.Random(seed)
    stream = [
        encode_example(ExampleMessage(9, 1, number, msgspec.Raw(pack(each))))
        for number, each in enumerate(a_crawls_lessons(30))
    ]
    for message in messages:
        stream.insert(rng.randrange(len(stream)), message)
    exchange.publish(stream)
    counts = learn_all(SharedLearning(scorer, exchange, MemoryStorage())).counts
    assert counts.learned >= 30
    assert counts.learned + counts.malformed + counts.repeated == len(stream)
    assert np.isfinite(scores_of(scorer)).all()


# Snapshots that cannot be used


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:50] + b"?" + data[51:],
        lambda data: bytes(100),
    ],
)
def test_a_damaged_snapshot_is_ignored(damage, caplog):
    exchange, storage = MemoryExchange(), MemoryStorage()
    publish(exchange, a_crawls_lessons(40))
    learn_all(SharedLearning(new_pupil(), exchange, storage)).save()
    (name,) = storage.objects
    storage.objects[name] = damage(storage.objects[name])
    joined = SharedLearning(scorer := new_pupil(), exchange, storage)
    assert not joined.restore()
    assert scorer.state() == new_pupil().state()
    assert "'learning/scorer'" in caplog.text
    assert learn_all(joined).counts.learned == 40


def test_a_snapshot_of_another_scorer_is_ignored(caplog):
    exchange, storage = MemoryExchange(), MemoryStorage()
    publish(exchange, named("a"))
    learn_all(SharedLearning(Pupil(), exchange, storage)).save()
    joined = SharedLearning(new_pupil(), exchange, storage)
    assert not joined.restore()
    assert "its scorer has other features" in caplog.text


def test_a_scorer_that_fails_to_restore_begins_anew(caplog):
    class Brittle(Pupil):
        def restore(self, state: bytes) -> None:
            if self.lessons == []:
                self.lessons.append(("half restored", "", 0.0))
                raise ValueError("another version")
            super().restore(state)

    exchange, storage, pupil = MemoryExchange(), MemoryStorage(), Brittle()
    publish(exchange, named("a"))
    learn_all(SharedLearning(Pupil(), exchange, storage)).save()
    assert not SharedLearning(pupil, exchange, storage).restore()
    assert pupil.lessons == []


def test_without_a_snapshot_a_worker_begins_with_the_stream():
    assert not SharedLearning(Pupil(), MemoryExchange(), MemoryStorage()).restore()


# From the partitions

A = "http://a.test/"


def two_hosts() -> dict:
    b = "http://b.test/"
    return site(
        page(A, b, A + "1", text="whale"),
        page(A + "1", text="trade"),
        page(b, b + "1", text="whales"),
        page(b + "1", text="more trade"),
    )


def test_examples_of_all_partitions_reach_every_worker(tmp_path):
    exchange = MemoryExchange()
    scorers = [Pupil(), Pupil()]
    driven = [DrivenPartition(tmp_path, number, 2, scorers[number]) for number in range(2)]
    for each in driven:
        each.seed(A, "http://b.test/")
        each.run(two_hosts())
        each.partition.send(exchange, each.now)
    assert all(each.urls for each in driven)
    assert scorers[0].heard == scorers[1].heard == []
    for scorer in scorers:
        learn_all(SharedLearning(scorer, exchange, MemoryStorage()))
    assert sorted(scorers[0].heard) == sorted(two_hosts())
    assert scorers[0].lessons == scorers[1].lessons
    for each in driven:
        assert len(each.examples) == 0
        each.close()


def test_examples_survive_a_crash_and_keep_their_numbers(tmp_path):
    exchange = MemoryExchange()
    driven = DrivenPartition(tmp_path, 0, 1, Pupil())
    driven.seed(A)
    driven.run(two_hosts())
    driven.partition.send(exchange, driven.now)
    driven.crawl.seed([A + "2"], driven.now)
    driven.run(site(page(A + "2", text="new")))
    driven.die()
    successor = DrivenPartition(tmp_path, 0, 1, Pupil(), token=2)
    assert len(successor.examples) == 1
    successor.partition.send(exchange, successor.now)
    successor.close()
    heard, learning = heard_of(exchange)
    assert sorted(heard) == sorted([*two_hosts(), A + "2"])
    assert (learning.counts.missed, learning.counts.repeated) == (0, 0)


def test_the_sample_of_examples_depends_on_their_urls_alone(tmp_path):
    driven = DrivenPartition(tmp_path, 0, 1, Pupil())
    rows = [pack(a_pupils_example(f"http://a.test/{number}")) for number in range(2_000)]
    driven.examples.probability = 0.25
    chosen = [driven.examples.add(row) for row in rows]
    assert 400 < sum(chosen) < 600
    assert [driven.examples.add(row) for row in rows] == chosen
    assert [number for number, _ in driven.examples.first(5)] == [0, 1, 2, 3, 4]
    driven.close()


def test_as_many_examples_are_shared_as_workers_may_learn():
    assert sharing_probability(50.0, 200.0) == 1.0
    assert sharing_probability(0.0) == 1.0
    assert sharing_probability(800.0, 200.0) == 0.25
