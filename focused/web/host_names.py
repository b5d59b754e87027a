"""Classify hosts: IP addresses in any notation, private addresses, registered domains.

Pages can link to the crawler's own machine, its network, or a cloud's metadata service (CWE-918).
Python's ``is_global`` differs between versions, so the networks of the IANA special-purpose
registries are listed here.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import ada_url
import xxhash
from publicsuffixlist import PSLFILE, PublicSuffixList

from focused.web.urls import host_of

# RFC 6890 and its registries, multicast (RFC 5771), reserved networks.
_PRIVATE_V4 = tuple(
    IPv4Network(net)
    for net in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # RFC 1918
        "100.64.0.0/10",  # carrier-grade NAT, RFC 6598
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's own service of its machines
        "169.254.0.0/16",  # link-local, with most clouds' metadata services
        "172.16.0.0/12",  # RFC 1918
        "192.0.0.0/24",  # protocol assignments, Oracle's metadata service
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, RFC 7526
        "192.168.0.0/16",  # RFC 1918
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")  # global unicast, RFC 4291
_PRIVATE_V6 = tuple(
    IPv6Network(net)
    for net in (
        "2001::/23",  # protocol assignments, Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation, RFC 9637
    )
)
# Networks with an embedded IPv4 address, and the number of bits to its right.
_EMBEDDING_V6 = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64, RFC 6052
    (IPv6Network("2002::/16"), 80),  # 6to4, RFC 3056
)
# WHATWG's "ends in a number": the host is an IPv4 address or invalid.
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")

IpAddress = IPv4Address | IPv6Address


def is_public_address(address: IpAddress) -> bool:
    """Whether the registries call ``address`` globally reachable.

    An IPv6 address with an embedded IPv4 address (mapped, NAT64, 6to4) is classified as that
    address.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _PRIVATE_V4)
    for network, shift in _EMBEDDING_V6:
        if address in network:
            return is_public_address(IPv4Address((int(address) >> shift) & 0xFFFFFFFF))
    return address in _PUBLIC_V6 and not any(address in network for network in _PRIVATE_V6)


@lru_cache(maxsize=4_096)
def parse_ip_address(host: str) -> IpAddress | None:
    """Return the address that a URL's host (without port) is; None for a name or an invalid host.

    Reads every notation that WHATWG URLs and getaddrinfo(3) accept: ``0x7f.1``, ``2130706433``,
    ``0177.0.0.1``, ``[::1]``, ``fe80::1%eth0``.
    """
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return ip_address(bare)
    except ValueError:
        if not _ENDS_IN_A_NUMBER.fullmatch(bare):
            return None
    try:
        return ip_address(ada_url.URL(f"http://{bare}/").hostname)
    except ValueError:
        return None


def canonical_address(address: str) -> str:
    """Return an IP address in one spelling; an IPv4-mapped address as IPv4.

    Other texts are returned unchanged.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def is_private_host(host: str) -> bool:
    """Whether a URL's host (without port) is a private address or ``localhost``.

    Other names have to be resolved first.
    """
    last = host[-1:]
    # The common case.
    if not (last.isdigit() or last in "]:.tT" or "0x" in host.lower()):
        return False
    if is_loopback_name(host):
        return True
    address = parse_ip_address(host)
    return address is not None and not is_public_address(address)


def is_loopback_name(host: str) -> bool:
    """Whether the name always means this machine (RFC 6761, section 6.3)."""
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


# mDNS (RFC 6762 and its appendix G), home networks (RFC 8375), ICANN's name for private use, which
# clouds' metadata services have, and what routers call their networks.
_LOCAL_SUFFIXES = (
    *(".local", ".internal", ".home.arpa", ".intranet", ".private", ".corp", ".home", ".lan"),
    *(".localdomain", ".domain", ".workgroup"),
)


def is_local_name(host: str) -> bool:
    """Whether a host is a name that exists in local networks only, such as ``intranet``.

    For requests through a proxy, which resolves names in a network that the crawl does not see.
    """
    name = host.lower().removesuffix(".")
    if parse_ip_address(name) is not None:
        return False
    return "." not in name or name.endswith(_LOCAL_SUFFIXES) or is_loopback_name(name)


@lru_cache(maxsize=8_192)
def registered_domain(host: str) -> str:
    """Return the registered domain of a host (with or without port); else the host.

    The private part of the Public Suffix List counts: a blog at a provider is a site of its own.
    Unknown suffixes give the last two labels.
    """
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if name.endswith("]") or name.rpartition(".")[2].isdigit():  # an address
        return name
    return _public_suffixes().privatesuffix(name) or name


@cache
def _public_suffixes() -> PublicSuffixList:
    """Read the bundled list: nothing is fetched. Names are in punycode, as in URLs."""
    with open(PSLFILE, encoding="utf-8") as file:
        rules = [line.strip() for line in file if not line.startswith("//")]
    encoded = (each if each.isascii() else ada_url.idna.encode(each).decode() for each in rules)
    # The library would encode each rule again, which takes most of its time.
    return PublicSuffixList("\n".join(encoded), accept_encoded_idn=False)


@lru_cache(maxsize=10_000)
def site_key_of_host(host: str) -> bytes:
    """Return the key of a host's site, its registered domain: 8 bytes."""
    return xxhash.xxh3_64_digest(registered_domain(host).encode())


def site_key(url: str) -> bytes:
    """Return the key of a URL's site, 8 bytes."""
    return site_key_of_host(host_of(url))
