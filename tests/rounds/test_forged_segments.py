"""Segments whose checksums are right, but which no crawl wrote."""

import struct
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
import xxhash

from focused.errors import StateError
from focused.rounds import replication
from focused.rounds.replication import decode_segment
from focused.storage.state_store import StateStore

CHANGES = 300
BYTES = (0x00, 0x90, 0xC0, 0xDF, 0xFF)
"""Zero, and beginnings of other values in msgpack."""


def segment(raw: bytes, raw_bytes: int) -> bytes:
    packed = pa.compress(raw, codec="zstd", asbytes=True)
    checksum = xxhash.xxh3_64_intdigest(packed)
    head = replication._HEAD.pack(replication._MAGIC, 1, raw_bytes, len(packed), checksum)
    return head + struct.pack(">Q", xxhash.xxh3_64_intdigest(head)) + packed


@pytest.fixture
def commits(tmp_path: Path) -> bytes:
    """Commits as the content of a segment."""
    batches: list[bytes] = []
    store = StateStore.open(tmp_path / "source", {})
    store.on_commit(batches.append)
    for number in range(5):
        store.tables.put("pages", bytes([number] * 8), b"row" * number)
        store.tables.put_meta("counters", {"fetched": number})
        store.tables.add("queue", b"all", b"member-%d" % number)
        store.commit()
    store.close()
    return b"".join(struct.pack(">I", len(each)) + each for each in batches)


@pytest.mark.parametrize("raw_bytes", [0, 1, 2**48, 2**63, 2**64 - 1])
def test_a_length_that_is_not_the_contents_is_damage(commits, raw_bytes):
    with pytest.raises(ValueError, match="length"):
        decode_segment(1, segment(commits, raw_bytes))


def test_whatever_commits_say_is_replayed_or_damage(commits, tmp_path):
    random = Random(1)
    for number in range(CHANGES):
        raw = bytearray(commits)
        if number % 4:
            for _ in range(random.choice([1, 1, 4])):
                raw[random.randrange(len(raw))] = random.choice(BYTES)
        else:
            raw = raw[: random.randrange(len(raw))] + random.randbytes(random.randrange(12))
        try:
            batches = decode_segment(1, segment(bytes(raw), len(raw)))
        except ValueError:
            continue
        store = StateStore.open(tmp_path / "copy", {})
        try:
            store.replay(batches)
        except StateError:
            pass
        finally:
            store.abandon()
