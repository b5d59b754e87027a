"""Build the documentation web: Debian's documentation packages under their public URLs.

Each tier contains the pages of the previous one. The map says from which tier on a package's
generated API pages are included.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

from focused.errors import RecordedWebError
from focused.recorded_web.builders.built_web import BuiltWeb, build_details, existing_web
from focused.recorded_web.builders.debian_packages import ProgressLine, fetch_packages, unpacked
from focused.recorded_web.builders.docweb_recorder import DocRecorder
from focused.recorded_web.builders.docweb_rules import (
    DATA_FILES,
    RULES_FILE,
    TIERS,
    load_doc_packages,
)
from focused.recorded_web.recorded_web import RecordedWebWriter
from focused.web.urls import host_of

BUILDER = "focused docweb 1"


def build_docweb(folder: Path, tier: str, cache: Path, progress: ProgressLine) -> BuiltWeb:
    """Build the documentation web of a tier at ``folder``, unless it is up to date.

    ``tier`` is ``small``, ``medium`` or ``full``. Packages are downloaded to ``cache`` and kept. A
    web of another tier or an older builder is replaced. Raises RecordedWebError for an unknown
    tier, without apt or network, or if the folder contains something else.
    """
    if tier not in TIERS:
        raise RecordedWebError(f"tier {tier!r} is unknown: take one of {', '.join(TIERS)}")
    fingerprint = _fingerprint(tier)
    if (existing := existing_web(folder, fingerprint)) is not None:
        progress(f"{folder} is up to date")
        return existing
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


def _fingerprint(tier: str) -> str:
    """Return a hash of the tier, the builder and the data files."""
    digest = hashlib.sha256(f"{BUILDER} {tier}".encode())
    for name in (*DATA_FILES, RULES_FILE):
        digest.update((files("focused.recorded_web") / "data" / name).read_bytes())
    return digest.hexdigest()[:16]
