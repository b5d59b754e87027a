"""What a manifest names has happened, and is read as it was written or not at all."""

from pathlib import Path

import pytest

from focused.errors import StateError, StorageError
from focused.rounds.manifest import (
    CONTENTS,
    EXAMPLES,
    DamagedFileError,
    Manifest,
    PartitionRecord,
    RoundFile,
    commit_manifest,
    delete_outdated,
    last_manifest,
    links_for,
    list_round_files,
    read_section,
    write_round_file,
)
from focused.rounds.storage import SharedStorage


@pytest.fixture
def storage(tmp_path: Path) -> SharedStorage:
    return SharedStorage(f"file://{tmp_path}", "crawl")


def manifest(number: int, *files: RoundFile, **records: PartitionRecord) -> Manifest:
    by_number = {int(name[1:]): record for name, record in records.items()}
    return Manifest("whales", "focused", 3, "domain", number, by_number, files)


def path_of(storage: SharedStorage, name: str) -> Path:
    return Path(storage.url.removeprefix("file://")) / name


def test_a_new_crawl_has_no_manifest(storage):
    assert last_manifest(storage) is None


def test_the_newest_manifest_counts(storage):
    for number in (9, 10):
        commit_manifest(storage, manifest(number))
    assert last_manifest(storage) == manifest(10)


def test_a_damaged_manifest_is_named(storage):
    commit_manifest(storage, manifest(1))
    path = path_of(storage, "rounds/manifests/00000001")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"manifests/00000001: its checksum"):
        last_manifest(storage)


def test_a_section_is_read_by_its_receiver(storage):
    file = write_round_file(storage, 1, 0, "a", {links_for(1): [b"one", b"two"], CONTENTS: [b"x"]})
    assert read_section(storage, file, links_for(1)) == (b"one", b"two")
    assert read_section(storage, file, CONTENTS) == (b"x",)
    assert read_section(storage, file, links_for(2)) == ()


def test_attempts_write_different_files(storage):
    first = write_round_file(storage, 1, 0, "a", {links_for(1): [b"one"]})
    write_round_file(storage, 1, 0, "b", {links_for(1): [b"other"]})
    assert read_section(storage, first, links_for(1)) == (b"one",)


def test_a_changed_section_is_refused_and_named(storage):
    file = write_round_file(storage, 1, 0, "a", {links_for(1): [b"one"]})
    path = path_of(storage, file.name)
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    with pytest.raises(DamagedFileError, match=r"00000001-0000-a, section links/1: its checksum"):
        read_section(storage, file, links_for(1))


def test_a_missing_file_is_an_error_of_the_storage(storage):
    file = write_round_file(storage, 1, 0, "a", {links_for(1): [b"one"]})
    path_of(storage, file.name).unlink()
    with pytest.raises(StorageError, match="is missing"):
        read_section(storage, file, links_for(1))


def test_nothing_is_written_without_messages(storage):
    file = write_round_file(storage, 1, 0, "a", {links_for(1): []})
    assert file.sections == ()
    assert list_round_files(storage) == []


def test_a_partition_gets_the_files_after_its_last_delivery(storage):
    old = write_round_file(storage, 1, 0, "a", {links_for(1): [b"one"]})
    new = write_round_file(storage, 2, 2, "c", {links_for(1): [b"two"]})
    other = write_round_file(storage, 2, 0, "a", {links_for(2): [b"three"]})
    after = manifest(2, old, new, other, p1=PartitionRecord(delivered=1))
    assert after.inboxes() == {0: [], 1: [new], 2: [other]}


def test_claims_are_for_all_partitions_and_links_for_one(storage):
    contents = {CONTENTS: [b"claim"], EXAMPLES: [b"example"], links_for(1): [b"1"]}
    file = write_round_file(storage, 1, 1, "b", contents)
    inboxes = manifest(1, file).inboxes()
    names = {n: [own.sections[0].name for own in files] for n, files in inboxes.items()}
    assert names == {0: [CONTENTS], 1: [CONTENTS, "links/1"], 2: [CONTENTS]}
    assert [each.name for each in file.for_partitions().sections] == ["links/1"]


def test_files_are_kept_while_somebody_waits_for_them(storage):
    waited = write_round_file(storage, 1, 0, "a", {links_for(1): [b"one"]})
    write_round_file(storage, 1, 2, "c", {links_for(1): [b"delivered or never committed"]})
    recent = write_round_file(storage, 4, 0, "a", {links_for(1): [b"of the last round but one"]})
    for number in range(1, 6):
        commit_manifest(storage, manifest(number))
    delete_outdated(storage, manifest(5, waited))
    assert set(list_round_files(storage)) == {waited.name, recent.name}
    assert set(storage.entries("rounds/manifests")) == {"00000004", "00000005"}
