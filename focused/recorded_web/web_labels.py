"""Read and write ``labels.tsv``: the ground truth of a recorded web, one ``url<TAB>category`` a
line.

A URL may have several lines. Categories are paths such as ``Top/Computers/Databases``; a page of a
category also belongs to its ancestors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from focused.errors import RecordedWebError

LABELS_FILE = "labels.tsv"


def write_web_labels(path: Path, labels: Iterable[tuple[str, str]]) -> int:
    """Write sorted unique lines; return their number.

    Raises RecordedWebError for a URL or category with a tab or line break.
    """
    lines = sorted({_label_line(url, category) for url, category in labels})
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _label_line(url: str, category: str) -> str:
    if not url or not category or any(char in "\t\r\n" for char in url + category):
        raise RecordedWebError(
            f"label {category!r} of {url!r} is empty or holds a tab or line break: "
            "give one URL and one category a line"
        )
    return f"{url}\t{category}\n"


def read_web_labels(path: Path) -> Mapping[str, frozenset[str]]:
    """Return categories by URL; empty without a file.

    Raises RecordedWebError for the first malformed line.
    """
    if not path.exists():
        return {}
    found: dict[str, set[str]] = {}
    for url, category in read_web_label_lines(path):
        found.setdefault(url, set()).add(category)
    shared: dict[frozenset[str], frozenset[str]] = {}
    return {
        url: shared.setdefault(frozen, frozen)
        for url, frozen in ((url, frozenset(names)) for url, names in found.items())
    }


def read_web_label_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the (url, category) pairs in file order."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordedWebError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        url, tab, category = line.rstrip("\r").partition("\t")
        if not tab or not url or not category or "\t" in category:
            raise RecordedWebError(
                f"{path}, line {number}: expected url<TAB>category, found {line[:80]!r}"
            )
        yield url, category
