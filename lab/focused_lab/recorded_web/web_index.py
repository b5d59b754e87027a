"""Index of a recorded web: URL -> file, offset, length; and the URLs that each page answers to.

``index.tsv`` is a cache beside the WARC files. It is rebuilt if it is missing or unreadable, or
names other files or sizes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from focused.errors import RecordedWebError
from focused.files import write_atomically
from focused.web.urls import normalize_url
from focused.web.warc_reader import DamagedRecord, WarcResponse, read_responses

INDEX_FILE = "index.tsv"
_FORMAT = "#focused-index 1"


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Location of a response's gzip member; ``offset`` and ``length`` in bytes."""

    file: str
    offset: int
    length: int
    status: int


@dataclass(slots=True)
class WebIndex:
    """Locations by URL key, in recorded order; ``damaged`` counts unreadable records."""

    locations: dict[str, RecordLocation] = field(default_factory=dict)
    damaged: int = 0


def load_index(folder: Path) -> WebIndex:
    """Read the folder's index from its cache, or build it from the WARC files.

    Raises RecordedWebError if the folder has no WARC file, or one whose records share a gzip
    member.
    """
    warcs = sorted(folder.glob("*.warc.gz"))
    if not warcs:
        raise RecordedWebError(
            f"{folder} holds no *.warc.gz file, so it is not a recorded web: "
            "build or import one with 'focused web'"
        )
    return _read_cache(folder, warcs) or _rebuild(folder, warcs)


def write_index(folder: Path, index: WebIndex) -> None:
    """Write the cache, unless the folder is read-only."""
    warcs = sorted(folder.glob("*.warc.gz"))
    lines = [_signature(warcs, index.damaged)]
    lines += [
        f"{key}\t{place.file}\t{place.offset}\t{place.length}\t{place.status}"
        for key, place in index.locations.items()
    ]
    with suppress(OSError):
        write_atomically(folder / INDEX_FILE, ("\n".join(lines) + "\n").encode())


def _signature(warcs: Sequence[Path], damaged: int) -> str:
    """Return the first line of the cache, which differs when the WARC files change."""
    sizes = (f"{warc.name}={warc.stat().st_size}" for warc in warcs)
    return "\t".join([_FORMAT, *sizes, f"damaged={damaged}"])


def _read_cache(folder: Path, warcs: Sequence[Path]) -> WebIndex | None:
    try:
        lines = (folder / INDEX_FILE).read_text(encoding="utf-8").splitlines()
        damaged = int(lines[0].rpartition("\tdamaged=")[2])
        if lines[0] != _signature(warcs, damaged):
            return None
        locations: dict[str, RecordLocation] = {}
        for line in lines[1:]:
            key, file, offset, length, status = line.split("\t")
            locations[key] = RecordLocation(file, int(offset), int(length), int(status))
    except (OSError, ValueError, IndexError):
        return None
    return WebIndex(locations, damaged)


def _rebuild(folder: Path, warcs: Sequence[Path]) -> WebIndex:
    index = WebIndex()
    for warc in warcs:
        found = list(_scan(warc))
        ends = [offset for offset, _ in found[1:]] + [warc.stat().st_size]
        for (offset, record), end in zip(found, ends, strict=True):
            if isinstance(record, str):
                index.damaged += 1
                continue
            if end == offset:
                raise RecordedWebError(
                    f"{warc}: its records share one gzip stream, so single pages cannot be "
                    "reached: bring it in with 'focused web import'"
                )
            key, status = record
            index.locations.setdefault(key, RecordLocation(warc.name, offset, end - offset, status))
    if not index.locations:
        raise RecordedWebError(
            f"{folder}: its WARC files hold no readable HTTP response "
            f"({index.damaged} damaged): build or import the web again"
        )
    write_index(folder, index)
    return index


def _scan(warc: Path) -> list[tuple[int, tuple[str, int] | str]]:
    """Return (offset, (key, status) or the reason why it is unreadable) for each response."""
    found: list[tuple[int, tuple[str, int] | str]] = []
    for item in read_responses(warc):
        found.append((item.offset, _key_and_status(item)))
    return found


def _key_and_status(item: WarcResponse | DamagedRecord) -> tuple[str, int] | str:
    if isinstance(item, DamagedRecord):
        return item.reason
    try:
        return url_key(item.url), item.status
    except ValueError as error:
        return str(error)


INDEX_PAGE = "index.html"


def url_key(url: str) -> str:
    """Return the URL's key in the index: the normalised URL.

    Raises ValueError for a URL that cannot be crawled.
    """
    key = normalize_url(url)
    if key is None:
        raise ValueError(f"not an http or https URL, or too long: {url[:200]!r}")
    return key


def key_variants(key: str) -> Iterator[str]:
    """Yield the keys to look ``key`` up by, best first.

    The exact URL, then the other of http and https, then the folder of an ``index.html``.
    """
    yield key
    yield other_scheme(key)
    path, mark, query = key.partition("?")
    if path.endswith("/" + INDEX_PAGE):
        directory = path.removesuffix(INDEX_PAGE) + mark + query
        yield directory
        yield other_scheme(directory)


def find_key(url: str, keys: Container[str]) -> str | None:
    """Return the one of ``keys`` that answers for ``url``, or None."""
    try:
        variants = key_variants(url_key(url))
    except ValueError:
        return None
    return next((variant for variant in variants if variant in keys), None)


def other_scheme(key: str) -> str:
    """Return the URL over the other of http and https."""
    return "http://" + key[8:] if key.startswith("https://") else "https://" + key[7:]
