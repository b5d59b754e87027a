"""The map of the documentation web: which package stands where, and its aliases.

Read from the data files ``webmap.tsv``, ``aliases.tsv`` and ``robots.toml``
that ship with the library; their first lines explain the columns.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files

TIERS = ("small", "medium", "full")
DATA_FILES = ("webmap.tsv", "aliases.tsv", "robots.toml")


@dataclass(frozen=True, slots=True)
class DocPackage:
    """One package's documentation: ``root`` in the package is ``base`` on the web.

    ``base`` ends with a slash. ``category`` labels all its pages. ``with_api``
    says that generated API pages are taken, too.
    """

    package: str
    category: str
    root: str
    base: str
    with_api: bool = False


@dataclass(frozen=True, slots=True)
class Alias:
    """Other addresses of mapped pages, as host/path without scheme.

    ``*`` in ``replacement`` stands for the path of any base on that host.
    """

    pattern: re.Pattern[str]
    replacement: str


def doc_packages(tier: str) -> tuple[DocPackage, ...]:
    """The packages of a tier; each tier holds those before it."""
    wanted = TIERS[: TIERS.index(tier) + 1]
    rows = [line.split("\t") for line in _data_lines("webmap.tsv")]
    return tuple(
        DocPackage(package, category, root, base, with_api=api_tier in wanted)
        for package_tier, api_tier, package, category, root, base in rows
        if package_tier in wanted
    )


def aliases() -> tuple[Alias, ...]:
    """The alias rules, in the order they are tried."""
    rows = [line.split("\t") for line in _data_lines("aliases.tsv")]
    return tuple(Alias(re.compile(pattern), replacement) for pattern, replacement in rows)


def disallowed_paths() -> dict[str, list[str]]:
    """Paths that a host's robots.txt keeps crawlers out of."""
    table: dict[str, list[str]] = tomllib.loads(_data("robots.toml"))["disallow"]
    return table


def _data(name: str) -> str:
    return (files("focused.recorded") / "data" / name).read_text(encoding="utf-8")


def _data_lines(name: str) -> list[str]:
    return [line for line in _data(name).splitlines() if line and not line.startswith("#")]
