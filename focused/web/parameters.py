"""Parameters of queries that a user says are noise: ``scope.drop_parameters``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from focused.web.page import Link, Page


class DroppedParameters:
    """Rewrites URLs, and the targets of pages, without some parameters."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` are exact, letter case and all; one that ends in ``*`` is a beginning."""
        patterns = (
            f"{re.escape(name[:-1])}.*" if name.endswith("*") else re.escape(name) for name in names
        )
        self._names = re.compile("|".join(patterns)) if names else None

    def of(self, url: str) -> str:
        """Return a normalised URL without them."""
        path, mark, query = url.partition("?")
        if not mark or self._names is None:
            return url
        drops = self._names.fullmatch
        kept = "&".join(part for part in query.split("&") if not drops(part.partition("=")[0]))
        return f"{path}?{kept}" if kept else path

    def of_target(self, target: str, source: str) -> str:
        """The same for where ``source`` redirects; a parameter that leads on is kept."""
        shorter = self.of(target)
        return target if shorter == source else shorter

    def in_page(self, page: Page) -> Page:
        """Return the page with its targets without them; each target once, never itself."""
        if self._names is None:
            return page
        own_url = self.of(page.url)
        links: dict[str, Link] = {}
        for link in page.links:
            url = self.of(link.url)
            if url != own_url or link.url == url:
                links.setdefault(url, structs.replace(link, url=url))
        canonical = page.canonical and self.of(page.canonical)
        refresh = page.refresh and self.of_target(page.refresh, page.url)
        return replace(page, links=tuple(links.values()), canonical=canonical, refresh=refresh)
