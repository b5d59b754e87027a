"""Where two URLs begin to be alike: prefixes that end before a slash, and the endings after."""

from __future__ import annotations

from collections.abc import Iterator

MAX_FOLDERS = 8
"""A prefix has so many folders at most: a bound on the work for one URL."""


def endings(url: str) -> Iterator[tuple[str, str]]:
    """Each (prefix, ending) that a normalised URL is made of, its site's first.

    An ending begins with a slash of the path; query and all belong to it.
    """
    path_ends = url.find("?")
    at = url.index("/", url.index("//") + 2)
    for _ in range(MAX_FOLDERS + 1):
        yield url[:at], url[at:]
        at = url.find("/", at + 1, None if path_ends < 0 else path_ends)
        if at < 0:
            return


def common_ending(url: str, other: str) -> tuple[str, str, str] | None:
    """The prefixes of two different normalised URLs before the longest ending that both have.

    As (prefix of the one, prefix of the other, ending). None when they end differently, or
    after more folders than :data:`MAX_FOLDERS`.
    """
    head, query, values = url.partition("?")
    other_head, other_query, other_values = other.partition("?")
    if (query, values) != (other_query, other_values) or url == other:
        return None
    here, there = _segments(head), _segments(other_head)
    alike = 0
    while alike < min(len(here), len(there)) and here[-1 - alike] == there[-1 - alike]:
        alike += 1
    if alike == 0 or max(len(here), len(there)) - alike > MAX_FOLDERS:
        return None
    ending = "/" + "/".join(here[-alike:])
    return head[: -len(ending)], other_head[: -len(ending)], ending + query + values


def _segments(head: str) -> list[str]:
    return head.split("/")[3:]
