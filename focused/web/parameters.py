"""Parameters that a user says are noise, or are none: ``scope.drop_parameters``, and ``keep_``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec import structs

from focused.web.page import Link, Page

_NOTHING = "(?!)"


def parameters_in(names: Sequence[str]) -> Callable[[str], object]:
    """Return a test of a parameter's name: is it one of ``names``?

    These are exact, letter case and all; one that ends in ``*`` is a beginning.
    """
    patterns = (
        f"{re.escape(name[:-1])}.*" if name.endswith("*") else re.escape(name) for name in names
    )
    # A bound method of a pattern, and not a lambda: it can be sent to another process.
    return re.compile("|".join(patterns) or _NOTHING, re.DOTALL).fullmatch


class DroppedParameters:
    """Rewrites URLs, and the targets of pages, without some parameters."""

    def __init__(self, names: Sequence[str], kept: Sequence[str] = ()) -> None:
        """Both as in :func:`parameters_in`; one that is in both is kept."""
        self._any = bool(names)
        self._drops, self._keeps = parameters_in(names), parameters_in(kept)

    def of(self, url: str) -> str:
        """Return a normalised URL without them."""
        path, mark, query = url.partition("?")
        if not mark or not self._any:
            return url
        kept = "&".join(part for part in query.split("&") if self._stays(part.partition("=")[0]))
        return f"{path}?{kept}" if kept else path

    def _stays(self, name: str) -> bool:
        return not self._drops(name) or bool(self._keeps(name))

    def of_target(self, target: str, source: str) -> str:
        """The same for where ``source`` redirects; a parameter that leads on is kept."""
        shorter = self.of(target)
        return target if shorter == source else shorter

    def in_page(self, page: Page) -> Page:
        """Return the page with its targets without them; each target once, never itself."""
        if not self._any:
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
