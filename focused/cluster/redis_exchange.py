"""The exchange over Redis streams."""

from __future__ import annotations

from collections.abc import Sequence

from focused.cluster.exchange import MAX_PUBLISHED, StreamEntry, check_length
from focused.cluster.redis_connection import LuaScript, RedisConnection, crawl_key
from focused.errors import ExchangeError

_BATCH = "batch"
_WAITING = LuaScript("""
if ARGV[1] == '' then return redis.call('XLEN', KEYS[1]) end
return redis.call('XLEN', KEYS[1]) - #redis.call('XRANGE', KEYS[1], '-', ARGV[1])
""")


class RedisExchange:
    """An :class:`focused.cluster.exchange.Exchange` of one crawl in Redis 7 or later.

    The streams of the partitions are spread over the servers of a cluster. Positions grow with the
    server's clock: the clocks of a master and its replica may differ by less than a failover takes.
    """

    def __init__(
        self, connection: RedisConnection, crawl: str, *, max_published: int = MAX_PUBLISHED
    ) -> None:
        self._redis = connection.raising(ExchangeError)
        self._crawl = crawl
        self._to_all = crawl_key(crawl, "all", "messages")
        self._max_published = max_published
        self._trimmed: dict[int, str] = {}
        """The position up to which each stream was trimmed last."""

    def send(self, to: int, batch: bytes) -> None:
        """Append a batch to a partition's stream."""
        self.send_all([(to, batch)])

    def send_all(self, batches: Sequence[tuple[int, bytes]]) -> None:
        """Append batches, each to the stream of its partition; replicas have them, too."""
        commands = []
        for to, batch in batches:
            check_length(batch)
            stream = self._stream(to)
            commands.append((stream, ("XADD", stream, "*", _BATCH, batch)))
        self._redis.execute_all(commands)

    def receive(self, partition: int, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the next batches after a position, at most ``limit``."""
        return self._entries(self._stream(partition), after, limit)

    def trim(self, partition: int, up_to: str) -> None:
        """Remove batches up to and including a position."""
        if not up_to or self._trimmed.get(partition) == up_to:
            return
        milliseconds, _, sequence = up_to.partition("-")
        following = f"{milliseconds}-{int(sequence) + 1}"
        self._redis.execute("XTRIM", self._stream(partition), "MINID", "=", following)
        self._trimmed[partition] = up_to

    def waiting(self, partition: int, after: str) -> int:
        """Return how many batches follow a position."""
        return int(self._redis.evaluate(_WAITING, [self._stream(partition)], [after]))

    def memory(self, partition: int) -> int:
        """Return about how many bytes of memory a partition's stream takes."""
        return int(self._redis.execute("MEMORY", "USAGE", self._stream(partition)) or 0)

    def publish(self, messages: Sequence[bytes]) -> None:
        """Append messages to the stream that all workers read, and trim it to its length."""
        stream, limit = self._to_all, ("MAXLEN", "~", self._max_published)
        self._redis.execute_all(
            [(stream, ("XADD", stream, *limit, "*", _BATCH, message)) for message in messages]
        )

    def published(self, after: str, limit: int) -> Sequence[StreamEntry]:
        """Return the messages to all workers after a position, at most ``limit``."""
        return self._entries(self._to_all, after, limit)

    def _entries(self, stream: str, after: str, limit: int) -> Sequence[StreamEntry]:
        start = f"({after}" if after else "-"
        return [
            StreamEntry(position.decode(), fields.get(_BATCH.encode(), b""))
            for position, fields in self._redis.execute(
                "XRANGE", stream, start, "+", "COUNT", limit
            )
        ]

    def _stream(self, partition: int) -> str:
        return crawl_key(self._crawl, partition, "links")
