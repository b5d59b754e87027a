"""Row format: MessagePack arrays without field names, followed by a four-byte checksum.

Lone surrogates, which UTF-8 cannot encode, become question marks. LMDB has no checksums; ours cover
table, key and value, so a row that is damaged or under a wrong key is detected.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from xxhash import xxh3_64_digest, xxh32_intdigest

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def pack(value: Any) -> bytes:
    """Encode structs, lists, maps, numbers, texts and bytes."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(
            _replace_surrogates(msgspec.to_builtins(value, builtin_types=(bytes,)))
        )


def unpack(row: bytes) -> Any:
    """Decode a row; structs come as lists."""
    return _decoder.decode(row)


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_replace_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()}
    return value


CHECKSUM_BYTES = 4


@cache
def checksum_seed(table: str) -> int:
    """Return the checksum seed of a table."""
    return xxh32_intdigest(table.encode())


def add_checksum(seed: int, key: bytes, value: bytes) -> bytes:
    """Append the checksum to a value."""
    return value + xxh3_64_digest(key + value, seed)[CHECKSUM_BYTES:]


def verify_checksum(seed: int, key: bytes, stored: bytes) -> bytes | None:
    """Return the value without its checksum; None when that is wrong."""
    value, checksum = stored[:-CHECKSUM_BYTES], stored[-CHECKSUM_BYTES:]
    is_right = checksum == xxh3_64_digest(key + value, seed)[CHECKSUM_BYTES:]
    return value if is_right else None
