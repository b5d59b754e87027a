"""Shared storage: objects by name, written atomically, and errors that say what to do."""

import os
import socket
from pathlib import Path

import pytest

from focused.errors import StorageError
from focused.rounds.replication import Replica, restore
from focused.rounds.storage import MissingObjectError, SharedStorage
from focused.storage.state_store import StateStore
from tests.rounds import shared_storages
from tests.rounds.shared_storages import AtOnce, new_bucket
from tests.support.small_disk import SmallDisk

s3_server, storage_url = shared_storages.s3_server, shared_storages.storage_url


@pytest.fixture
def storage(storage_url: str) -> SharedStorage:
    return SharedStorage(storage_url, "whales")


def test_an_object_has_the_content_written_last(storage):
    assert not storage.exists("a/b")
    storage.write("a/b", b"1")
    storage.write("a/b", b"22")
    assert storage.exists("a/b")
    assert storage.read("a/b") == b"22"
    assert storage.entries("a") == {"b": 2}


def test_files_are_uploaded_and_downloaded(storage, tmp_path):
    content = os.urandom(3_000_000)
    (tmp_path / "here").write_bytes(content)
    storage.upload("a/b", tmp_path / "here")
    storage.download("a/b", tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == content


def test_folders_are_listed_as_they_are_now(storage):
    assert storage.entries("a") == {}
    storage.write("a/b", b"1")
    assert storage.entries("a") == {"b": 1}
    storage.write("a/c/d", b"22")
    assert storage.entries("a") == {"b": 1, "c": None}
    assert storage.entries("") == {"a": None}
    storage.delete(["a/b"])
    assert "b" not in storage.entries("a")


def test_many_objects_are_read_in_their_order(storage):
    names = [f"a/{n:03}" for n in range(40)]
    for name in names:
        storage.write(name, name.encode())
    assert list(storage.read_many(reversed(names))) == [name.encode() for name in reversed(names)]


def test_a_missing_object_is_named(storage):
    with pytest.raises(MissingObjectError, match=r"whales/a/b is missing"):
        storage.read("a/b")
    with pytest.raises(MissingObjectError):
        list(storage.read_many(["a/b"]))


def test_deleting_skips_what_is_gone(storage):
    storage.write("a/b", b"1")
    storage.write("a/c", b"1")
    storage.delete([])
    storage.delete(["a/gone", "a/b", "a/c"])
    assert not storage.exists("a/b") and not storage.exists("a/c")


def test_crawls_have_their_own_objects(storage_url):
    SharedStorage(storage_url, "whales").write("a", b"1")
    assert not SharedStorage(storage_url, "birds").exists("a")


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden"])
def test_a_crawls_name_is_a_folder(name):
    with pytest.raises(StorageError, match="rename the crawl"):
        SharedStorage("memory://x", name)


def test_a_written_file_survives_a_power_failure(tmp_path, monkeypatch):
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(descriptor: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        calls.append("part" if name.endswith(".part") else name)
        fsync(descriptor)

    def recorded_replace(path: Path, target: Path) -> Path:
        calls.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    SharedStorage(f"file://{tmp_path}", "whales").write("a/b", b"1")
    assert calls == [tmp_path.name, "whales", "part", "rename", "a"]


def test_an_interrupted_write_leaves_the_old_content(tmp_path, monkeypatch):
    storage = SharedStorage(f"file://{tmp_path}", "whales")
    storage.write("a/b", b"old")

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(StorageError, match="Input/output error"):
            storage.write("a/b", b"new")
    assert storage.read("a/b") == b"old"
    assert os.listdir(tmp_path / "whales/a") == ["b"]


def test_files_being_written_are_not_listed(tmp_path):
    storage = SharedStorage(f"file://{tmp_path}", "whales")
    storage.write("a/b", b"1")
    (tmp_path / "whales/a/.c.123.part").write_bytes(b"half")
    assert storage.entries("a") == {"b": 1}


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    with pytest.raises(StorageError, match=r"cannot open .*: Protocol not known: nowhere"):
        SharedStorage("nowhere://x", "whales")
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    with pytest.raises(StorageError, match=r"install gcsfs .*on each machine"):
        SharedStorage("gs://bucket", "whales")


@SmallDisk.needed
def test_a_full_storage_loses_nothing(tmp_path):
    with SmallDisk(tmp_path / "disk", kib=200) as disk:
        storage = SharedStorage(f"file://{disk.seen_from_here}", "whales")
        store = StateStore.open(tmp_path / "one/state", {})
        replica = Replica(storage, 1, 1, store, tmp_path / "one", background=AtOnce())
        replica.begin()
        rows = {b"%d" % n: os.urandom(50_000) for n in range(8)}
        failures: list[str] = []
        for key, value in rows.items():
            store.tables.put("content", key, value)
            store.commit()
            try:
                replica.upload(replica.prepare())
            except StorageError as error:
                failures.append(str(error))
        assert failures
        assert all("No space left on device; free some space there" in each for each in failures)
        disk.resize(kib=2_000)
        state = replica.upload(replica.prepare())
        store.abandon()
        restore(storage, 1, tmp_path / "two", state)
        found = StateStore.reopen(tmp_path / "two/state")
        assert dict(found.tables.scan("content")) == rows
        found.close()


@SmallDisk.needed
def test_a_read_only_storage_is_an_error_that_says_so(tmp_path):
    with SmallDisk(tmp_path / "disk", kib=200) as disk:
        storage = SharedStorage(f"file://{disk.seen_from_here}", "whales")
        disk.make_read_only()
        with pytest.raises(StorageError, match="Read-only file system; allow the crawl to"):
            storage.write("a/b", b"1")


@pytest.mark.long
def test_an_endpoint_that_does_not_answer_is_named(s3_server, monkeypatch):
    url = new_bucket(s3_server, monkeypatch)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        __import__("s3fs").S3FileSystem.clear_instance_cache()
        with pytest.raises(StorageError, match=f"cannot write {url}/whales/a.*{address}.*network"):
            SharedStorage(url, "whales").write("a", b"1")


@pytest.mark.long
def test_a_bucket_that_does_not_exist_is_an_error(s3_server, monkeypatch):
    url = new_bucket(s3_server, monkeypatch)
    with pytest.raises(StorageError, match="bucket does not exist; check"):
        SharedStorage(f"{url}-other", "whales").write("a", b"1")
