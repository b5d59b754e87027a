"""Look up, download and unpack Debian packages; read Debian's package index. Needs no root.

Uses ``apt-cache``, ``apt-get download`` (which checks the archive's signed hashes) and ``dpkg-deb
-x``. Downloads stay in the cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import quote

from focused.errors import RecordedWebError

ProgressLine = Callable[[str], None]
_TOOLS = ("apt-get", "apt-cache", "dpkg-deb")
_BATCH = 25


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """A package that apt can download; ``size_bytes`` is the size of the ``.deb``."""

    name: str
    version: str
    architecture: str
    size_bytes: int
    sha256: str

    @property
    def file_name(self) -> str:
        """The file name that ``apt-get download`` uses."""
        version = quote(self.version, safe="+~.-")
        return f"{self.name}_{version.replace('%3A', '%3a')}_{self.architecture}.deb"


def fetch_packages(names: Sequence[str], cache: Path, progress: ProgressLine) -> dict[str, Path]:
    """Return the ``.deb`` files of the packages by name; download those not in ``cache``.

    Packages that this release of Debian lacks are skipped and reported to ``progress``. Raises
    RecordedWebError without apt or package lists, if no package is known, or if a download fails.
    """
    require_tools()
    cache.mkdir(parents=True, exist_ok=True)
    known = _look_up_or_update(names, progress)
    missing = [name for name in names if name not in known]
    if missing:
        progress(f"not in this release of Debian, left out: {', '.join(missing)}")
    wanted = [package for package in known.values() if not _is_cached(package, cache)]
    size_mb = sum(package.size_bytes for package in wanted) / 1e6
    if wanted:
        progress(f"downloading {len(wanted)} packages, {size_mb:.1f} MB")
    for start in range(0, len(wanted), _BATCH):
        _download([package.name for package in wanted[start : start + _BATCH]], cache)
    for package in known.values():
        if not _is_cached(package, cache):
            raise RecordedWebError(
                f"no intact {package.file_name} was downloaded to {cache}: try again"
            )
    return {name: cache / package.file_name for name, package in known.items()}


def unpack(deb: Path, folder: Path) -> None:
    """Unpack a package's files below ``folder``; raises RecordedWebError if it is damaged."""
    folder.mkdir(parents=True, exist_ok=True)
    done = run_tool(["dpkg-deb", "-x", str(deb), str(folder)])
    if done.returncode != 0:
        raise RecordedWebError(
            f"{deb} cannot be unpacked ({last_line(done.stderr)}): remove it and build again"
        )


@contextmanager
def unpacked(deb: Path, folder: Path) -> Iterator[Path]:
    """Unpack a package into ``folder`` for the duration of the context.

    Raises RecordedWebError as :func:`unpack` does.
    """
    try:
        unpack(deb, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parse_packages(text: str) -> dict[str, DebianPackage]:
    """Parse the output of ``apt-cache show``; of several versions the first counts, as for apt."""
    found: dict[str, DebianPackage] = {}
    for fields in parse_stanzas(text.split("\n")):
        if {"Package", "Version", "Size", "SHA256"} <= fields.keys():
            package = DebianPackage(
                fields["Package"],
                fields["Version"],
                fields.get("Architecture", "all"),
                int(fields["Size"]),
                fields["SHA256"],
            )
            found.setdefault(package.name, package)
    return found


def parse_stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each stanza by name; blank lines separate stanzas.

    Continuation lines keep their line breaks and their first space.
    """
    fields: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if not line.strip("\r\n"):
            if fields:
                yield _join_lines(fields)
            fields, name = {}, ""
        elif line.startswith((" ", "\t")):
            if name:
                fields[name].append(line.rstrip("\r\n"))
        else:
            name, _, value = line.partition(":")
            fields[name] = [value.strip()]
    if fields:
        yield _join_lines(fields)


def _join_lines(fields: dict[str, list[str]]) -> dict[str, str]:
    return {name: "\n".join(lines) for name, lines in fields.items()}


def paragraphs(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the paragraphs of a long description (Policy 5.6.13); set-off lines stand alone."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == ".":
            found.append([])
        elif line.startswith("  ") or re.match(r"\s[*-]\s", line):
            found.append([line.strip()])
        else:
            found[-1].append(line.strip())
    joined = (" ".join(" ".join(words).split()) for words in found)
    return tuple(paragraph for paragraph in joined if paragraph)


def require_tools() -> None:
    """Raise RecordedWebError without apt and dpkg."""
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        raise RecordedWebError(
            f"this web is made from Debian packages, and {', '.join(absent)} cannot be found "
            "here: build it on Debian or Ubuntu or in a container of theirs, or use pages of "
            "your own with 'focused web import' (a folder of HTML, or WARC files)"
        )


def _look_up_or_update(names: Sequence[str], progress: ProgressLine) -> dict[str, DebianPackage]:
    known = _look_up(names)
    if len(known) < len(names) and os.geteuid() == 0:
        progress("some packages are unknown: updating the package lists")
        done = run_tool(["apt-get", "-q", "update"])
        if done.returncode == 0:
            known = _look_up(names)
    if not known:
        raise RecordedWebError(
            "apt knows none of the documentation packages: its package lists are missing or "
            "not Debian's; run 'apt-get update' as root, then build again"
        )
    return {name: known[name] for name in names if name in known}


def _look_up(names: Iterable[str]) -> dict[str, DebianPackage]:
    return parse_packages(run_tool(["apt-cache", "show", "--no-all-versions", *names]).stdout)


def _is_cached(package: DebianPackage, cache: Path) -> bool:
    deb = cache / package.file_name
    if not deb.is_file() or deb.stat().st_size != package.size_bytes:
        return False
    with deb.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == package.sha256


def _download(names: Sequence[str], cache: Path) -> None:
    # The _apt user cannot write to a private folder.
    done = run_tool(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names], cache)
    if done.returncode != 0:
        raise RecordedWebError(
            f"apt-get download failed ({last_line(done.stderr)}): check the network, run "
            "'apt-get update' as root when its lists are old, then build again"
        )


def run_tool(
    command: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool in a folder, with English messages, and wait for it."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def last_line(text: str) -> str:
    """Return the last line that is not empty, which has the error message."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


RELATIONS = ("Depends", "Recommends", "Suggests", "Enhances", "Breaks")
_PACKAGE_NAME = re.compile(r"\A[a-z0-9][a-z0-9+.-]+")


@dataclass(frozen=True, slots=True)
class IndexedPackage:
    """A binary package of the index.

    ``related`` are names of packages by relation, one of ``RELATIONS``; all of several
    alternatives. ``paragraphs`` are those of the long description.
    """

    name: str
    source: str
    section: str
    maintainer: str
    maintainer_address: str
    summary: str
    paragraphs: tuple[str, ...]
    related: Mapping[str, tuple[str, ...]]


class PackageIndex:
    """Package lists in a folder of their own, downloaded if missing.

    ``apt-get update`` downloads them with English descriptions; the machine's own package lists are
    not changed. Fields are those of Debian Policy, chapter 5, relations those of chapter 7.
    """

    def __init__(self, folder: Path, progress: ProgressLine) -> None:
        """Raises RecordedWebError without apt, or if the lists cannot be downloaded."""
        require_tools()
        self.folder = folder.absolute()
        self._options = [
            *("-o", f"Dir::State::Lists={self.folder}"),
            # In memory: do not change the machine's own cache.
            *("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="),
            *("-o", "Acquire::Languages=en"),
        ]
        if not any(self.folder.glob("*_Packages*")):
            progress("downloading the package lists")
            self._update()

    @property
    def size_bytes(self) -> int:
        """Size of the downloaded lists."""
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())

    def packages(self) -> dict[str, IndexedPackage]:
        """Return all packages by name, without long descriptions."""
        return parse_index(self._cache("dumpavail"))

    def described(self, names: Collection[str]) -> dict[str, IndexedPackage]:
        """Return the packages of these names, with long descriptions."""
        return parse_index(self._cache("show", "--no-all-versions", *sorted(names)))

    def _cache(self, *arguments: str) -> str:
        return run_tool(["apt-cache", *self._options, *arguments]).stdout

    def _update(self) -> None:
        # The _apt user cannot write to a private folder.
        options = ["-o", "APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any"]
        (self.folder / "partial").mkdir(parents=True, exist_ok=True)
        done = run_tool(["apt-get", "-q", *self._options, *options, "update"])
        if done.returncode != 0 or not any(self.folder.glob("*_Packages*")):
            shutil.rmtree(self.folder)
            raise RecordedWebError(
                f"apt-get update downloaded no package lists ({last_line(done.stderr)}): check the "
                "network and /etc/apt/sources.list, then build again"
            )


def parse_index(text: str) -> dict[str, IndexedPackage]:
    """Parse the index: packages by name; of several versions the first counts.

    Stanzas without name or section are skipped.
    """
    found: dict[str, IndexedPackage] = {}
    for fields in parse_stanzas(text.split("\n")):
        if {"Package", "Section", "Maintainer"} <= fields.keys():
            package = _package(fields)
            found.setdefault(package.name, package)
    return found


def _package(fields: Mapping[str, str]) -> IndexedPackage:
    name, address = parseaddr(fields["Maintainer"])
    description = fields.get("Description-en", fields.get("Description", ""))
    summary, _, rest = description.partition("\n")
    related = {
        relation: parse_relation(fields.get(relation, ""), fields["Package"])
        for relation in RELATIONS
    }
    return IndexedPackage(
        name=fields["Package"],
        source=fields.get("Source", fields["Package"]).split(" ")[0],
        section=fields["Section"].rpartition("/")[2],
        maintainer=name or address,
        maintainer_address=address,
        summary=summary,
        paragraphs=paragraphs(rest.splitlines()),
        related={relation: names for relation, names in related.items() if names},
    )


def parse_relation(value: str, own_name: str) -> tuple[str, ...]:
    """Return the names in a relation: ``a (>= 1) | b:any, c`` gives a, b, c."""
    parts = (part.strip() for part in re.split(r"[,|]", value))
    names = [match[0] for part in parts if (match := _PACKAGE_NAME.match(part))]
    return tuple(dict.fromkeys(name for name in names if name != own_name))
