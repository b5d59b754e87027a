"""Normalise URLs: one spelling for each page.

URLs are parsed by the WHATWG standard (ada-url), as in browsers. These rules apply in addition:

1. Only http and https.
2. No fragment, no credentials, no trailing dot on the host.
3. A host name is 1 to 63 letters, digits, hyphens or underscores between
   dots, 253 characters in all.
4. Escapes of unreserved characters are decoded, others in capitals (RFC 3986,
   section 6.2.2), in parts where every "%" begins an escape.
5. No empty query, no empty parameters, no tracking parameters, no session ids.
6. At most 2,000 characters.

:func:`normalize_url` is idempotent and never raises. The other functions expect normalised URLs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import ada_url
import endec

MAX_URL_CHARS = 2_000

# Longer raw attributes (mostly data: URLs) are not parsed.
_MAX_RAW_CHARS = 4 * MAX_URL_CHARS
_MAX_ROUNDS = 8
_MAX_HOST_CHARS = 253  # RFC 1035, section 2.3.4, less the root's dot
_MAX_ORIGIN_CHARS = _MAX_HOST_CHARS + len("https://:65535/")

# Parameters that identify a campaign, a click or a session.
_NOISE_NAMES = re.compile(
    r"""(?: utm_.* | mtm_.* | pk_(?:campaign|kwd|source|medium|content|cid)
        | (?:g|d|fb|y|tw|tt)clid | msclkid | gclsrc | gbraid | wbraid | igshid | srsltid | wickedid
        | li_fat_id | mc_[ce]id | mkt_tok | _g[al] | _hs(?:enc|mi) | __h(?:ssc|stc|sfp)
        | hsctatracking | vero_id | oly_(?:anon|enc)_id
        | phpsessid | jsessionid | aspsessionid.*
        )""",
    re.IGNORECASE | re.VERBOSE,
)
# A session only if the value looks random: "sid" may be a story, "session_id=12" a session of a
# conference.
_SESSION_NAMES = frozenset(
    ("sid", "session_id", "sessionid", "session-id", "cfid", "cftoken", "zenid", "oscsid")
)
_SESSION_SHAPED = re.compile(r"[0-9A-Za-z_-]{16,}")
_LETTER_BY_DIGIT = re.compile(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", re.ASCII)
_SESSION_CHANGES = 3
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/;?]*", re.IGNORECASE)

_LABEL = r"[a-z0-9_-]{1,63}"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

# Links that WHATWG parsing does not change need no parser. A segment may not begin with a dot (dot
# segments); a host name may not end in a number (IPv4).
_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*+"
_PLAIN_PATH = rf"(?:{_SEGMENT}/)*+(?:{_SEGMENT})?+"
_PLAIN_QUERY = r"[A-Za-z0-9_.~=&/:@+,-]*+"
_PLAIN_RELATIVE = re.compile(rf"(/|(?:\.\./)*+)({_PLAIN_PATH})(?:\?({_PLAIN_QUERY}))?+")
_NAME = (
    rf"(?=[a-z0-9.-]{{1,{_MAX_HOST_CHARS}}}[:/])(?!xn--)"
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.(?!xn--))+[a-z]{2,63}"
)
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PORT = r":(?!(?:80|443)/)[1-9][0-9]{0,3}"
_PLAIN_ORIGIN = re.compile(rf"https?://(?:{_NAME}|{_BYTE}(?:\.{_BYTE}){{3}})(?:{_PORT})?/")
_PLAIN_REST = re.compile(rf"({_PLAIN_PATH})(?:\?({_PLAIN_QUERY}))?+")


def normalize_url(url: str, base: str | None = None) -> str | None:
    """Return the normalised spelling of a URL, or None if it cannot be crawled.

    ``url`` may be relative to ``base``, which is absolute. The result is None for a URL that cannot
    be parsed, is neither http nor https, has an impossible host, or has more than 2,000 characters
    once normalised.
    """
    start = url.partition("#")[0]
    plain = _match_plain_url(start)
    if plain is not None:
        return _join_plain(start[: plain.end(1)], plain[2])
    if base is None:
        return _parse_and_normalise(url, None)
    return make_resolver(base)(url)


@lru_cache(maxsize=512)
def make_resolver(base: str, charset: str = "utf-8") -> Callable[[str], str | None]:
    """Return a function that normalises a page's links against its ``base``.

    Equals ``normalize_url(url, base)``, but is faster: work that depends on the base is done once.
    ``charset`` is the page's encoding, which :func:`encode_query` applies to a link's query.
    """
    clean_base = normalize_url(base)
    if clean_base is None:
        return lambda url: _parse_and_normalise(encode_query(url, charset), base)
    origin = clean_base[: clean_base.index("/", 8)]
    own = clean_base.partition("?")[0]
    folder = own[: own.rindex("/") + 1]

    def resolve(url: str) -> str | None:
        start = url.partition("#")[0]
        if not start:
            return clean_base
        if start.startswith("http"):
            plain = _match_plain_url(start)
            if plain is not None:
                return _join_plain(start[: plain.end(1)], plain[2])
        plain = _PLAIN_RELATIVE.fullmatch(start)
        if plain is not None:
            lead, path, query = plain.groups()
            if lead:
                path = (
                    f"{origin}/" if lead == "/" else _ancestor_folder(folder, len(lead) // 3)
                ) + path
            else:
                path = folder + path if path else own
            return _join_plain(path, query)
        return _parse_and_normalise(encode_query(url, charset), clean_base)

    return resolve


def _match_plain_url(url: str) -> re.Match[str] | None:
    """Match path and query of an absolute URL that no parser would change."""
    root = url.find("/", 8, _MAX_ORIGIN_CHARS) + 1
    return _PLAIN_REST.fullmatch(url, root) if _is_plain_origin(url[:root]) else None


@lru_cache(maxsize=4_096)
def _is_plain_origin(origin: str) -> bool:
    return _PLAIN_ORIGIN.fullmatch(origin) is not None


def _ancestor_folder(folder: str, levels: int) -> str:
    """Return the folder ``levels`` above, at most the root."""
    root = folder.index("/", 8)
    end = len(folder) - 1
    for _ in range(levels):
        if end <= root:
            break
        end = folder.rindex("/", root, end)
    return folder[: end + 1]


def _join_plain(path: str, query: str | None) -> str | None:
    """Return a URL from parts that no parser would change."""
    if query:
        query = _clean_query(query)
    url = f"{path}?{query}" if query else path
    return url if len(url) <= MAX_URL_CHARS else None


def _parse_and_normalise(url: str, base: str | None) -> str | None:
    """Parse, then apply the rules until nothing changes.

    One round is enough without ";": removing a session id can leave a dot segment.
    """
    # Keep the "#" of the fragment: the parser trims blanks at the end of a URL, not before a "#".
    start, hash_, _ = url.partition("#")
    if len(start) > _MAX_RAW_CHARS:
        return None
    url = _fix_surrogates(start) + hash_
    try:
        parsed = ada_url.normalize_url(url) if base is None else ada_url.join_url(base, url)
        for _ in range(_MAX_ROUNDS):
            clean = _apply_rules(parsed)
            if clean is None or clean == parsed or ";" not in parsed:
                break
            parsed = ada_url.normalize_url(clean)
        else:
            return None
    except ValueError:  # also UnicodeEncodeError: lone surrogates in the base
        return None
    return clean if clean is not None and len(clean) <= MAX_URL_CHARS else None


def _fix_surrogates(url: str) -> str:
    """Join surrogate pairs and replace lone surrogates with U+FFFD, as browsers do."""
    if url.isascii() or not _SURROGATE.search(url):
        return url
    return url.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _apply_rules(href: str) -> str | None:
    scheme, _, rest = href.partition("://")
    if scheme not in ("http", "https"):
        return None
    authority, _, tail = rest.partition("/")
    host = _clean_host(authority)
    if host is None:
        return None
    path, _, query = tail.partition("#")[0].partition("?")
    path = _unescape(path)
    if ";" in path:
        path = _PATH_SESSION.sub("", path)
    if query:
        query = _clean_query(_unescape(query))
    return f"{scheme}://{host}/{path}?{query}" if query else f"{scheme}://{host}/{path}"


def _clean_host(authority: str) -> str | None:
    """Remove credentials and a trailing dot; return None for an impossible host."""
    address = authority.rpartition("@")[2]
    bracket = address.rfind("]") + 1  # an IPv6 address has colons of its own
    name, colon, port = address[bracket:].partition(":")
    host = address[:bracket] + name
    host = host.removesuffix(".")
    if len(host) > _MAX_HOST_CHARS or not _HOST.fullmatch(host):
        return None
    return host + colon + port


def _unescape(part: str) -> str:
    """Decode escaped unreserved characters, write other escapes in capitals.

    A part with a stray "%" is not changed: decoding beside it could create an escape ("%%32e").
    """
    if "%" not in part or _STRAY_PERCENT.search(part):
        return part
    return _PERCENT.sub(_unescape_one, part)


def _unescape_one(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    if char.isascii() and (char.isalnum() or char in "-._~"):
        return char
    return match[0].upper()


def _clean_query(query: str) -> str:
    return "&".join(part for part in query.split("&") if part and not _is_noise_parameter(part))


def _is_noise_parameter(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if _is_noise_name(name):
        return True
    return name.lower() in _SESSION_NAMES and _is_session_id(value)


@lru_cache(maxsize=1_024)
def _is_noise_name(name: str) -> bool:
    return _NOISE_NAMES.fullmatch(name) is not None


def _is_session_id(value: str) -> bool:
    """Whether a parameter's value looks machine-generated."""
    if not _SESSION_SHAPED.fullmatch(value):
        return False
    return value.isdigit() or len(_LETTER_BY_DIGIT.findall(value)) >= _SESSION_CHANGES


def host_of(url: str) -> str:
    """Return the host of a normalised URL, with the port unless it is the scheme's default."""
    return url.split("/", 3)[2]


def path_depth(url: str) -> int:
    """Return how many levels a normalised URL lies below the root; an index page counts as its
    folder.
    """
    path = url.partition("#")[0].partition("?")[0]
    segments = list(filter(None, path.split("/")[3:]))
    if segments and segments[-1].startswith("index."):
        segments.pop()
    return len(segments)


def directory_of(url: str) -> str:
    """Return host and path, up to the last slash of the path, of a normalised URL.

    http and https have the same directories. Queries are ignored.
    """
    _, _, rest = url.partition("?")[0].partition("://")
    return rest[: rest.rfind("/") + 1]


def robots_url(url: str) -> str:
    """Return the URL of the robots.txt for a normalised URL (RFC 9309, section 2.3)."""
    scheme, _, host, _ = url.split("/", 3)
    return f"{scheme}//{host}/robots.txt"


_TRIMMED_CHARS = "".join(map(chr, range(0x21)))  # by the URL parser, at either end
_UNESCAPED_BYTES = frozenset(range(0x80)) - {0x0E, 0x0F, 0x1B}  # ISO-2022-JP shifts by these
_ESCAPES = {byte: f"%{byte:02X}" for byte in range(0x100) if byte not in _UNESCAPED_BYTES}
_UTF8_CHARSETS = frozenset({"utf-8", "utf-16le", "utf-16be", "replacement"})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_query(url: str, charset: str) -> str:
    """Return ``url`` with the non-ASCII characters of its query percent-encoded in ``charset``.

    The URL standard's percent-encoding after encoding (section 1.3): a server that publishes pages
    in windows-1251 expects queries in windows-1251. Paths and hosts are UTF-8 on any page.
    ``charset`` is a name of the Encoding Standard. Characters that it lacks become character
    references (``%26%231234%3B``), as in forms. The URL may be relative and may have a fragment.
    """
    if charset in _UTF8_CHARSETS or (url.isascii() and charset != "iso-2022-jp"):
        return url
    rest, hash_, fragment = url.partition("#")
    start, mark, query = rest.lstrip(_TRIMMED_CHARS).partition("?")
    query = _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", query)
    query = query.translate({ord(char): _character_reference(char, charset) for char in set(query)})
    escaped = endec.encode(query, charset).decode("latin-1").translate(_ESCAPES)
    return f"{start}{mark}{escaped}{hash_}{fragment}"


def _character_reference(char: str, charset: str) -> str:
    """Return the escaped reference to a character that ``charset`` lacks, or the character."""
    encoded = endec.encode(char, charset, errors="xmlcharrefreplace")
    return f"%26%23{encoded[2:-1].decode()}%3B" if encoded.startswith(b"&#") else char
