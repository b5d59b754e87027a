"""Speed and memory of reading and sampling directories.

``python benchmarks/directories.py FILE ...`` reads each file as ``training.directory`` would, and
prints a line.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from focused.directory.directory_entry import DirectoryEntry, SkippedRecords
from focused.directory.directory_reader import iter_entries
from focused.directory.sample_set import make_sample_set
from focused.topic import DEFAULT_MAX_SAMPLES


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
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--good", default=None, help="a good category; Top when left out")
    given = parser.parse_args(arguments)
    for file in given.files:
        passed_over = SkippedRecords()
        print(_measured(file.name, iter_entries([file], passed_over), given.good))
        print(*passed_over.messages(), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
