"""Download a crawl from shared storage, as the last manifest names it; it may run.

The folder is like that of a crawl by processes of one machine, and all commands read it.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from focused.archive.warc_files import PARTITIONS_FOLDER
from focused.errors import StateError
from focused.rounds.archive_parts import download_warc_files, partition_name
from focused.rounds.manifest import Manifest, StoredState, last_manifest
from focused.rounds.replication import restore, taken_over, warc_number
from focused.rounds.storage import MissingObjectError, SharedStorage
from focused.storage.state_store import StateStore

_TRIES = 5


def download_crawl(url: str, folder: Path) -> Manifest:
    """Write all that a crawl has committed to a new local folder; return its manifest.

    ``url`` is the crawl's folder in shared storage. Raises StateError and StorageError.
    """
    storage = SharedStorage.at(url)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StateError(f"{folder}: is not empty; name a new folder")
    for _ in range(_TRIES - 1):
        # The crawl goes on, and deletes what the next two manifests don't need.
        with suppress(MissingObjectError):
            return _download_whole(storage, folder)
    return _download_whole(storage, folder)


def _download_whole(storage: SharedStorage, folder: Path) -> Manifest:
    """Download; leave nothing behind if that fails."""
    try:
        return _download(storage, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _download(storage: SharedStorage, folder: Path) -> Manifest:
    manifest = last_manifest(storage)
    states = {} if manifest is None else {n: each.state for n, each in manifest.records.items()}
    if manifest is None or not any(states.values()):
        raise StateError(f"{storage.url}: no round of a crawl on several machines is stored there")
    for partition, state in states.items():
        if state is not None:
            home = folder / PARTITIONS_FOLDER / partition_name(partition)
            _download_partition(storage, partition, state, home)
    # The statistics are those of the last stop.
    for name in ("settings.json",) if manifest.round_s else ("settings.json", "stats.json"):
        if storage.exists(name):
            storage.download(name, folder / name)
    return manifest


def _download_partition(
    storage: SharedStorage, partition: int, state: StoredState, folder: Path
) -> None:
    restore(storage, partition, folder, state)
    with StateStore.open_for_reading(folder / "state") as (store, _):
        download_warc_files(storage, partition, folder, taken_over(store), warc_number(store))
