"""How a URL that somebody types may be spelled in the tables of a crawl."""

from __future__ import annotations

from focused.web.urls import normalize_url


def url_spellings(url: str) -> list[str]:
    """The URL as typed, then normalised as the crawl does."""
    typed = url.strip()
    tried = [typed, normalize_url(typed)]
    if "://" not in typed:
        tried += [normalize_url(f"https://{typed}"), normalize_url(f"http://{typed}")]
    return list(dict.fromkeys(spelling for spelling in tried if spelling))
