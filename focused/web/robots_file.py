"""The text of a robots.txt file as groups, delays and sitemaps: RFC 9309, section 2.

The parser takes what the RFC defines, and the slips that are common enough to
be understood by the large crawlers: misspelt "disallow", "user agent", a space
in the place of the colon, versions behind a product token, pieces of a byte
order mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from focused.web.robots_paths import Rule

MAX_ROBOTS_BYTES = 512_000  # 500 KiB, section 2.5
MAX_SITEMAPS = 1_000
# Rules are renewed after a day, and a crawl that waits for a host a million years does not end.
MAX_DELAY_S = 43_200.0

_FIELD = re.compile(
    r"""\s*+ (?: (?P<agent> user[\s_-]*agent )
               | (?P<disallow> d(?:is-?|iss|es)allow | diss?alow | diasllow | disallaw )
               | (?P<allow> allow )
               | (?P<delay> crawl[\s_-]*delay )
               | (?P<sitemap> site[\s_-]*maps? ) )
        (?: \s*+ : (?P<value> .* ) | \s++ (?P<word> \S*+ ) \s*+ )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_SECONDS = re.compile(
    r"((?:\d+\.?\d*|\.\d+)(?:e\d+)?)\s*(?:s|secs?|seconds?)?", re.ASCII | re.IGNORECASE
)
_ALL_ROBOTS = re.compile(r"\*(?!\S)")
_FALSE_MARKS = re.compile(rb"\A(?:\xff\xfe|\xfe\xff)*")
_BOM = re.compile(rb"\xef(?:\xbb\xbf?)?")
_ESCAPED_OCTET = re.compile("[\udc80-\udcff]")


@dataclass(slots=True)
class Group:
    """What is said to one product token (or to ``*``), all its groups together."""

    rules: list[Rule] = field(default_factory=list)
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """``groups`` by lower-case product token; ``sitemaps`` as they stand there, 1,000 at most."""

    groups: dict[str, Group]
    sitemaps: tuple[str, ...]

    def group_of(self, product_token: str) -> Group:
        """Return the group that a crawler has to obey, an empty one when none speaks to it."""
        return self.groups.get(product_token.lower()) or self.groups.get("*") or Group()


def decode_robots(body: bytes) -> str:
    """Return the text of a file: UTF-8, 500 KiB of it, and never half a line.

    Octets that are no UTF-8 become percent escapes, one by one: in a path they
    then match the URLs that have them, and elsewhere they do no harm. A UTF-16
    byte order mark is believed. Content-Type's charset, a server's default more
    often than not, is not.
    """
    if len(body) > MAX_ROBOTS_BYTES:
        body = whole_lines(body)
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in body:
        return body.decode("utf-16", "replace")
    # Without a NUL no field could be read in UTF-16: such marks say nothing.
    body = _FALSE_MARKS.sub(b"", body, count=1)
    start = _BOM.match(body)
    text = body[start.end() if start else 0 :].decode("utf-8", "surrogateescape")
    return _ESCAPED_OCTET.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", text)


def whole_lines(body: bytes) -> bytes:
    """Return 500 KiB of a file that was cut off, and no half line: it would be another rule."""
    body = body[:MAX_ROBOTS_BYTES]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def read_robots(text: str) -> RobotsFile:
    """Read a file's lines; never raises. What is no known line is passed over."""
    groups: dict[str, Group] = {}
    sitemaps: dict[str, None] = {}
    current: dict[str, Group] = {}
    has_rules = False
    for line in re.split(r"[\r\n]+", text):
        match = _FIELD.fullmatch(line.partition("#")[0])
        if match is None:
            continue
        value = (match["value"] or match["word"] or "").strip()
        if match["agent"]:
            if has_rules:
                current, has_rules = {}, False
            if token := _token(value):
                current[token] = groups.setdefault(token, Group())
        elif match["allow"] or match["disallow"]:
            has_rules = True
            if value and current:
                rule = Rule.of(value, allow=bool(match["allow"]))
                for group in current.values():
                    group.rules.append(rule)
        elif match["delay"]:
            for group in current.values():
                group.delay_s = _seconds(value) if group.delay_s is None else group.delay_s
        elif len(sitemaps) < MAX_SITEMAPS:
            sitemaps[value] = None
    return RobotsFile(groups, tuple(sitemaps))


def _token(value: str) -> str:
    """Return the product token a line begins with, lower-case: that of ``Foo/2.1`` is ``foo``."""
    if _ALL_ROBOTS.match(value):
        return "*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _seconds(value: str) -> float | None:
    """``10``, ``.5`` or ``10 s``, 12 h at most; None for what is no number of seconds."""
    match = _SECONDS.fullmatch(value)
    return min(MAX_DELAY_S, float(match[1])) if match else None
