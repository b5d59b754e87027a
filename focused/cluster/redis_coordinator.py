"""The coordinator and the pace leases in Redis.

All keys of a crawl's coordination share a hash slot, so each call is one operation, and grants
cannot exceed the budget. The pace leases have a slot of their own. Redis measures all times.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from focused.cluster.coordinator import (
    ASK_AGAIN_S,
    LEASE_S,
    ClusterState,
    PartitionLease,
    PartitionStatus,
    WorkerCommand,
    WorkerStatus,
)
from focused.cluster.redis_connection import (
    LuaScript,
    RedisConnection,
    crawl_key,
)
from focused.errors import CoordinationError

logger = logging.getLogger(__name__)


_FAIL_FOR_S = 2.0
_MAX_COUNT = 10**15
"""Above it Lua, which counts in floating point, would soon lose digits."""
_COUNT = """
local function count(text)
  if text and #text <= 15 and string.match(text, '^%d+$') then return tonumber(text) end
  return 0
end
"""
_HEARTBEAT = LuaScript("""
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[1])
redis.call('SADD', KEYS[2], ARGV[2])
return redis.call('PEXPIRE', KEYS[3], ARGV[1])
""")
_FORGET = LuaScript("""
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('SREM', KEYS[1], ARGV[i - 1]) end
end
""")
_LEAVE = LuaScript("""
redis.call('DEL', KEYS[1], KEYS[3])
redis.call('SREM', KEYS[2], ARGV[1])
if redis.call('GET', KEYS[4]) == ARGV[1] then redis.call('DEL', KEYS[4]) end
""")
_DRAIN = LuaScript("""
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('SET', KEYS[2], '1', 'PX', ARGV[1]) end
""")
_CLAIM = LuaScript(
    _COUNT
    + """
local held = redis.call('GET', KEYS[1])
local worker = held and string.match(held, '^%d+ (.+)$')
if worker and worker ~= ARGV[2] and redis.call('PTTL', KEYS[1]) > 0 then return false end
local token = math.max(count(redis.call('HGET', KEYS[2], ARGV[1])), count(ARGV[3])) + 1
redis.call('HSET', KEYS[2], ARGV[1], string.format('%d', token))
redis.call('SET', KEYS[1], string.format('%d ', token) .. ARGV[2], 'PX', ARGV[4])
return token
"""
)
_RENEW = LuaScript("""
local held = {}
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
    held[#held + 1] = i
  end
end
return held
""")
_RELEASE = LuaScript("""
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
""")
_REPORT = LuaScript(
    _COUNT
    + """
for i = 1, #ARGV, 3 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i])
  if count(stored and string.match(stored, '^%d+')) <= count(ARGV[i + 1]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
  end
end
"""
)
_LEAD = LuaScript("""
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] and redis.call('PTTL', KEYS[1]) > 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""")
_GRANT = LuaScript(
    _COUNT
    + """
local left = count(ARGV[1])
for _, pages in ipairs(redis.call('HVALS', KEYS[1])) do left = left - count(pages) end
local granted = {}
for i = 2, #ARGV, 2 do
  local share = math.max(math.min(count(ARGV[i + 1]), left), 0)
  if share > 0 then
    local pages = count(redis.call('HGET', KEYS[1], ARGV[i])) + share
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%d', pages))
  end
  left = left - share
  granted[#granted + 1] = share
end
return granted
"""
)
_GIVE_BACK = LuaScript(
    _COUNT
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return end
if count(redis.call('HGET', KEYS[2], ARGV[2])) > count(ARGV[3]) then
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
end
"""
)
_SET_STATE = LuaScript("""
if redis.call('HGET', KEYS[1], 'state') ~= ARGV[3] or ARGV[1] == ARGV[4] then
  redis.call('HSET', KEYS[1], 'state', ARGV[1], 'reason', ARGV[2])
end
""")
_REBALANCE = LuaScript(
    _COUNT
    + """
local generation = count(redis.call('HGET', KEYS[1], 'generation')) + 1
redis.call('HSET', KEYS[1], 'generation', string.format('%d', generation))
"""
)
_PACE = LuaScript("""
local finishes = tonumber(ARGV[3])
for i = 1, finishes do
  local key = KEYS[i]
  local holder, delay = ARGV[2 + 2 * i], tonumber(ARGV[3 + 2 * i])
  if redis.call('GET', key) == holder then
    if delay > 0 then redis.call('SET', key, '', 'PX', delay) else redis.call('DEL', key) end
  end
end
local wait = 0
for i = finishes + 1, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= ARGV[1] then
    local left = redis.call('PTTL', KEYS[i])
    if holder ~= '' then left = math.min(left, tonumber(ARGV[4 + 2 * finishes])) end
    wait = math.max(wait, left)
  end
end
if wait == 0 then
  for i = finishes + 1, #KEYS do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
end
return wait
""")

_encode_worker = msgspec.json.Encoder().encode
_decode_worker = msgspec.json.Decoder(WorkerStatus).decode
_encode_status = msgspec.msgpack.Encoder().encode
_decode_status = msgspec.msgpack.Decoder(PartitionStatus).decode


class RedisCoordinator:
    """A :class:`~focused.cluster.coordinator.Coordinator` in Redis 7 or later.

    A value that is malformed counts as absent; ``malformed`` counts them.
    """

    def __init__(self, connection: RedisConnection, crawl: str, lease_s: float = LEASE_S) -> None:
        self.lease_s = lease_s
        self.malformed = 0
        self._redis = connection.raising(CoordinationError)
        self._crawl = crawl
        self._lease_ms = _milliseconds(lease_s)

    def heartbeat(self, status: WorkerStatus) -> None:
        """Join, or renew the membership."""
        name = status.name
        keys = [self._worker(name), self._key("workers"), self._draining(name)]
        self._redis.evaluate(_HEARTBEAT, keys, [self._lease_ms, name, _encode_worker(status)])

    def leave(self, worker: str) -> None:
        """End the membership of a worker."""
        keys = [self._worker(worker), self._key("workers"), self._draining(worker)]
        self._redis.evaluate(_LEAVE, [*keys, self._key("leader")], [worker])

    def workers(self) -> Mapping[str, WorkerStatus]:
        """Return the members by name."""
        names = sorted(map(_text, self._redis.execute("SMEMBERS", self._key("workers"))))
        if not names:
            return {}
        keys = list(map(self._worker, names))
        values = self._redis.execute("MGET", *keys)
        if None in values:
            gone = [n for n, value in enumerate(values) if value is None]
            forgotten = [self._key("workers"), *(keys[n] for n in gone)]
            self._redis.evaluate(_FORGET, forgotten, [names[n] for n in gone])
        return {
            name: status
            for name, value in zip(names, values, strict=True)
            if value is not None and (status := self._worker_of(name, value)) is not None
        }

    def drain(self, worker: str) -> None:
        """Ask a member to give its partitions away and to leave."""
        self._redis.evaluate(
            _DRAIN, [self._worker(worker), self._draining(worker)], [self._lease_ms]
        )

    def is_draining(self, worker: str) -> bool:
        """Whether :meth:`drain` was called for a member."""
        return bool(self._redis.execute("EXISTS", self._draining(worker)))

    def claim(self, partition: int, worker: str, *, min_token: int = 0) -> PartitionLease | None:
        """Take a lease that no other worker holds; None if one does."""
        keys = [self._lease(partition), self._key("tokens")]
        token = self._redis.evaluate(
            _CLAIM, keys, [partition, worker, min_token, self._lease_ms], replicated=True
        )
        return None if token is None else PartitionLease(partition, int(token), worker)

    def renew(self, leases: Iterable[PartitionLease]) -> frozenset[int]:
        """Renew leases; return the partitions that are still held."""
        if not (leases := list(leases)):
            return frozenset()
        keys = [self._lease(lease.partition) for lease in leases]
        held = self._redis.evaluate(_RENEW, keys, [self._lease_ms, *map(_held_by, leases)])
        return frozenset(leases[n - 1].partition for n in held)

    def release(self, lease: PartitionLease) -> None:
        """End a lease, if it is still held."""
        self._redis.evaluate(_RELEASE, [self._lease(lease.partition)], [_held_by(lease)])

    def owners(self) -> Mapping[int, PartitionLease]:
        """Return the leases that are held, by partition."""
        fields = self._redis.execute("HKEYS", self._key("tokens"))
        partitions = sorted(n for n in map(_number, fields) if n is not None)
        if not partitions:
            return {}
        values = self._redis.execute("MGET", *map(self._lease, partitions))
        leases = map(self._lease_of, partitions, values)
        return {lease.partition: lease for lease in leases if lease is not None}

    def report(self, statuses: Sequence[PartitionStatus]) -> None:
        """Store the statuses of partitions, unless one with a higher token is there."""
        if not statuses:
            return
        arguments: list[str | bytes | float] = []
        for status in statuses:
            arguments += [status.partition, status.token, _encode_status(status)]
        self._redis.evaluate(_REPORT, [self._key("statuses")], arguments)

    def statuses(self) -> Mapping[int, PartitionStatus]:
        """Return the newest status of each partition; malformed ones are left out."""
        values = self._redis.execute("HGETALL", self._key("statuses"))
        statuses = (self._status_of(field, value) for field, value in values.items())
        return {each.partition: each for each in statuses if each is not None}

    def lead(self, worker: str) -> bool:
        """Whether ``worker`` leads: renew or take the lead if nobody else has it."""
        return bool(self._redis.evaluate(_LEAD, [self._key("leader")], [worker, self._lease_ms]))

    def grant(self, pages: Mapping[int, int], budget: int) -> Mapping[int, int]:
        """Grant further pages, in the order given, until ``budget`` is reached."""
        if not pages:
            return {}
        arguments = [budget, *(number for each in pages.items() for number in each)]
        shares = self._redis.evaluate(_GRANT, [self._key("granted")], arguments, replicated=True)
        return dict(zip(pages, shares, strict=True))

    def granted(self) -> Mapping[int, int]:
        """Return the pages granted to each partition so far."""
        granted = {}
        for field, value in self._redis.execute("HGETALL", self._key("granted")).items():
            partition, pages = _number(field), _number(value)
            if partition is None or pages is None:
                self._skip("granted pages", value)
            else:
                granted[partition] = pages
        return granted

    def give_back(self, lease: PartitionLease, fetched: int) -> None:
        """Reduce a partition's grant to the pages that it fetched, if the lease is still held."""
        keys = [self._lease(lease.partition), self._key("granted")]
        self._redis.evaluate(_GIVE_BACK, keys, [_held_by(lease), lease.partition, fetched])

    def command(self) -> WorkerCommand:
        """Return what all workers are to do."""
        fields = ["state", "reason", "generation"]
        state, reason, generation = self._redis.execute("HMGET", self._key("command"), *fields)
        if state is None:
            state = ClusterState.RUNNING.value.encode()
        elif _text(state) not in {each.value for each in ClusterState}:
            self._skip("state", state)
            state, reason = ClusterState.RUNNING.value.encode(), b""
        return WorkerCommand(
            ClusterState(_text(state)), _text(reason or b""), _number(generation) or 0
        )

    def set_state(self, state: ClusterState, reason: str = "") -> None:
        """Tell all workers what to do. An ended crawl can only be set running again."""
        arguments = [state.value, reason, ClusterState.ENDED.value, ClusterState.RUNNING.value]
        self._redis.evaluate(_SET_STATE, [self._key("command")], arguments, replicated=True)

    def rebalance(self) -> None:
        """Ask workers to assign the partitions again, by a new generation."""
        self._redis.evaluate(_REBALANCE, [self._key("command")])

    def _worker_of(self, name: str, value: bytes) -> WorkerStatus | None:
        try:
            status = _decode_worker(value)
        except (msgspec.MsgspecError, RecursionError):
            status = None
        if status is None or status.name != name:
            self._skip("status of a worker", value)
            return None
        return status

    def _lease_of(self, partition: int, value: bytes | None) -> PartitionLease | None:
        if value is None:
            return None
        token, _, worker = value.partition(b" ")
        number = _number(token)
        if number is None or not worker:
            self._skip("lease", value)
            return None
        return PartitionLease(partition, number, _text(worker))

    def _status_of(self, field: bytes, value: bytes) -> PartitionStatus | None:
        token, _, data = value.partition(b" ")
        status = decode_status(data)
        if status is None or (_number(field), _number(token)) != (status.partition, status.token):
            self._skip("status of a partition", value)
            return None
        return status

    def _skip(self, kind: str, value: bytes) -> None:
        self.malformed += 1
        logger.log(
            logging.WARNING if self.malformed == 1 else logging.DEBUG,
            "a malformed %s in Redis is left out: %r",
            kind,
            value[:100],
        )

    def _key(self, name: str) -> str:
        return crawl_key(self._crawl, name=name)

    def _worker(self, name: str) -> str:
        return self._key(f"worker:{name}:status")

    def _draining(self, name: str) -> str:
        return self._key(f"worker:{name}:draining")

    def _lease(self, partition: int) -> str:
        return self._key(f"lease:{partition}")


class RedisPaceLeases:
    """:class:`~focused.cluster.coordinator.PaceLeases` in Redis 7 or later; safe for threads.

    After an error calls fail at once for some seconds, so that who crawls does not wait for a
    server that is down before each request.
    """

    def __init__(
        self,
        connection: RedisConnection,
        crawl: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = connection.raising(CoordinationError)
        self._crawl = crawl
        self._clock = clock
        self._lock = threading.Lock()
        self._finished: list[tuple[str, str, float]] = []
        """Key, holder, and when its delay ends by ``clock``."""
        self._problem = ""
        self._fails_until = -math.inf

    def acquire(self, names: Sequence[str], holder: str, hold_s: float) -> float:
        """Lease all of ``names`` and return 0.0, or none, and return when to ask again."""
        now = self._clock()
        with self._lock:
            if now < self._fails_until:
                raise CoordinationError(self._problem)
            finished, self._finished = self._finished, []
        if not names and not finished:
            return 0.0
        keys = [key for key, _, _ in finished] + [self._key(name) for name in names]
        arguments: list[str | bytes | float] = [holder, _milliseconds(hold_s), len(finished)]
        for _, by, until in finished:
            arguments += [by, _milliseconds(until - now)]
        arguments.append(_milliseconds(ASK_AGAIN_S))
        try:
            wait_ms = self._redis.evaluate(_PACE, keys, arguments)
        except CoordinationError as error:
            with self._lock:
                self._finished = finished + self._finished
                self._problem, self._fails_until = str(error), self._clock() + _FAIL_FOR_S
            raise
        return float(wait_ms) / 1_000

    def finish(self, names: Sequence[str], holder: str, delay_s: float) -> None:
        """Let leases expire after ``delay_s``; sent with the next :meth:`acquire` or flush."""
        until = self._clock() + delay_s
        with self._lock:
            self._finished += [(self._key(name), holder, until) for name in names]

    def flush(self) -> None:
        """Send what :meth:`finish` has not sent."""
        self.acquire([], "", 0.0)

    def _key(self, name: str) -> str:
        return crawl_key(self._crawl, "pace", name)


def decode_status(data: bytes) -> PartitionStatus | None:
    """Return the status of a partition; None if it is malformed."""
    try:
        status = _decode_status(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    numbers = (status.reported_at, *status.priorities)
    return status if all(map(math.isfinite, numbers)) else None


def _held_by(lease: PartitionLease) -> str:
    return f"{lease.token} {lease.worker}"


def _milliseconds(duration_s: float) -> int:
    return max(math.ceil(duration_s * 1_000), 0)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _number(value: bytes | None) -> int | None:
    """Return a count that Redis holds; None if it is malformed."""
    if value is None or not value.isdigit() or len(value) > len(str(_MAX_COUNT)) - 1:
        return None
    return int(value)
