"""Shared contents in Redis.

A content is a key of its own, so that contents are spread over all nodes of a Redis Cluster. Index
and URLs are in small hashes and sets, which Redis stores without an object per entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis import Redis, RedisCluster
from redis.exceptions import RedisClusterException, RedisError

from focused.cluster.shared_contents import INDEXED_HASHES, Claim, ClaimAnswer
from focused.durations import DAY_S
from focused.errors import ExchangeError

EXPIRE_S = 30 * DAY_S
"""How long a content is known: what a crawl leaves behind goes away by itself."""
_BUCKET_BYTES = 2


class RedisContentStore:
    """A :class:`focused.cluster.shared_contents.ContentStore` of one crawl in Redis 7 or later."""

    def __init__(
        self, redis: Redis | RedisCluster, crawl: str, *, expire_s: float = EXPIRE_S
    ) -> None:
        self._redis: Any = redis
        self._prefix = f"focused:{crawl}:".encode()
        self._expire_s = int(expire_s)

    def claim(self, claim: Claim) -> ClaimAnswer:
        """Store record, index entries and URL, unless they are taken; look up all hashes before."""
        looked_up, indexed = claim.hashes, claim.hashes[:INDEXED_HASHES]
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.set(self._content(claim.key), claim.record, nx=True, get=True, ex=self._expire_s)
        for each in looked_up:
            pipeline.hget(self._bucket(b"shingles", each), each[_BUCKET_BYTES:])
        for each in indexed:
            pipeline.hsetnx(self._bucket(b"shingles", each), each[_BUCKET_BYTES:], claim.key)
        urls = self._bucket(b"urls", claim.url_key)
        pipeline.sadd(urls, _number(claim.url_key))
        for bucket in (urls, *(self._bucket(b"shingles", each) for each in indexed)):
            pipeline.expire(bucket, self._expire_s)
        original, *answers = _execute(pipeline)
        similar = [key for key in answers[: len(looked_up)] if key is not None]
        new = [
            each for each, is_new in zip(indexed, answers[len(looked_up) :], strict=False) if is_new
        ]
        return ClaimAnswer(original, similar, new)

    def retract(self, url_key: bytes, indexed: Sequence[bytes]) -> None:
        """Remove the URL and index entries of a claim: its page is a duplicate."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.srem(self._bucket(b"urls", url_key), _number(url_key))
        for each in indexed:
            pipeline.hdel(self._bucket(b"shingles", each), each[_BUCKET_BYTES:])
        _execute(pipeline)

    def records(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """Return the records of those keys that have one."""
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            pipeline.get(self._content(key))
        return [record for record in _execute(pipeline) if record is not None]

    def has_url(self, url_key: bytes) -> bool:
        """Whether an original has the URL."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.sismember(self._bucket(b"urls", url_key), _number(url_key))
        return bool(_execute(pipeline)[0])

    def _content(self, key: bytes) -> bytes:
        return self._prefix + b"content:" + key

    def _bucket(self, kind: bytes, key: bytes) -> bytes:
        return self._prefix + kind + b":" + key[:_BUCKET_BYTES]


def _number(key: bytes) -> int:
    """A signed 32-bit integer: Redis stores a set of them in four bytes each."""
    return int.from_bytes(key[_BUCKET_BYTES:], "big", signed=True)


def _execute(pipeline: Any) -> Any:
    try:
        return pipeline.execute()
    except (RedisError, RedisClusterException) as error:
        raise ExchangeError(f"Redis: {error}") from error
