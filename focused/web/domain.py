"""Which hosts are one site: the domain that somebody registered."""

from __future__ import annotations

from functools import lru_cache

from tldextract import TLDExtract

# The list of suffixes comes with the library: nothing is ever fetched, nothing is cached on disk.
_EXTRACT = TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


@lru_cache(maxsize=8_192)
def registered_domain(host: str) -> str:
    """Return the registered domain of a host, port or none; the host where it has none.

    By the Public Suffix List, the private part included: a blog at a
    provider's is a site of its own. Under suffixes that the list does not
    know it is the last two labels.
    """
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    found = _EXTRACT(name)
    if found.suffix:
        return found.top_domain_under_public_suffix or name
    labels = name.split(".")
    if len(labels) < 2 or labels[-1].isdigit():
        return name
    return ".".join(labels[-2:])
