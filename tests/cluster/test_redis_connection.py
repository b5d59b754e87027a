"""Connecting to Redis: URLs, credentials, TLS, and errors that tell what to do."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.cluster.coordinator import ClusterState
from focused.cluster.local_redis import LocalRedis
from focused.cluster.redis_connection import TlsFiles, connect, parse_redis_url
from focused.errors import ConfigurationError, CoordinationError, ExchangeError
from tests.support.engines import RedisEngine, needs_redis

SECRET = "open-sesame"


def test_a_url_names_host_port_user_and_password() -> None:
    server = parse_redis_url("rediss://ann:s%40ve@redis.example:7000", {})
    assert (server.host, server.port, server.tls) == ("redis.example", 7000, True)
    assert (server.username, server.password) == ("ann", "s@ve")


def test_the_default_port_is_that_of_redis() -> None:
    assert str(parse_redis_url("redis://redis.example", {})) == "redis.example:6379"
    assert str(parse_redis_url("redis://[::1]:7000/", {})) == "[::1]:7000"


def test_credentials_may_stand_in_the_environment() -> None:
    environ = {"FOCUSED_REDIS_USERNAME": "ann", "FOCUSED_REDIS_PASSWORD": SECRET}
    server = parse_redis_url("redis://redis.example", environ)
    assert (server.username, server.password) == ("ann", SECRET)
    assert parse_redis_url("redis://bob:x@redis.example", environ).password == "x"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis.example",
        "http://redis.example",
        f"redis://:{SECRET}#@redis.example",
        f"redis://:1{SECRET}/2@redis.example:7000",
        f"redis://ann:{SECRET}@redis.example:port",
        f"redis://:{SECRET}@:7000",
        f"redis://:{SECRET}@redis.example/7",
        f"redis://redis.example?password={SECRET}",
    ],
)
def test_a_wrong_url_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\[cluster\] url") as error:
        parse_redis_url(url, {})
    assert SECRET not in str(error.value)


def test_a_server_is_shown_without_its_password() -> None:
    server = parse_redis_url(f"redis://:{SECRET}@redis.example", {})
    assert SECRET not in f"{server} {server!r}"


def test_servers_of_one_cluster_all_have_tls_or_none_has() -> None:
    with pytest.raises(ConfigurationError, match="for all servers"):
        connect(["redis://a.example", "rediss://b.example"], environ={})
    with pytest.raises(ConfigurationError, match="at least one"):
        connect([], environ={})


def test_where_no_server_is_the_error_tells_what_to_do() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(CoordinationError, match=f"127.0.0.1:{port}.*start the server"):
            connect(f"redis://127.0.0.1:{port}", environ={}, timeout_s=0.1)


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(CoordinationError, match=f"127.0.0.1:{port}.*start the server"):
            connect(f"redis://127.0.0.1:{port}", environ={}, timeout_s=0.1)


@needs_redis
def test_a_wrong_password_is_named_but_not_shown(single_redis: LocalRedis) -> None:
    url = single_redis.urls[0].replace(single_redis.password, SECRET)
    with pytest.raises(CoordinationError, match="correct user and password") as error:
        connect(url, environ={})
    assert SECRET not in str(error.value)


@needs_redis
def test_a_missing_password_is_named(single_redis: LocalRedis) -> None:
    url = single_redis.urls[0].replace(f":{single_redis.password}@", "")
    with pytest.raises(CoordinationError, match="set FOCUSED_REDIS_PASSWORD"):
        connect(url, environ={})
    connect(url, environ={"FOCUSED_REDIS_PASSWORD": single_redis.password}).close()


@needs_redis
def test_one_node_stands_for_its_cluster(redis_cluster: LocalRedis) -> None:
    for urls in (redis_cluster.urls[4], redis_cluster.urls[:2]):
        connection = connect(urls, environ={})
        for n in range(20):
            connection.execute("SET", f"test:{n}", "x")
        connection.close()


@needs_redis
def test_one_reachable_node_is_enough(redis_cluster: LocalRedis) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        dead = f"redis://:{redis_cluster.password}@127.0.0.1:{nobody.getsockname()[1]}"
        connection = connect([dead, redis_cluster.urls[3]], environ={})
        assert connection.execute("SET", "test", "x")
        connection.close()


@needs_redis
def test_several_servers_must_be_a_cluster(single_redis: LocalRedis) -> None:
    with pytest.raises(ConfigurationError, match="one Redis Cluster"):
        connect([single_redis.urls[0]] * 2, environ={})


@needs_redis
def test_errors_are_those_of_the_user(single_redis: LocalRedis) -> None:
    connection = connect(single_redis.urls[0], environ={})
    with pytest.raises(CoordinationError, match="see the log"):
        connection.execute("NOSUCHCOMMAND")
    with pytest.raises(ExchangeError):
        connection.raising(ExchangeError).execute_all([("k", ("NOSUCHCOMMAND",))])
    connection.close()


@needs_redis
def test_a_server_that_evicts_keys_is_warned_of(
    single_redis: LocalRedis, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect(single_redis.urls[0], environ={})
    connection.execute("CONFIG SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
    connect(single_redis.urls[0], environ={}).close()
    connection.execute("CONFIG SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
    connection.close()
    assert "set it to noeviction" in caplog.text


@needs_redis
def test_a_full_server_is_explained(tmp_path: Path) -> None:
    with LocalRedis(tmp_path, options={"maxmemory": "1mb"}) as redis:
        connection = connect(redis.urls[0], environ={})
        with pytest.raises(CoordinationError, match="raise maxmemory"):
            connection.execute("SET", "key", b"x" * 10_000_000)
        connection.close()


# TLS


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificates")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("authority", "stranger"):
        authority = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        openssl(folder, "req", "-x509", *new_key, *authority, "-days", "30")
    request = ("-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    openssl(folder, "req", *new_key, *request)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
    signer = ("-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial")
    signed = ("-in", "server.csr", "-out", "server.pem", "-extfile", "names", "-days", "30")
    openssl(folder, "x509", "-req", *signer, *signed)
    return folder


@pytest.fixture(scope="module")
def tls(certificates: Path) -> TlsFiles:
    return TlsFiles(
        *(certificates / name for name in ("authority.pem", "server.pem", "server.key"))
    )


@pytest.fixture(scope="module")
def tls_redis(tls: TlsFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRedis]:
    with LocalRedis(tmp_path_factory.mktemp("tls"), tls=tls) as redis:
        yield redis


@needs_redis
def test_tls_with_a_clients_certificate(tls_redis: LocalRedis, tls: TlsFiles) -> None:
    assert tls_redis.urls[0].startswith("rediss://")
    connection = connect(tls_redis.urls[0], tls=tls, environ={})
    assert connection.execute_all([("key", ("SET", "key", "value"))])
    assert connection.execute("GET", "key") == b"value"
    connection.close()


@needs_redis
def test_a_cluster_with_tls(tls: TlsFiles, tmp_path: Path) -> None:
    with LocalRedis(tmp_path, masters=3, replicas=1, tls=tls) as redis:
        connection = connect(redis.urls[0], tls=tls, environ={})
        assert connection.execute_all([(f"{n}", ("SET", f"{n}", "x")) for n in range(20)])
        connection.close()


@needs_redis
@pytest.mark.parametrize("authority", ["stranger.pem", None])
def test_a_server_of_another_authority_is_refused(
    tls_redis: LocalRedis, tls: TlsFiles, certificates: Path, authority: str | None
) -> None:
    files = TlsFiles(authority and certificates / authority, tls.certificate, tls.key)
    with pytest.raises(CoordinationError, match="correct the TLS files"):
        connect(tls_redis.urls[0], tls=files, environ={})


@needs_redis
def test_a_client_without_certificate_is_refused(tls_redis: LocalRedis, tls: TlsFiles) -> None:
    with pytest.raises(CoordinationError, match=r"127\.0\.0\.1:\d+"):
        connect(tls_redis.urls[0], tls=TlsFiles(tls.authority), environ={})


def test_tls_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("missing", "empty"):
        for files in (TlsFiles(tmp_path / name), TlsFiles(certificate=tmp_path / name)):
            with pytest.raises(ConfigurationError, match=f"{name}: .*PEM file"):
                connect("rediss://redis.example", tls=files, environ={})


@needs_redis
def test_without_tls_a_tls_server_does_not_answer(tls_redis: LocalRedis) -> None:
    with pytest.raises(CoordinationError, match=r"127\.0\.0\.1:\d+"):
        connect(tls_redis.urls[0].replace("rediss:", "redis:"), environ={}, timeout_s=0.5)


@needs_redis
def test_with_tls_a_wrong_password_is_refused(tls_redis: LocalRedis, tls: TlsFiles) -> None:
    url = tls_redis.urls[0].replace(tls_redis.password, SECRET)
    with pytest.raises(CoordinationError, match="correct user and password") as error:
        connect(url, tls=tls, environ={})
    assert SECRET not in str(error.value)


def test_a_crawl_is_deleted_and_no_other(redis_engine: RedisEngine) -> None:
    other = RedisEngine(redis_engine.servers)
    for engine in (redis_engine, other):
        engine.coordinator().set_state(ClusterState.PAUSED)
        engine.exchange().send(7, b"batch")
    redis_engine.connect().delete_crawl(redis_engine.crawl)
    assert redis_engine.all_keys() == []
    assert other.coordinator().command().state is ClusterState.PAUSED
    assert other.exchange().waiting(7, "") == 1
    other.close()
