"""Debian's package index: what each binary package is and what it is related to.

``apt-get update`` brings it into a folder of our own, long descriptions in
English included, so the machine's own package lists are neither needed nor
touched, and root is not needed. The fields are those of Debian Policy,
chapter 5; relations those of chapter 7.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path

from focused.directory.control_fields import paragraphs, stanzas
from focused.errors import RecordedWebError
from focused.recorded.debian_packages import Progress, last_line, require_tools, run_tool

RELATIONS = ("Depends", "Recommends", "Suggests", "Enhances", "Breaks")
_PACKAGE_NAME = re.compile(r"\A[a-z0-9][a-z0-9+.-]+")


@dataclass(frozen=True, slots=True)
class IndexedPackage:
    """A binary package as the index has it.

    ``related`` are names of packages by relation, one of ``RELATIONS``, each once; of
    alternatives all. ``paragraphs`` are those of the long description.
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
    """Package lists in a folder of their own, brought there when it has none."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        """Raises RecordedWebError without apt, or when the lists cannot be had."""
        require_tools()
        self.folder = folder.absolute()
        self._options = [
            *("-o", f"Dir::State::Lists={self.folder}"),
            # In memory: the machine's own cache of its lists stays as it is.
            *("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="),
            *("-o", "Acquire::Languages=en"),
        ]
        if not any(self.folder.glob("*_Packages*")):
            progress("downloading the package lists")
            self._update()

    @property
    def size_bytes(self) -> int:
        """Size of the lists as they were downloaded."""
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())

    def packages(self) -> dict[str, IndexedPackage]:
        """All packages by name, as apt would take them, without long descriptions."""
        return parse_index(self._cache("dumpavail"))

    def described(self, names: Collection[str]) -> dict[str, IndexedPackage]:
        """The packages of these names, with their long descriptions."""
        return parse_index(self._cache("show", "--no-all-versions", *sorted(names)))

    def _cache(self, *arguments: str) -> str:
        return run_tool(["apt-cache", *self._options, *arguments]).stdout

    def _update(self) -> None:
        # The _apt user cannot write to a private folder; unsandboxed root can.
        options = ["-o", "APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any"]
        (self.folder / "partial").mkdir(parents=True, exist_ok=True)
        done = run_tool(["apt-get", "-q", *self._options, *options, "update"])
        if done.returncode != 0 or not any(self.folder.glob("*_Packages*")):
            shutil.rmtree(self.folder)
            raise RecordedWebError(
                f"apt-get update brought no package lists ({last_line(done.stderr)}): check the "
                "network and /etc/apt/sources.list, then build again"
            )


def parse_index(text: str) -> dict[str, IndexedPackage]:
    """Packages by name from stanzas; stanzas without name or section are passed over.

    Of several versions the first counts.
    """
    found: dict[str, IndexedPackage] = {}
    for fields in stanzas(text.split("\n")):
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
    """Names in a relation: ``a (>= 1) | b:any, c`` gives a, b and c; one's own is left out."""
    parts = (part.strip() for part in re.split(r"[,|]", value))
    names = [match[0] for part in parts if (match := _PACKAGE_NAME.match(part))]
    return tuple(dict.fromkeys(name for name in names if name != own_name))
