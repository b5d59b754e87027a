"""A recorded web of real variants: manuals in the versions of three Debian releases, and mirrors.

``python benchmarks/variants_web.py webs/variants`` takes each manual of :data:`MANUALS` from the
documentation packages of three releases. Its versions get their publisher's URLs, such as
``docs.python.org/3.9/`` and ``/3.11/``; the middle release's pages also stand on a host that
mirrors manuals, under another path, and each third manual at a host's old name, under the same
path. A portal links to all. Page bodies are unedited. Packages are downloaded into a folder beside
the web, and kept.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from focused.errors import RecordedWebError
from focused.recorded_web.recorded_web import RecordedWebWriter
from focused_lab.builders.debian_packages import last_line, run_tool, unpacked
from focused_lab.builders.docweb import DocRecorder
from focused_lab.builders.docweb_rules import DocPackage, load_doc_packages

RELEASES = ("bullseye", "bookworm", "trixie")
MIDDLE = "bookworm"
MIRROR = "http://manuals.mirror.test/"
PORTAL = "http://portal.test/"
_NAMES_BY_RELEASE = {
    "postgresql-doc-15": {"bullseye": "postgresql-doc-13", "trixie": "postgresql-doc-17"},
    "python3.11-doc": {"bullseye": "python3.9-doc", "trixie": "python3.13-doc"},
}
MANUALS = (
    "postgresql-doc-15", "python3.11-doc", "python-django-doc", "python-sqlalchemy-doc",
    "python-flask-doc", "python-werkzeug-doc", "sphinx-doc", "git-doc", "cmake-doc",
    "apache2-doc", "debian-policy", "debian-reference-en", "developers-reference", "krb5-doc",
    "python-requests-doc", "python-scrapy-doc", "python-pytest-doc", "python-jinja2-doc",
    "mypy-doc", "python-hypothesis-doc", "bind9-doc", "postfix-doc", "putty-doc", "r-doc-html",
    "exim4-doc-html", "debian-faq", "slurm-wlm-doc", "xapian-doc", "python-aiohttp-doc",
    "python-nibabel-doc", "docutils-doc", "python-lxml-doc", "ntpsec-doc", "sqlite3-doc",
)  # fmt: skip
_VERSION = re.compile(r"(?:v?\d[\w.]*|[a-z\d]*-?(?:latest|stable|master|release|current))")
_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+){0,2})")
_OLD_NAMES_EVERY = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """The URL of one version of a manual.

    ``role`` is a release, ``mirror`` or ``old name``; the latter two hold the middle release's
    pages.
    """

    manual: str
    role: str
    base: str


def main() -> None:
    """Download, unpack, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("web", type=Path, help="folder of the web that is made")
    web = parser.parse_args().web
    cache = web.parent / f"{web.name}-packages"
    build(web, cache)


def build(web: Path, cache: Path) -> None:
    """Build the web at ``web``. Raises RecordedWebError without apt or its packages."""
    mapped = {each.package: each for each in load_doc_packages("full")}
    standings: list[Standing] = []
    with RecordedWebWriter(web, web.name, "focused variants 1") as writer:
        recorder = DocRecorder(writer, ())
        for release in RELEASES:
            names = {name: _NAMES_BY_RELEASE.get(name, {}).get(release, name) for name in MANUALS}
            debs = fetch(list(names.values()), release, cache)
            for number, (manual, name) in enumerate(names.items()):
                deb = debs[name]
                package = _as_named(mapped[manual], manual, name)
                with unpacked(deb, cache / "unpacked" / name) as files:
                    for standing in _standings(package, manual, release, deb, number):
                        count = recorder.record(replace(package, base=standing.base), files)
                        print(f"{count:6} pages at {standing.base}", flush=True)
                        standings += [standing] if count else []
        for url, body in _portal(standings):
            writer.add(url, 200, {"content-type": "text/html; charset=utf-8"}, body.encode())
        labels = [
            *recorder.labels,
            *((each.base, f"role/{each.role}/{each.manual}") for each in standings),
        ]
        writer.finish(labels, {"pages": len(recorder.pages)})


def standings(labels: Mapping[str, frozenset[str]]) -> list[Standing]:
    """What :func:`build` wrote among the labels of the web."""
    found = []
    for base, names in labels.items():
        for name in sorted(names):
            if name.startswith("role/"):
                _, role, manual = name.split("/")
                found.append(Standing(manual, role, base))
    return found


def fetch(names: Sequence[str], release: str, cache: Path) -> dict[str, Path]:
    """Download the packages of a release by apt from this machine's archive."""
    folder = cache / release
    folder.mkdir(parents=True, exist_ok=True)
    found = _downloaded(names, folder)
    if len(found) < len(names):
        options = _apt_of(release, cache)
        _run(["apt-get", "-qq", *options, "update"], folder)
        absent = [name for name in names if name not in found]
        _run(["apt-get", "-qq", *options, "download", *absent], folder)
        found = _downloaded(names, folder)
    return found


def _downloaded(names: Sequence[str], folder: Path) -> dict[str, Path]:
    by_name = {deb.name.partition("_")[0]: deb for deb in sorted(folder.glob("*.deb"))}
    return {name: by_name[name] for name in names if name in by_name}


def _apt_of(release: str, cache: Path) -> list[str]:
    """Options that make apt see one release only, without changing the machine's state."""
    state = (cache / f"apt-{release}").resolve()
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    listed = run_tool(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(SIGNED_BY) $(RELEASE)"]
    )
    ours = [line.split() for line in listed.stdout.splitlines()]
    own = next((line for line in ours if len(line) == 3 and line[2] in RELEASES), None)
    if own is None:
        raise RecordedWebError("apt has no Debian release among its sources: this needs Debian")
    sources = state / "sources.list"
    # apt leaves the field as it is where the release has no key of its own.
    signed_by = "" if own[1].startswith("$") else f"[signed-by={own[1]}] "
    sources.write_text(f"deb {signed_by}{own[0]} {release} main\n")
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": state,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _run(command: Sequence[str], folder: Path) -> None:
    done = run_tool(command, folder)
    if done.returncode != 0:
        raise RecordedWebError(f"{' '.join(command[:2])} failed: {last_line(done.stderr)}")


def _as_named(package: DocPackage, manual: str, name: str) -> DocPackage:
    """The map's entry with the root that the package of another release has."""
    here, there = manual.removesuffix("-doc"), name.removesuffix("-doc")
    return replace(package, root=package.root.replace(here, there))


def _standings(
    package: DocPackage, manual: str, release: str, deb: Path, number: int
) -> Iterator[Standing]:
    version = _UPSTREAM.match(deb.name.split("_")[1].replace("%3a", ":"))
    base = _versioned(package.base, version[1] if version else release)
    yield Standing(manual, release, base)
    if release == MIDDLE:
        yield Standing(manual, "mirror", f"{MIRROR}{manual.removesuffix('-doc')}/html/")
        if number % _OLD_NAMES_EVERY == 0:
            yield Standing(manual, "old name", base.replace("://", "://old.", 1))


def _versioned(base: str, version: str) -> str:
    """The base with the version in place of the last folder that looks like one, or at its end."""
    origin, path = base[: base.index("/", 8)], base[base.index("/", 8) :]
    folders = path.strip("/").split("/")
    for place in reversed(range(len(folders))):
        if _VERSION.fullmatch(folders[place]):
            folders[place] = version
            break
    else:
        folders.append(version)
    return f"{origin}/{'/'.join(filter(None, folders))}/"


def _portal(standings: Sequence[Standing]) -> Iterator[tuple[str, str]]:
    """A page that links to all manuals; the root of each host, with its versions."""
    yield PORTAL, _listing("Manuals", [each.base for each in standings])


def _listing(title: str, urls: Sequence[str]) -> str:
    items = "\n".join(f'<li><a href="{url}">{url}</a></li>' for url in urls)
    return f"<html><head><title>{title}</title></head><body><ul>\n{items}\n</ul></body></html>\n"


if __name__ == "__main__":
    main()
