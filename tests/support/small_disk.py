"""A disk of a few hundred kilobytes that the tests fill: no root, but Linux's namespaces."""

import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.support.crawling import ROOT, Finished, command
from tests.support.forked import HANGS_AFTER_S

_ALONE = ("unshare", "--map-root-user", "--mount")


def _can_be_mounted() -> bool:
    try:
        trial = subprocess.run(
            [*_ALONE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0


class SmallDisk:
    """Context manager: ``folder`` is a disk of its own, for what runs here alone."""

    needed = pytest.mark.skipif(not _can_be_mounted(), reason="no disk can be mounted without root")

    def __init__(self, folder: Path, *, kib: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._kib = kib

    def __enter__(self) -> Self:
        mount = f"mount -t tmpfs -o size={self._kib}k tmpfs '{self._folder}' && echo && exec cat"
        self._holder = subprocess.Popen(
            [*_ALONE, "sh", "-c", mount], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline()
        return self

    def __exit__(self, *error: object) -> None:
        self._holder.communicate()  # its input ends, and with it the disk

    def resize(self, *, kib: int) -> None:
        self._remount(f"size={kib}k")

    def make_read_only(self) -> None:
        self._remount("ro")

    def crawl(self, topic: Path, address: str) -> Finished:
        """Run ``scrapy crawl topic`` to its end where the disk is."""
        done = self._run(command(topic, address))
        return Finished(done.returncode, done.stdout, self.seen_from_here)

    @property
    def seen_from_here(self) -> Path:
        """The disk's folder, for this process, which has another view of the file system."""
        return Path(f"/proc/{self._holder.pid}/root{self._folder}")

    def _remount(self, how: str) -> None:
        done = self._run(["mount", "-o", f"remount,{how}", str(self._folder)])
        assert done.returncode == 0, done.stdout

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "--target", str(self._holder.pid), "--user", "--mount"]
        return subprocess.run(
            [*inside, "--preserve-credentials", f"--wdns={ROOT}", *arguments],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=HANGS_AFTER_S,
            check=False,
        )
