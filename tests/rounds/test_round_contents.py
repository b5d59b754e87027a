"""Duplicates of other partitions are found among what they claimed in earlier rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.rounds.contents import RoundContents
from focused.rounds.shared_contents import Claim, ContentRegistry
from focused.storage.state_store import StateStore


@pytest.fixture
def contents(tmp_path: Path) -> Iterator[list[RoundContents]]:
    stores = [StateStore.open(tmp_path / name, {}) for name in ("a", "b")]
    yield [RoundContents(store.tables, number) for number, store in enumerate(stores)]
    for store in stores:
        store.close()


def registry(contents: RoundContents, partition: int) -> ContentRegistry:
    return ContentRegistry(contents, partition, lambda host, key: 0 if host == "a.test" else 1)


def deliver(sender: RoundContents, receiver: RoundContents) -> None:
    receiver.deliver(sender.collect())


def test_a_content_that_another_partition_claimed_before_is_a_duplicate(
    contents: list[RoundContents],
) -> None:
    one, other = contents
    assert registry(one, 0).claim(b"content", "http://a.test/", None) is None
    deliver(one, other)
    match = registry(other, 1).claim(b"content", "http://b.test/", None)
    assert match is not None
    assert match.of == "http://a.test/"
    assert registry(other, 1).is_original("http://a.test/")


def test_a_duplicate_is_not_claimed(contents: list[RoundContents]) -> None:
    one, other = contents
    registry(one, 0).claim(b"content", "http://a.test/", None)
    deliver(one, other)
    registry(other, 1).claim(b"content", "http://b.test/", None)
    assert other.collect() == []


def test_claims_of_one_round_do_not_meet(contents: list[RoundContents]) -> None:
    one, other = contents
    assert registry(one, 0).claim(b"content", "http://a.test/", None) is None
    assert registry(other, 1).claim(b"content", "http://b.test/", None) is None
    deliver(one, other)
    deliver(other, one)
    assert registry(one, 0).claim(b"content", "http://a.test/", None) is not None


def test_own_claims_are_not_those_of_others(contents: list[RoundContents]) -> None:
    one, _ = contents
    registry(one, 0).claim(b"content", "http://a.test/", None)
    deliver(one, one)
    assert registry(one, 0).claim(b"content", "http://a.test/moved", None) is None


def test_delivering_twice_changes_nothing(contents: list[RoundContents]) -> None:
    one, other = contents
    registry(one, 0).claim(b"content", "http://a.test/", None)
    deliver(one, other)
    deliver(one, other)
    match = registry(other, 1).claim(b"content", "http://b.test/", None)
    assert match is not None
    assert match.of == "http://a.test/"


def test_confirmed_claims_are_not_sent_again(contents: list[RoundContents]) -> None:
    one, _ = contents
    for number in range(3):
        registry(one, 0).claim(b"content %d" % number, f"http://a.test/{number}", None)
    sent = one.collect()
    one.confirm(2)
    assert one.collect() == sent[2:]


def test_similar_contents_are_found_by_their_hashes(contents: list[RoundContents]) -> None:
    one, other = contents
    one.claim(Claim(b"key", b"record", [b"hash 1", b"hash 2"], b"url"))
    deliver(one, other)
    answer = other.claim(Claim(b"other", b"own record", [b"hash 2", b"hash 3"], b"url 2"))
    assert answer.similar == [b"key"]
    assert other.records(answer.similar) == [b"record"]
