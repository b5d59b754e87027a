"""Versions of pages, for tests of change detection."""

from __future__ import annotations

from focused.crawl.revisits.change_detection import (
    ContentChange,
    HostBoilerplate,
    VersionSignature,
    VersionText,
    page_blocks,
    sign_version,
)


def add_page(
    host: HostBoilerplate, url: str, version: VersionText, change: ContentChange | None = None
) -> VersionSignature:
    """Let a host's boilerplate learn from a fetched page; return the page's signature."""
    host.learn(page_blocks(url, version, change))
    return sign_version(version, host)
