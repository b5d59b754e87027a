"""The exchange over Redis streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from redis import Redis, RedisCluster
from redis.exceptions import RedisError

from focused.cluster.exchange import MAX_PUBLISHED, StreamEntry
from focused.errors import ExchangeError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_BATCH = b"batch"
_MAX_COUNTED = 10_000


class RedisExchange:
    """An :class:`focused.cluster.exchange.Exchange` of one crawl in Redis 7 or later.

    The stream of a partition and its other keys share a hash slot: ``{crawl:7}``.
    """

    def __init__(
        self, redis: Redis | RedisCluster, crawl: str, *, max_published: int = MAX_PUBLISHED
    ) -> None:
        self._redis: Any = redis
        self._crawl = crawl
        self._max_published = max_published

    def send(self, to: int, batch: bytes) -> None:
        """Append a batch to a partition's stream."""
        _translated(self._redis.xadd, self._stream(to), {_BATCH: batch})

    def receive(self, partition: int, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the next batches after a position, at most ``limit``."""
        return [
            StreamEntry(position.decode(), fields.get(_BATCH, b""))
            for position, fields in self._after(partition, after, limit)
        ]

    def trim(self, partition: int, up_to: str) -> None:
        """Remove batches up to and including a position."""
        milliseconds, _, sequence = up_to.partition("-")
        following = f"{milliseconds}-{int(sequence) + 1}"
        _translated(self._redis.xtrim, self._stream(partition), minid=following, approximate=False)

    def waiting(self, partition: int, after: str) -> int:
        """Return how many batches follow a position, at most 10,000."""
        return len(self._after(partition, after, _MAX_COUNTED))

    def publish(self, messages: Sequence[bytes]) -> None:
        """Append messages to the stream that all workers read, and trim it to its length."""
        pipeline = self._redis.pipeline(transaction=False)
        for message in messages:
            fields = {_BATCH: message}
            pipeline.xadd(self._to_all, fields, maxlen=self._max_published, approximate=True)
        _translated(pipeline.execute)

    def published(self, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the messages to all workers after a position, at most ``limit``."""
        start = f"({after}" if after else "-"
        entries = _translated(self._redis.xrange, self._to_all, start, "+", limit)
        return [
            StreamEntry(position.decode(), fields.get(_BATCH, b"")) for position, fields in entries
        ]

    @property
    def _to_all(self) -> str:
        return f"focused:{{{self._crawl}}}:examples"

    def _after(self, partition: int, after: str, limit: int) -> Any:
        start = f"({after}" if after else "-"
        return _translated(self._redis.xrange, self._stream(partition), start, "+", limit)

    def _stream(self, partition: int) -> str:
        return f"focused:{{{self._crawl}:{partition}}}:links"


def _translated(command: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    try:
        return command(*args, **kwargs)
    except RedisError as error:
        raise ExchangeError(f"Redis: {error}") from error
