"""How rows are written: MessagePack, arrays without field names.

Text of the web may hold lone surrogates, which no UTF-8 can write: they
become question marks, in that row alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def pack(value: Any) -> bytes:
    """Write structs, lists, maps, numbers, texts and bytes."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_writable(msgspec.to_builtins(value, builtin_types=(bytes,))))


def unpack(row: bytes) -> Any:
    """Read a row back; structs come as lists."""
    return _decoder.decode(row)


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_writable(each) for each in value]
    if isinstance(value, dict):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return value
