"""Duplicates of other partitions are found among what they claimed in earlier rounds."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from focused.rounds.shared_contents import RoundContents
from focused.storage.state_store import StateStore
from tests.rounds.partitions import partition_of_host


@pytest.fixture
def contents(tmp_path: Path) -> Iterator[list[RoundContents]]:
    stores = [StateStore.open(tmp_path / name, {}) for name in ("a", "b")]
    owner_of = partition_of_host(2)
    yield [RoundContents(store.tables, number, owner_of) for number, store in enumerate(stores)]
    for store in stores:
        store.close()


def deliver(sender: RoundContents, receiver: RoundContents) -> None:
    receiver.deliver(rows_of(sender))


def rows_of(contents: RoundContents) -> list[bytes]:
    return [row for _, row in contents.claims.first()]


def test_a_duplicate_is_not_claimed(contents):
    one, other = contents
    one.claim(b"content", "http://a.test/", None)
    deliver(one, other)
    other.claim(b"content", "http://b.test/", None)
    assert len(other.claims) == 0


def test_claims_of_one_round_do_not_meet(contents):
    one, other = contents
    assert one.claim(b"content", "http://a.test/", None) is None
    assert other.claim(b"content", "http://b.test/", None) is None
    deliver(one, other)
    deliver(other, one)
    assert one.claim(b"content", "http://a.test/", None) is not None


def test_own_claims_are_not_those_of_others(contents):
    one, _ = contents
    one.claim(b"content", "http://a.test/", None)
    deliver(one, one)
    assert one.claim(b"content", "http://a.test/moved", None) is None


def test_delivering_twice_changes_nothing(contents):
    one, other = contents
    one.claim(b"content", "http://a.test/", None)
    deliver(one, other)
    deliver(one, other)
    match = other.claim(b"content", "http://b.test/", None)
    assert match is not None
    assert match.of == "http://a.test/"


def test_confirmed_claims_are_not_sent_again(contents):
    one, _ = contents
    for number in range(3):
        one.claim(b"content %d" % number, f"http://a.test/{number}", None)
    sent = one.claims.first()
    one.claims.remove([number for number, _ in sent[:2]])
    assert one.claims.first() == sent[2:]


encode = msgspec.msgpack.encode


@pytest.mark.parametrize(
    "malformed",
    [
        b"?",
        encode((b"content", b"?", [], b"url", 0)),
        encode((b"content", encode(("http://a.test/", 1, b"12345")), [], b"url", 0)),
    ],
    ids=["claim", "record", "sketch"],
)
def test_malformed_claims_are_skipped(contents, malformed):
    one, other = contents
    one.claim(b"content", "http://a.test/", None)
    other.deliver([malformed, *rows_of(one)])
    match = other.claim(b"content", "http://b.test/", None)
    assert match is not None
    assert match.of == "http://a.test/"
