"""Shared contents in Redis.

Each content is a key of its own, so that contents are spread over the servers of a cluster. Index
and URLs are in small hashes and sets, which Redis stores without an object per entry.
"""

from __future__ import annotations

from collections.abc import Sequence

from focused.cluster.redis_connection import RedisConnection, crawl_key
from focused.cluster.shared_contents import INDEXED_HASHES, Claim, ClaimAnswer
from focused.durations import DAY_S
from focused.errors import ExchangeError

EXPIRE_S = 30 * DAY_S
"""How long a content is known: what a crawl leaves behind goes away by itself."""
_BUCKET_BYTES = 2


class RedisContentStore:
    """A :class:`focused.cluster.shared_contents.ContentStore` of one crawl in Redis 7 or later."""

    def __init__(
        self, connection: RedisConnection, crawl: str, *, expire_s: float = EXPIRE_S
    ) -> None:
        self._redis = connection.raising(ExchangeError)
        self._crawl = crawl
        self._expire_s = int(expire_s)

    def claim(self, claim: Claim) -> ClaimAnswer:
        """Store record, index entries and URL, unless they are taken; look up all hashes before."""
        content, urls = self._content(claim.key), self._bucket("urls", claim.url_key)
        looked_up, indexed = claim.hashes, claim.hashes[:INDEXED_HASHES]
        commands: list[tuple[str | bytes | int, ...]] = [
            ("SET", content, claim.record, "NX", "EX", self._expire_s),
            ("GET", content),
            *(("HGET", *self._entry(each)) for each in looked_up),
            *(("HSETNX", *self._entry(each), claim.key) for each in indexed),
            ("SADD", urls, _number(claim.url_key)),
        ]
        buckets = (urls, *(self._entry(each)[0] for each in indexed))
        commands += [("EXPIRE", bucket, self._expire_s) for bucket in buckets]
        _, record, *answers = self._redis.execute_many(commands)
        similar = [key for key in answers[: len(looked_up)] if key is not None]
        is_new = answers[len(looked_up) : len(looked_up) + len(indexed)]
        new = [each for each, added in zip(indexed, is_new, strict=True) if added]
        return ClaimAnswer(claim.record if record is None else record, similar, new)

    def retract(self, url_key: bytes, indexed: Sequence[bytes]) -> None:
        """Remove the URL and index entries of a claim: its page is a duplicate."""
        self._redis.execute_many(
            [
                ("SREM", self._bucket("urls", url_key), _number(url_key)),
                *(("HDEL", *self._entry(each)) for each in indexed),
            ]
        )

    def records(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """Return the records of those keys that have one."""
        found = self._redis.execute_many([("GET", self._content(key)) for key in keys])
        return [record for record in found if record is not None]

    def has_url(self, url_key: bytes) -> bool:
        """Whether an original has the URL."""
        bucket = self._bucket("urls", url_key)
        return bool(self._redis.execute("SISMEMBER", bucket, _number(url_key)))

    def _content(self, key: bytes) -> str:
        return crawl_key(self._crawl, key.hex(), "content")

    def _entry(self, shingle: bytes) -> tuple[str, bytes]:
        return self._bucket("shingles", shingle), shingle[_BUCKET_BYTES:]

    def _bucket(self, name: str, key: bytes) -> str:
        return crawl_key(self._crawl, f"x{key[:_BUCKET_BYTES].hex()}", name)


def _number(key: bytes) -> int:
    """A signed 32-bit integer: Redis stores a set of them in four bytes each."""
    return int.from_bytes(key[_BUCKET_BYTES:], "big", signed=True)
