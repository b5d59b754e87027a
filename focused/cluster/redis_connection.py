"""Connect to a Redis server or a Redis Cluster, 7 or later.

A crawl needs the memory policy ``noeviction``. Where a server has a replica, writes that must
survive its death wait until the replica has them.
"""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from redis import Redis, RedisCluster
from redis.backoff import ExponentialWithJitterBackoff
from redis.cluster import ClusterNode
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TimeoutError,
)
from redis.retry import Retry

from focused.errors import (
    ConfigurationError,
    CoordinationError,
    FocusedError,
    escape_control_characters,
)

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

USERNAME_VARIABLE = "FOCUSED_REDIS_USERNAME"
PASSWORD_VARIABLE = "FOCUSED_REDIS_PASSWORD"  # noqa: S105  # its name
_DEFAULT_PORT = 6379
_TIMEOUT_S = 2.0
_RETRIES = 1
_CONFIRM_WITHIN_MS = 1_000
"""How long a replica may take to confirm a write; below the timeout."""
_OLDEST_VERSION = 7
_PREFIX = "focused:"
_TYPES = {
    "workers": "set",
    "tokens": "hash",
    "statuses": "hash",
    "granted": "hash",
    "command": "hash",
    "links": "stream",
    "messages": "stream",
    "shingles": "hash",
    "urls": "set",
}
"""Types of values by the last part of their key; all others are strings."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files for TLS: the authority of the servers, and the client's own certificate.

    Without ``authority`` those of the system count.
    """

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class RedisServer:
    """The address of a server, and the credentials for it."""

    host: str
    port: int
    tls: bool = False
    username: str = ""
    password: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"<RedisServer {self}>"


class LuaScript:
    """A script that a server runs as one operation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def parse_redis_url(url: str, environ: Mapping[str, str] | None = None) -> RedisServer:
    """Return the server of a URL. Raises ConfigurationError, which never shows the password.

    Credentials that the URL does not have come from the environment variables
    ``FOCUSED_REDIS_USERNAME`` and ``FOCUSED_REDIS_PASSWORD``.
    """
    environ = os.environ if environ is None else environ
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port or _DEFAULT_PORT
    except ValueError:  # its message may show a part of the password
        scheme, host, port = "", None, 0
    if scheme not in ("redis", "rediss") or not host:
        shown = escape_control_characters(url.rpartition("@")[2])
        raise ConfigurationError(
            f"[cluster] url: {shown!r} is no Redis URL: write redis://HOST:PORT, or rediss://... "
            "for TLS, and percent-encode special characters of the password"
        )
    if parts.path.strip("/") not in ("", "0") or parts.query or parts.fragment:
        raise ConfigurationError(
            f"[cluster] url: {host}: nothing may follow the port: only database 0 is used"
        )
    return RedisServer(
        unquote(host),
        port,
        scheme == "rediss",
        unquote(parts.username or "") or environ.get(USERNAME_VARIABLE, ""),
        unquote(parts.password or "") or environ.get(PASSWORD_VARIABLE, ""),
    )


_TOPOLOGY_ERRORS = (
    ConnectionError,
    TimeoutError,
    MovedError,
    ClusterDownError,
    ReadOnlyError,
    SlotNotCoveredError,
)
"""After them another server may be the master."""


def connect(
    url: str | Sequence[str],
    *,
    tls: TlsFiles | None = None,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> RedisConnection:
    """Connect to a server, or to the cluster that some nodes belong to.

    A single server that is a node of a cluster stands for the cluster. Raises ConfigurationError
    for a wrong URL, CoordinationError if no server answers.
    """
    urls = [url] if isinstance(url, str) else list(url)
    servers = [parse_redis_url(each, environ) for each in urls]
    if not servers:
        raise ConfigurationError("[cluster] url: name at least one server")
    if len({each.tls for each in servers}) > 1:
        raise ConfigurationError("[cluster] url: use redis:// or rediss:// for all servers")
    if servers[0].tls:
        _check_files(tls or TlsFiles())
    name = ", ".join(map(str, servers))
    with _explained(CoordinationError, name):
        about = _first_answer(servers, tls, timeout_s)
        _check_server(name, about)
        if not about.get("cluster_enabled"):
            if len(servers) > 1:
                raise ConfigurationError(
                    f"[cluster] url: {name}: several servers must be nodes of one Redis Cluster: "
                    "name one server, or start them with cluster-enabled yes"
                )
            return RedisConnection(_client(servers[0], tls, timeout_s), name)
        cluster = RedisCluster(
            startup_nodes=[_cluster_node(each) for each in servers],
            retry=Retry(ExponentialWithJitterBackoff(), _RETRIES),
            require_full_coverage=False,  # hosts of other slots can be crawled meanwhile
            reinitialize_steps=1,
            **_options(servers[0], tls, timeout_s),
        )
        return RedisConnection(cluster, name)


def open_server(
    server: RedisServer, tls: TlsFiles | None = None, timeout_s: float = _TIMEOUT_S
) -> RedisConnection:
    """Return a connection to this one server, which is made with the first command."""
    return RedisConnection(_client(server, tls, timeout_s, retries=0), str(server))


def _client(
    server: RedisServer, tls: TlsFiles | None, timeout_s: float, retries: int = _RETRIES
) -> Redis:
    return Redis(
        server.host,
        server.port,
        retry=Retry(ExponentialWithJitterBackoff(cap=0.5, base=0.05), retries),
        **_options(server, tls, timeout_s),
    )


class RedisConnection:
    """A connection to a server or a cluster; safe for threads.

    Commands may be sent again after a lost answer, so all of them must be safe to repeat.
    """

    def __init__(
        self,
        client: Redis | RedisCluster,
        name: str,
        error: type[FocusedError] = CoordinationError,
    ) -> None:
        self.name = name
        self._client: Any = client
        self._error = error
        self._has_replica: dict[str, bool] = {}
        """Whether a server had a replica when it was last asked."""

    def raising(self, error: type[FocusedError]) -> RedisConnection:
        """Return this connection with another class of errors."""
        other = RedisConnection(self._client, self.name, error)
        other._has_replica = self._has_replica
        return other

    def delete_crawl(self, crawl: str) -> int:
        """Delete all keys of a crawl; return how many there were."""
        tag = quote(crawl, safe="")  # without characters that have a meaning in patterns
        deleted = 0
        with _explained(self._error, self.name):
            for pattern in (f"{_PREFIX}{{{tag}}}:*", f"{_PREFIX}{{{tag}:*"):
                for key in self._client.scan_iter(match=pattern, count=1_000):
                    deleted += self._client.delete(key)
        return deleted

    def close(self) -> None:
        """Close all sockets."""
        self._client.close()

    def execute(self, *command: str | bytes | float) -> Any:
        """Run one command and return its result."""
        keys = [each for each in command[1:] if isinstance(each, str)]
        return self._called(keys, lambda: self._client.execute_command(*command))

    def execute_many(self, commands: Sequence[Sequence[str | bytes | float]]) -> list[Any]:
        """Run commands in one round trip and return their results; replicas may lack them yet.

        The second word of each command is its key.
        """

        def call() -> list[Any]:
            pipeline = self._client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            try:
                return _checked(pipeline.execute(raise_on_error=False))
            except _TOPOLOGY_ERRORS:
                if isinstance(self._client, RedisCluster):
                    nodes: Any = self._client.nodes_manager
                    nodes.initialize()  # the next call finds the new master
                raise

        return self._called([str(command[1]) for command in commands], call)

    def execute_all(
        self, commands: Sequence[tuple[str, Sequence[str | bytes | float]]]
    ) -> list[Any]:
        """Run commands, each given with its key, and return when replicas have their effect.

        A server without replicas is enough by itself.
        """
        if not commands:
            return []
        return self._called([key for key, _ in commands], lambda: self._replicated(commands))

    def evaluate(
        self,
        script: LuaScript,
        keys: Sequence[str],
        arguments: Sequence[str | bytes | float] = (),
        *,
        replicated: bool = False,
    ) -> Any:
        """Run a script on keys of one slot, see :meth:`execute_all` for ``replicated``."""
        rest = (len(keys), *keys, *arguments)

        def call() -> Any:
            try:
                return self._evaluate(keys[0], ("EVALSHA", script.digest, *rest), replicated)
            except NoScriptError:  # the server was started since then, or has taken over
                return self._evaluate(keys[0], ("EVAL", script.text, *rest), replicated)

        return self._called(keys, call)

    def _called(self, keys: Sequence[str], call: Callable[[], _T]) -> _T:
        """Call; delete keys with a wrong type of value and call again."""
        with _explained(self._error, self.name):
            try:
                return call()
            except ResponseError as error:
                if not str(error).startswith("WRONGTYPE"):
                    raise
            for key in keys:
                if key.startswith(_PREFIX):
                    self._delete_wrong_type(key)
            return call()

    def _delete_wrong_type(self, key: str) -> None:
        found = self._client.execute_command("TYPE", key).decode()
        if found not in ("none", _TYPES.get(key.rpartition(":")[2], "string")):
            logger.warning("%s in Redis is a %s, which no crawl writes: deleted", key, found)
            self._client.execute_command("DEL", key)

    def _evaluate(self, key: str, command: Sequence[str | bytes | float], replicated: bool) -> Any:
        if replicated:
            return self._replicated([(key, command)])[0]
        return self._client.execute_command(*command)

    def _replicated(
        self, commands: Sequence[tuple[str, Sequence[str | bytes | float]]]
    ) -> list[Any]:
        if not isinstance(self._client, RedisCluster):
            return self._confirmed(self.name, self._client, [each for _, each in commands])
        cluster: Any = self._client
        numbers: dict[Any, list[int]] = {}
        results: list[Any] = [None] * len(commands)
        try:
            for number, (key, _) in enumerate(commands):
                numbers.setdefault(cluster.get_node_from_key(key), []).append(number)
            for node, of_node in numbers.items():
                client = cluster.get_redis_connection(node)
                some = self._confirmed(node.name, client, [commands[n][1] for n in of_node])
                for number, result in zip(of_node, some, strict=True):
                    results[number] = result
        except _TOPOLOGY_ERRORS:
            cluster.nodes_manager.initialize()  # the next call finds the new master
            raise
        return results

    def _confirmed(
        self, name: str, client: Any, commands: Sequence[Sequence[str | bytes | float]]
    ) -> list[Any]:
        """Run commands on one server; return when one of its replicas has confirmed them."""
        if name not in self._has_replica:
            self._ask_for_replica(name, client)
        waits = self._has_replica[name]
        # WAIT concerns the writes of its own connection, so all are one pipeline.
        pipeline = client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        pipeline.execute_command(*(("WAIT", 1, _CONFIRM_WITHIN_MS) if waits else ("ROLE",)))
        results = _checked(pipeline.execute(raise_on_error=False))
        last = results.pop()
        if not waits:
            self._has_replica[name] = _has_replica(last)
        elif not last and self._ask_for_replica(name, client):
            raise TimeoutError(f"the replica of {name} has not confirmed a write")
        return results

    def _ask_for_replica(self, name: str, client: Any) -> bool:
        role = client.execute_command("ROLE")
        if role[0] != b"master":
            raise ConnectionError(f"{name} is no master any more")
        has_replica = self._has_replica[name] = _has_replica(role)
        return has_replica


def crawl_key(crawl: str, part: str | int = "", name: str = "") -> str:
    """Return a key of a crawl; those of one part share a hash slot.

    The part is a partition, or empty for what concerns all partitions.
    """
    tag = quote(crawl, safe="") + (f":{part}" if part != "" else "")
    return f"{_PREFIX}{{{tag}}}:{name}"


def _checked(results: list[Any]) -> list[Any]:
    """Raise the first error among the results of a pipeline."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def _has_replica(role: Sequence[Any]) -> bool:
    """Whether the answer to ROLE is that of a master with a replica."""
    return role[0] == b"master" and bool(role[2])


def _cluster_node(server: RedisServer) -> Any:
    node: Any = ClusterNode  # has no types
    return node(server.host, server.port)


def _options(server: RedisServer, tls: TlsFiles | None, timeout_s: float) -> dict[str, Any]:
    options: dict[str, Any] = {
        "username": server.username or None,
        "password": server.password or None,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "socket_keepalive": True,
        "protocol": 2,
    }
    if not server.tls:
        return options
    files = tls or TlsFiles()
    return options | {
        "ssl": True,
        "ssl_ca_certs": files.authority and str(files.authority),
        "ssl_certfile": files.certificate and str(files.certificate),
        "ssl_keyfile": files.key and str(files.key),
    }


def _check_files(files: TlsFiles) -> None:
    """Raise ConfigurationError for a file that cannot be used, which Redis's errors don't name."""
    context = ssl.create_default_context()
    if files.authority is not None:
        try:
            context.load_verify_locations(files.authority)
        except OSError as error:
            raise _file_error(files.authority, error) from error
    if files.certificate is not None:
        try:
            context.load_cert_chain(files.certificate, files.key)
        except OSError as error:
            shown = f"{files.certificate} with {files.key}" if files.key else files.certificate
            raise _file_error(shown, error) from error


def _file_error(file: Path | str, error: OSError) -> ConfigurationError:
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    return ConfigurationError(f"[cluster] TLS: {file}: {reason}: name a readable PEM file")


def _first_answer(
    servers: Sequence[RedisServer], tls: TlsFiles | None, timeout_s: float
) -> Mapping[str, Any]:
    """Return what the first server that answers tells about itself."""
    errors: list[RedisError] = []
    for server in servers:
        client: Any = _client(server, tls, timeout_s)
        try:
            return dict(client.info("everything"))
        except RedisError as error:
            errors.append(error)
        finally:
            client.close()
    raise errors[-1]


def _check_server(name: str, about: Mapping[str, Any]) -> None:
    version = str(about.get("redis_version", _OLDEST_VERSION))
    if int(version.partition(".")[0]) < _OLDEST_VERSION:
        raise CoordinationError(f"Redis at {name} has version {version}: 7 or later is needed")
    policy = about.get("maxmemory_policy", "noeviction")
    if about.get("maxmemory") and policy != "noeviction":
        logger.warning(
            "Redis at %s may evict keys of the crawl (maxmemory-policy %s): set it to noeviction",
            name,
            policy,
        )


@contextmanager
def _explained(error: type[FocusedError], server: str) -> Iterator[None]:
    """Turn an error of Redis into one that names the server and what to do."""
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as cause:
        text = str(cause).rstrip(". ")
        raise error(f"Redis at {server}: {text}: {_remedy(cause)}") from cause


def _remedy(error: BaseException) -> str:
    text = str(error)
    if "NOAUTH" in text or "Authentication required" in text:
        return f"set {PASSWORD_VARIABLE}, or the password in [cluster] url"
    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return (
            f"correct user and password in [cluster] url, or {USERNAME_VARIABLE} and "
            f"{PASSWORD_VARIABLE}"
        )
    if "CERTIFICATE" in text or "SSL" in text:
        return "correct the TLS files of [cluster], or the scheme in url: redis:// or rediss://"
    if isinstance(error, OutOfMemoryError):
        return "raise maxmemory of the server"
    if isinstance(error, ClusterDownError | RedisClusterException):
        return "a replica takes over within seconds; otherwise start the servers of the cluster"
    if isinstance(error, ConnectionError | TimeoutError | OSError):
        return "start the server, or correct [cluster] url; in a cluster a replica takes over"
    return "see the log of the server"
