"""The addresses a recorded web answers to: one key for each way to write a URL.

Three kindnesses of real servers are kept, in this order: the exact URL (as the
crawl normalises it); the same URL over the other of http and https; a
directory's page under the name of its file, so that ``.../index.html`` answers
with the page of ``.../`` (the page is stored once, under the directory).
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from focused.web.url import normalise

INDEX_FILE = "index.html"


def url_key(url: str) -> str:
    """The URL normalised, which is its key in the index.

    Raises ValueError when ``url`` is nothing that could be crawled.
    """
    key = normalise(url)
    if key is None:
        raise ValueError(f"not an http or https URL, or far too long: {url[:200]!r}")
    return key


def key_variants(key: str) -> Iterator[str]:
    """The keys to look ``key`` up by, best first."""
    yield key
    yield other_scheme(key)
    path, mark, query = key.partition("?")
    if path.endswith("/" + INDEX_FILE):
        directory = path.removesuffix(INDEX_FILE) + mark + query
        yield directory
        yield other_scheme(directory)


def find_key(url: str, keys: Container[str]) -> str | None:
    """The one of ``keys`` that answers for ``url``; None when there is none."""
    try:
        variants = key_variants(url_key(url))
    except ValueError:
        return None
    return next((variant for variant in variants if variant in keys), None)


def other_scheme(key: str) -> str:
    """The same address over https instead of http, or the other way round."""
    return "http://" + key[8:] if key.startswith("https://") else "https://" + key[7:]
