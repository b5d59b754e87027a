"""Speed and memory of reading and sampling directories.

``python benchmarks/directories.py [FILE ...] [--made-up PAGES]`` reads each file as
``training.directory`` would, and a generated DMOZ dump of that many pages, which is streamed
without touching the disk, one record in a thousand broken. Prints a line each. CPU time includes
generating the dump.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

from focused.directory import dmoz
from focused.directory.directory_entry import DirectoryEntry, SkippedRecords
from focused.directory.directory_reader import iter_entries
from focused.directory.sample_set import make_sample_set
from focused.topic import DEFAULT_MAX_SAMPLES

_PAGE = """<ExternalPage about="http://host{host}.example/{number}">
  <d:Title>Page {number} about subject {subject}</d:Title>
  <d:Description>{words}</d:Description>
  <topic>Top/Subject{parent}/Part{subject}</topic>
</ExternalPage>
"""
_WORDS = "Offers a plain description of what is to be found there, news and a list of links. " * 3


class MadeUpDump:
    """A content dump as a file that is generated while it is read."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._next = 0
        self.bytes = 0

    def __enter__(self) -> MadeUpDump:
        return self

    def __exit__(self, *_: object) -> None: ...

    def read1(self, _: int) -> bytes:
        """The next five thousand records."""
        first, self._next = self._next, min(self._next + 5_000, self._pages)
        chunk = b"".join(_record(number) for number in range(first, self._next))
        self.bytes += len(chunk)
        return chunk


def _record(number: int) -> bytes:
    text = _PAGE.format(
        number=number,
        host=number % 900_001,
        subject=number % 100_003,
        parent=number % 17,
        words=_WORDS,
    ).encode()
    if number % 1_000 == 0:
        return text.replace(b"about subject", b"\x01\xff & <about").replace(b"</d:Title>", b"")
    return text


def _measured(name: str, entries: Iterable[DirectoryEntry], good: str | None) -> str:
    began, count = time.process_time(), Counter[str]()

    def counted() -> Iterator[DirectoryEntry]:
        for entry in entries:
            count["entries"] += 1
            yield entry

    listed = make_sample_set(counted(), [good or "Top"], limit=DEFAULT_MAX_SAMPLES)
    seconds = time.process_time() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{name}: {count['entries']:,} entries in {seconds:.1f} s of CPU time "
        f"({count['entries'] / seconds:,.0f}/s), {len(listed.entries):,} drawn, "
        f"{sum(listed.good):,} of them good; peak memory of the process {peak_mb:.0f} MB"
    )


def main(arguments: list[str]) -> None:
    """Read what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--made-up", type=int, default=0, metavar="PAGES")
    parser.add_argument("--good", default=None, help="a good category; Top when left out")
    given = parser.parse_args(arguments)
    for file in given.files:
        passed_over = SkippedRecords()
        print(_measured(file.name, iter_entries([file], passed_over), given.good))
        print(*passed_over.messages(), sep="\n")
    if given.made_up:
        dump, passed_over = MadeUpDump(given.made_up), SkippedRecords()
        with patch.object(dmoz, "opened", lambda _: dump):
            entries = dmoz.read_dmoz_content(Path("made-up.rdf.u8"), passed_over)
            print(_measured("made-up.rdf.u8", entries, "Top/Subject3"))
        print(f"{dump.bytes / 1e9:.2f} GB", *passed_over.messages(), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
