"""The driver trains one scorer on the examples of all partitions."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.protocols import TrainingExample, decode_example
from focused.rounds.learning import SharedLearning, encode_example, sharing_probability
from focused.rounds.manifest import EXAMPLES
from focused.rounds.storage import SharedStorage
from focused.storage.rows import pack
from tests.link_scoring.apprentices import LINKS, examples_of_a_crawl, new_apprentice, seen
from tests.rounds.partitions import DrivenPartition
from tests.support.simple_learner import SimpleLearner
from tests.support.simulated import page, site

SNAPSHOT = "learning/scorer"


@pytest.fixture
def storage(tmp_path: Path) -> SharedStorage:
    return SharedStorage(f"file://{tmp_path}", "shared")


def messages(
    examples: Iterable[TrainingExample], *, sender: int = 0, first: int = 0
) -> list[bytes]:
    return [
        encode_example(sender, number, pack(each)) for number, each in enumerate(examples, first)
    ]


def learn_all(learning: SharedLearning, stream: Iterable[bytes]) -> SharedLearning:
    for message in stream:
        learning.take(message)
    return learning


def scores_of(scorer: Apprentice) -> tuple[list[float], list[float]]:
    """The scores of links of a new page, and of queued links."""
    found = scorer.score_merged(seen(0.7), LINKS, [None] * len(LINKS))
    again = scorer.rescore([_Queued(each) for each in examples_of_a_crawl(15, seed=9)])
    return [each.rank_score for each in found], [each.rank_score for each in again]


class _Queued:
    def __init__(self, example: TrainingExample) -> None:
        self.url, self.anchor, self.parent = example.url, example.anchor, example.parent
        self.tag_path_key, self.features = example.tag_path_key, example.features
        self.found_at = 0.0


# Snapshots


def test_the_driver_learns_what_a_single_crawl_would(storage):
    shared, single = new_apprentice(), new_apprentice()
    examples = examples_of_a_crawl(100)
    learn_all(SharedLearning(shared, storage), messages(examples))
    for each in examples:
        single.learn(decode_example(pack(each)))
    assert scores_of(shared) == scores_of(single) != scores_of(new_apprentice())


def test_a_partition_scores_links_as_the_driver_that_stored_the_snapshot(storage):
    one, other = new_apprentice(), new_apprentice()
    examples = examples_of_a_crawl(300)
    learning = learn_all(SharedLearning(one, storage), messages(examples[:150], sender=0))
    learn_all(learning, messages(examples[150:], sender=1)).save()
    assert SharedLearning(other, storage).restore()
    assert scores_of(other) == scores_of(one)
    assert other.state() == one.state()


def test_a_new_driver_goes_on_with_the_snapshot(storage):
    one, successor = new_apprentice(), new_apprentice()
    stream = messages(examples_of_a_crawl(330))
    learning = learn_all(SharedLearning(one, storage), stream[:300])
    learning.save()
    learn_all(learning, stream[300:])
    late = SharedLearning(successor, storage)
    late.restore()
    learn_all(late, stream[290:])
    assert scores_of(successor) == scores_of(one)


# Skipped


def a_pupils_example(url: str = "http://a.test/", relevance: float = 0.5) -> TrainingExample:
    return TrainingExample(url, "", "", 7, (0.5, 0.5), relevance)


def named(*urls: str) -> list[TrainingExample]:
    return [a_pupils_example(url) for url in urls]


def heard_of(storage: SharedStorage, stream: list[bytes]) -> list[str]:
    learner = SimpleLearner()
    learn_all(SharedLearning(learner, storage), stream)
    return learner.learned_here


def test_an_example_that_is_sent_twice_is_learned_once(storage):
    stream = messages(named("a", "b")) + messages(named("a", "b", "c"))
    assert heard_of(storage, stream) == ["a", "b", "c"]


def test_examples_of_several_partitions_are_numbered_apart(storage):
    stream = messages(named("a"), sender=0) + messages(named("b"), sender=1)
    assert heard_of(storage, stream) == ["a", "b"]


def test_an_example_of_another_version_is_skipped(storage, caplog):
    (url, *rest) = msgspec.msgpack.decode(msgspec.msgpack.encode(named("b")[0]))
    of_old = encode_example(0, 1, msgspec.msgpack.encode([url, *rest[:4], b"words", *rest[4:]]))
    assert heard_of(storage, [of_old, *messages(named("a"))]) == ["a"]
    assert "an example is not used for training" in caplog.text


def test_an_example_that_the_scorer_cannot_use_is_skipped(storage, caplog):
    class Brittle(SimpleLearner):
        def learn(self, example):
            if example.url == "b":
                raise ValueError("no b")
            super().learn(example)

    learner = Brittle()
    learn_all(SharedLearning(learner, storage), messages(named("a", "b", "c")))
    assert learner.learned_here == ["a", "c"]
    assert "b could not be used for training" in caplog.text


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
def test_a_damaged_snapshot_is_ignored(storage, damage, caplog):
    stream = messages(examples_of_a_crawl(40))
    learn_all(SharedLearning(driver := new_apprentice(), storage), stream).save()
    storage.write(SNAPSHOT, damage(storage.read(SNAPSHOT)))
    joined = SharedLearning(scorer := new_apprentice(), storage)
    assert not joined.restore()
    assert scorer.state() == new_apprentice().state()
    (record,) = caplog.records
    assert f"{storage.name_of(SNAPSHOT)}: the link scorer's snapshot is ignored" in record.message
    assert record.exc_info is None
    learn_all(joined, stream)
    assert scores_of(scorer) == scores_of(driver)


def test_a_snapshot_of_another_scorer_is_ignored(storage, caplog):
    learn_all(SharedLearning(SimpleLearner(), storage), messages(named("a"))).save()
    assert not SharedLearning(new_apprentice(), storage).restore()
    assert "its scorer has other features" in caplog.text


def test_a_scorer_that_fails_to_restore_goes_on_with_the_snapshot_before(storage):
    class Brittle(SimpleLearner):
        fails = False

        def restore(self, state: bytes) -> None:
            if self.fails:
                self.fails = False
                self.examples.append(("half restored", "", 0.0))
                raise ValueError("another version")
            super().restore(state)

    driver = SharedLearning(SimpleLearner(), storage)
    learn_all(driver, messages(named("a"))).save()
    partition = SharedLearning(learner := Brittle(), storage)
    assert partition.restore()
    learn_all(driver, messages(named("b"), first=1)).save()
    learner.fails = True
    assert not partition.restore()
    assert [example[0] for example in learner.examples] == ["a"]


def test_without_a_snapshot_nothing_is_restored(storage):
    assert not SharedLearning(SimpleLearner(), storage).restore()


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


def collect(driven: DrivenPartition) -> list[bytes]:
    outgoing = driven.partition.collect(100, 100)
    driven.partition.confirm(outgoing, driven.now)
    return [*outgoing.sections[EXAMPLES]]


def test_each_partition_learns_from_its_pages_and_the_driver_from_all(tmp_path, storage):
    stream = []
    for number in range(2):
        driven = DrivenPartition(tmp_path, number, 2, scorer := SimpleLearner())
        driven.seed(A, "http://b.test/")
        driven.run(two_hosts())
        assert scorer.learned_here == driven.urls
        stream += collect(driven)
        assert len(driven.examples.rows) == 0
        driven.close()
    assert sorted(heard_of(storage, stream)) == sorted(two_hosts())


def test_examples_survive_a_crash_and_keep_their_numbers(tmp_path, storage):
    driven = DrivenPartition(tmp_path, 0, 1, SimpleLearner())
    driven.seed(A)
    driven.run(two_hosts())
    stream = collect(driven)
    driven.crawl.seed([A + "2"], driven.now)
    driven.run(site(page(A + "2", text="new")))
    driven.die()
    successor = DrivenPartition(tmp_path, 0, 1, SimpleLearner())
    assert len(successor.examples.rows) == 1
    stream += collect(successor)
    successor.close()
    assert sorted(heard_of(storage, stream)) == sorted([*two_hosts(), A + "2"])


def test_the_sample_of_examples_depends_on_their_urls_alone(tmp_path):
    driven = DrivenPartition(tmp_path, 0, 1, SimpleLearner())
    rows = [pack(a_pupils_example(f"http://a.test/{number}")) for number in range(2_000)]
    driven.examples.probability = 0.25
    chosen = [driven.examples.add(row) for row in rows]
    assert 400 < sum(chosen) < 600
    assert [driven.examples.add(row) for row in rows] == chosen
    assert [number for number, _ in driven.examples.rows.first(5)] == [0, 1, 2, 3, 4]
    driven.close()


def test_as_many_examples_are_shared_as_the_driver_may_learn():
    assert sharing_probability(50.0) == 1.0
    assert sharing_probability(0.0) == 1.0
    assert sharing_probability(800.0) == 0.25
