"""The documentation web: Debian's documentation packages under their public addresses.

Which files are pages is told in :mod:`focused.recorded_web.html_files`, what is
added to them in :mod:`focused.recorded_web.builders.docweb_recorder`. Each tier holds the pages
of the one before. Generated API pages count as pages like any other, but the
map says from which tier on a package's are in: those of the packages that
medium adds come in full alone, because they would swamp the rest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from focused.errors import RecordedWebError
from focused.recorded_web.builders.debian_packages import ProgressLine, fetch_packages, unpacked
from focused.recorded_web.builders.docweb_recorder import DocRecorder
from focused.recorded_web.builders.docweb_rules import (
    DATA_FILES,
    RULES_FILE,
    TIERS,
    load_doc_packages,
)
from focused.recorded_web.recorded_web import WEB_FILE, RecordedWebWriter, read_details
from focused.web.urls import host_of

BUILDER = "focused docweb 1"


@dataclass(frozen=True, slots=True)
class BuiltWeb:
    """What a build made. ``fresh`` is False when it stood there already.

    ``pages`` counts the pages, listings included, ``redirects`` the redirects
    beside them; ``download_bytes`` is the size of what they were made from.
    """

    folder: Path
    fresh: bool
    pages: int
    redirects: int
    hosts: int
    download_bytes: int


def build_docweb(folder: Path, tier: str, cache: Path, progress: ProgressLine) -> BuiltWeb:
    """Build the documentation web of a tier at ``folder``, unless it stands there already.

    ``tier`` is ``small``, ``medium`` or ``full``. Packages are downloaded into
    ``cache`` and kept there. The folder appears whole or not at all; a web of
    another tier or an older builder is replaced. Raises RecordedWebError for
    an unknown tier, without apt or network, or when the folder holds anything else.
    """
    if tier not in TIERS:
        raise RecordedWebError(f"tier {tier!r} is unknown: take one of {', '.join(TIERS)}")
    fingerprint = _fingerprint(tier)
    if (standing := existing_web(folder, fingerprint)) is not None:
        progress(f"{folder} is up to date")
        return standing
    wanted = load_doc_packages(tier)
    with RecordedWebWriter(folder, f"docweb-{tier}", BUILDER) as writer:
        debs = fetch_packages([package.package for package in wanted], cache / "debs", progress)
        chosen = [package for package in wanted if package.package in debs]
        recorder = DocRecorder(writer, chosen)
        for number, package in enumerate(chosen, start=1):
            folder_of = cache / "unpacked" / package.package
            with unpacked(debs[package.package], folder_of) as files:
                count = recorder.record(package, files)
            progress(f"{number}/{len(chosen)} {package.package}: {count} pages")
        redirects = recorder.finish()
        built = BuiltWeb(
            folder,
            fresh=True,
            pages=len(recorder.pages),
            redirects=redirects,
            hosts=len({host_of(page) for page in recorder.pages}),
            download_bytes=sum(deb.stat().st_size for deb in debs.values()),
        )
        writer.finish(recorder.labels, {"tier": tier, **build_details(built, fingerprint)})
    return built


def build_details(built: BuiltWeb, fingerprint: str) -> dict[str, object]:
    """What ``web.json`` keeps of a build, for :func:`existing_web` to find again."""
    return {
        "fingerprint": fingerprint,
        "pages": built.pages,
        "redirects": built.redirects,
        "hosts": built.hosts,
        "download_bytes": built.download_bytes,
    }


def existing_web(folder: Path, fingerprint: str) -> BuiltWeb | None:
    """The web at ``folder`` if it was built with this fingerprint; None otherwise."""
    if not (folder / WEB_FILE).is_file():
        return None
    try:
        details = read_details(folder)
        if details.get("fingerprint") != fingerprint:
            return None
        counts = {
            name: int(str(details[name]))
            for name in ("pages", "redirects", "hosts", "download_bytes")
        }
    except (RecordedWebError, KeyError, ValueError):
        return None
    return BuiltWeb(folder, fresh=False, **counts)


def _fingerprint(tier: str) -> str:
    """Changes with the tier, the builder and the data files."""
    digest = hashlib.sha256(f"{BUILDER} {tier}".encode())
    for name in (*DATA_FILES, RULES_FILE):
        digest.update((files("focused.recorded_web") / "data" / name).read_bytes())
    return digest.hexdigest()[:16]
