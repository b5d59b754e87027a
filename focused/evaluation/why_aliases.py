"""Other URLs of a page, as servers and pages say: redirects and canonical links, followed."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

_MAX_HOPS = 20
_REDIRECTED, _NOT_FETCHED = "redirected", "not fetched"


@dataclass(frozen=True, slots=True)
class Alias:
    """Another URL of what was asked about, and what came of it: outcome, or kind of failure.

    ``says``: where a redirect ``led``, which URL a page ``names`` as canonical, or by which
    page, that came, this one is ``named``.
    """

    says: str
    url: str
    outcome: str


def led_to(pages: pd.DataFrame, url: str) -> tuple[Alias, ...]:
    """Where a redirect led, hop by hop; or the URL that a page names as its own."""
    aliases: list[Alias] = []
    seen = {url}
    while len(aliases) < _MAX_HOPS and isinstance(target := pages.at[url, "points_to"], str):
        redirected = pages.at[url, "outcome"] == _REDIRECTED
        aliases.append(Alias("led" if redirected else "names", target, _came(pages, target)))
        if not redirected or target in seen or target not in pages.index:
            break
        seen.add(target)
        url = target
    return tuple(aliases)


def named_by(pages: pd.DataFrame, url: str) -> tuple[Alias, ...]:
    """The first page that came and names ``url`` as its own, if one does."""
    naming = pages.index[pages["points_to"].eq(url) & pages["outcome"].ne(_REDIRECTED)]
    return tuple(Alias("named", str(first), _came(pages, str(first))) for first in naming[:1])


def _came(pages: pd.DataFrame, url: str) -> str:
    """What became of a URL, in a word."""
    if url not in pages.index:
        return _NOT_FETCHED
    failure = pages.at[url, "failure"]
    return failure if isinstance(failure, str) and failure else str(pages.at[url, "outcome"])
