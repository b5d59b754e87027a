"""Commit the rounds of a crawl: the driver's side of its shared storage.

What the files of a round hold for the driver is read, claims of contents are merged into one file
for all, and the manifest that names it all is written, by one driver at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import structs

from focused.errors import StorageError
from focused.rounds.learning import SharedLearning
from focused.rounds.manifest import (
    CONTENTS,
    EXAMPLES,
    DamagedFileError,
    Manifest,
    RoundFile,
    check_driver,
    commit_manifest,
    delete_outdated,
    read_section,
    write_round_file,
)
from focused.rounds.storage import SharedStorage

_DRIVER = "driver"


class RoundCommits:
    """Writes the manifests of one driver.

    ``insist`` repeats a call until the storage answers. ``driver`` is unique among the drivers of
    a crawl on several machines; None: only one can run.
    """

    def __init__(
        self,
        manifest: Manifest,
        storage: SharedStorage,
        learning: SharedLearning | None,
        *,
        driver: str | None,
        insist: Callable[[Callable[[], object]], None],
        on_problem: Callable[[str], object],
    ) -> None:
        self.manifest = manifest
        """The last manifest."""
        self._storage = storage
        self._learning = learning
        self._driver = driver
        self._insist = insist
        self._on_problem = on_problem

    def take_lead(self, driver: str, round_s: float) -> None:
        """Commit that this driver runs the crawl now, in rounds of at most ``round_s``.

        Raises StateError if another one does, and StorageError as :meth:`commit`.
        """
        before = self.manifest
        self._write(
            structs.replace(
                before,
                round=before.round + 1,
                drivers=before.drivers + 1,
                driver=driver,
                round_s=round_s,
            )
        )

    def commit(self, files: Sequence[RoundFile], **changed: Any) -> None:
        """Commit a round with the files that count, and what else ``changed`` in the manifest.

        Raises StateError if another driver runs the crawl, and StorageError if it is to stop
        while the storage does not answer.
        """
        before = self.manifest
        learned = before.learned + self._learn(files)
        files = self._merge_claims(before.round + 1, files)
        manifest = structs.replace(
            before,
            round=before.round + 1,
            inbox=(*before.inbox, *(each for each in files if each.sections)),
            learned=learned,
            **changed,
        )
        self._write(structs.replace(manifest, inbox=tuple(_still_needed(manifest))))
        try:
            delete_outdated(self._storage, self.manifest)
        except StorageError as error:
            self._on_problem(str(error))

    def _write(self, manifest: Manifest) -> None:
        def write() -> None:
            if self._driver is not None:
                check_driver(self._storage, self.manifest, self._driver)
            commit_manifest(self._storage, manifest)

        self._insist(write)
        self.manifest = manifest

    def _learn(self, files: Sequence[RoundFile]) -> int:
        """Train the scorer on the examples of a round, and store it; return how many they are."""
        if self._learning is None:
            return 0
        count = 0
        for messages in self._read_all(files, EXAMPLES):
            for message in messages:
                self._learning.take(message)
                count += 1
        if count:
            self._insist(self._learning.save)
        return count

    def _merge_claims(self, number: int, files: Sequence[RoundFile]) -> Sequence[RoundFile]:
        """Write the claims of all partitions into one file; return it with what the others keep.

        Every partition gets all claims, and would else read a section of each other one.
        """
        claims = [claim for part in self._read_all(files, CONTENTS) for claim in part]
        kept = [each.for_partitions() for each in files]
        if claims:
            write = partial(write_round_file, self._storage, number, self.manifest.partitions)
            content = {CONTENTS: claims}
            self._insist(lambda: kept.append(write(self._driver or _DRIVER, content)))
        return kept

    def _read_all(self, files: Sequence[RoundFile], name: str) -> Sequence[Sequence[bytes]]:
        """Return a section of each file; damaged ones are left out."""
        found: list[Sequence[bytes]] = []

        def read() -> None:
            for file in files[len(found) :]:
                try:
                    found.append(read_section(self._storage, file, name))
                except DamagedFileError as error:
                    self._on_problem(f"{error}; it is left out")
                    found.append(())

        self._insist(read)
        return found


def _still_needed(manifest: Manifest) -> Iterator[RoundFile]:
    """Yield the files that some partition has not got yet."""
    for file in manifest.inbox:
        receivers = (n for n, _ in file.inboxes(manifest.partitions))
        if any(manifest.record(n).delivered < file.round for n in receivers):
            yield file
