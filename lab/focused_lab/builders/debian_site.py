"""Build Debian's package index as a web: pages of packages, sources and maintainers.

Pages have the URLs of the public sites: packages (packages.debian.org), sources of several packages
(tracker.debian.org), maintainers of several packages (qa.debian.org). Sections (games, science,
mail ...) are not on the pages: they become the labels, ``Top/Software/Games``. A source has a label
if its packages share a section.

Of some 63,000 packages the web contains those in ``SECTIONS``, without transitional packages, and
the libraries that at least ``_LIBRARY_USERS`` of them depend on.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, quote_plus

from focused_lab.builders.built_web import (
    BuiltWeb,
    ReferenceSite,
    SitePage,
    build_site,
    contents_pages,
    headed_list,
    link,
)
from focused_lab.builders.debian_packages import (
    RELATIONS,
    IndexedPackage,
    PackageIndex,
    ProgressLine,
)

BUILDER = "focused debian 1"
HOME = "https://packages.debian.org/stable/"
_SECTION_NAMES = """
    admin comm database editors education electronics embedded fonts games gnome graphics
    hamradio httpd interpreters kde mail math misc net news otherosfs science shells sound tex
    text utils vcs video web x11 xfce
"""
SECTIONS = frozenset(_SECTION_NAMES.split())
_LIBRARY_USERS = 10
_HOSTS = 3


def build_debian_site(folder: Path, cache: Path, progress: ProgressLine) -> BuiltWeb:
    """Build the web of Debian's packages at ``folder``, unless it is up to date.

    The package lists are downloaded to ``cache`` and kept: the same lists give the same web. Raises
    RecordedWebError without apt or network, or if the folder contains something else.
    """

    def make() -> ReferenceSite:
        index = PackageIndex(cache / "lists", progress)
        chosen = index.described(choose_packages(index.packages()))
        pages, labels = debian_pages(chosen), debian_labels(chosen)
        return ReferenceSite(pages, labels, listed_at(index.folder), _HOSTS, index.size_bytes)

    return build_site(folder, "debian", BUILDER, progress, make)


def listed_at(lists: Path) -> datetime:
    """Return when the newest of the package lists was made, in UTC."""
    newest = max(file.stat().st_mtime for file in lists.glob("*_Packages*"))
    return datetime.fromtimestamp(int(newest), UTC)


def choose_packages(index: Mapping[str, IndexedPackage]) -> list[str]:
    """Return the names of the packages in the web."""
    own = {
        name
        for name, package in index.items()
        if package.section in SECTIONS and "transitional" not in package.summary.casefold()
    }
    users = Counter(used for name in own for used in index[name].related.get("Depends", ()))
    libraries = {name for name, count in users.items() if count >= _LIBRARY_USERS and name in index}
    return sorted(own | libraries)


def debian_labels(packages: Mapping[str, IndexedPackage]) -> list[tuple[str, str]]:
    """Return (URL, category) of packages and sources."""
    labels = [(package_url(p.name), _category(p.section)) for p in packages.values()]
    for source, binaries in _sources(packages).items():
        sections = {package.section for package in binaries}
        if len(sections) == 1:
            labels.append((source_url(source), _category(sections.pop())))
    return sorted(labels)


def debian_pages(packages: Mapping[str, IndexedPackage]) -> Iterator[SitePage]:
    """Yield home, contents, packages, sources and maintainers."""
    ordered = sorted(packages.values(), key=lambda package: package.name)
    groups: dict[str, list[str]] = {}
    for package in ordered:
        groups.setdefault(_contents_name(package.name), []).append(_entry(package))
    title = "Debian packages"
    home = SitePage(HOME, title, f"<h1>{title}</h1>\n<p>All packages by the first letters.</p>")
    yield from contents_pages(home, f"{HOME}contents/", groups)
    sources = _sources(packages)
    maintainers = _maintainers(ordered)
    for package in ordered:
        siblings = sources.get(package.source, ())
        yield _package_page(package, packages, siblings, maintainers)
    for source, binaries in sources.items():
        yield _source_page(source, binaries, maintainers)
    for address, maintained in maintainers.items():
        name = maintained[0].maintainer
        body = f"<h1>{html.escape(name)}</h1>\n"
        yield SitePage(
            maintainer_url(address),
            f"Packages overview for {name}",
            body + headed_list("Packages", list(map(_entry, maintained))) + _footer(),
        )


def package_url(name: str) -> str:
    """Return the URL of a package's page."""
    return HOME + quote(name, safe="+")


def source_url(name: str) -> str:
    """Return the URL of a source's page."""
    return "https://tracker.debian.org/pkg/" + quote(name, safe="+")


def maintainer_url(address: str) -> str:
    """Return the URL of the page of a maintainer with this mail address."""
    return "https://qa.debian.org/developer.php?login=" + quote_plus(address)


def _package_page(
    package: IndexedPackage,
    packages: Mapping[str, IndexedPackage],
    siblings: Sequence[IndexedPackage],
    maintainers: Collection[str],
) -> SitePage:
    source = link(source_url(package.source), package.source) if siblings else package.source
    lists = [
        headed_list(
            relation,
            [
                _entry(packages[name])
                for name in package.related.get(relation, ())
                if name in packages
            ],
        )
        for relation in RELATIONS
    ]
    others = [_entry(other) for other in siblings if other.name != package.name]
    body = (
        f"<h1>Package: {html.escape(package.name)}</h1>\n<h2>{html.escape(package.summary)}</h2>\n"
        + "\n".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in package.paragraphs)
        + f"\n<p>Maintainer: {_maintainer(package, maintainers)}. Source: {source}.</p>\n"
        + "".join(lists)
        + headed_list("From the same source", others)
        + _footer(package.name)
    )
    return SitePage(package_url(package.name), f"{package.name}: {package.summary}", body)


def _source_page(
    source: str, binaries: Sequence[IndexedPackage], maintainers: Collection[str]
) -> SitePage:
    body = (
        f"<h1>{html.escape(source)}</h1>\n"
        f"<p>Maintainer: {_maintainer(binaries[0], maintainers)}.</p>\n"
        + headed_list("Binaries", list(map(_entry, binaries)))
        + _footer()
    )
    return SitePage(source_url(source), f"{source} - source package", body)


def _maintainer(package: IndexedPackage, maintainers: Collection[str]) -> str:
    if package.maintainer_address in maintainers:
        return link(maintainer_url(package.maintainer_address), package.maintainer)
    return html.escape(package.maintainer)


def _sources(packages: Mapping[str, IndexedPackage]) -> dict[str, list[IndexedPackage]]:
    """Return the packages of each source that has several."""
    found: dict[str, list[IndexedPackage]] = {}
    for name in sorted(packages):
        found.setdefault(packages[name].source, []).append(packages[name])
    return {source: found[source] for source in sorted(found) if len(found[source]) > 1}


def _maintainers(packages: Sequence[IndexedPackage]) -> dict[str, list[IndexedPackage]]:
    """Return the packages by mail address of each maintainer who has several."""
    found: dict[str, list[IndexedPackage]] = {}
    for package in packages:
        if package.maintainer_address:
            found.setdefault(package.maintainer_address, []).append(package)
    return {address: found[address] for address in sorted(found) if len(found[address]) > 1}


def _entry(package: IndexedPackage) -> str:
    return f"{link(package_url(package.name), package.name)} {html.escape(package.summary)}"


def _footer(name: str = "") -> str:
    contents = f" {link(f'{HOME}contents/{_contents_name(name)}.html', 'Contents')}" if name else ""
    return f'<p class="nav">{link(HOME, "Home")}{contents}</p>'


def _contents_name(name: str) -> str:
    """Return the first letter, or four letters of a library, as in Debian's archive."""
    return name[:4] if name.startswith("lib") and len(name) > 3 else name[:1]


def _category(section: str) -> str:
    return "Top/Software/" + "-".join(word.capitalize() for word in section.split("-"))
