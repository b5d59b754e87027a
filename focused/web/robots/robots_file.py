"""Parse a robots.txt file (RFC 9309, section 2) and match paths against its rules.

The parser accepts common mistakes as large crawlers do: misspelt "disallow", "user agent", a space
in place of the colon, versions after a product token, fragments of a byte order mark.

Paths are compared in one spelling of their octets. Escapes of unreserved characters and of
delimiters that mean the same escaped or not (``;`` and ``%3B``) are decoded; everything else is
percent-encoded. An escaped slash or question mark in the path is not a delimiter; in the query it
is the same, as in the RFC's example ``?baz=https://foo.bar``. Octets are never interpreted as
characters: ``%E9`` and ``%E8`` are two paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

MAX_ROBOTS_BYTES = 512_000  # 500 KiB, section 2.5
MAX_QUICK_ROBOTS_BYTES = 50_000
"""Longer files are parsed in a parser process."""
MAX_SITEMAPS = 1_000
# 12 h: rules are refreshed after a day.
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
    r"((?:\d++(?:\.\d*+)?+|\.\d++)(?:e\d++)?+)\s*+(?:s|secs?|seconds?)?", re.ASCII | re.IGNORECASE
)
_LINE_BREAKS = re.compile(r"[\r\n]+")
_ALL_ROBOTS = re.compile(r"\*(?!\S)")
_FALSE_MARKS = re.compile(rb"\A(?:\xff\xfe|\xfe\xff)*")
_BOM = re.compile(rb"\xef(?:\xbb\xbf?)?")
_ESCAPED_OCTET = re.compile("[\udc80-\udcff]")


class RobotsFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a file means for one product token; ``sitemaps`` unresolved, 1,000 at most.

    The rules are those of all groups that name the token, else of all groups for ``*``.
    """

    product_token: str
    matcher: PathMatcher
    delay_s: float | None
    sitemaps: tuple[str, ...]

    @property
    def memory_bytes(self) -> int:
        """About how much memory this takes."""
        return self.matcher.memory_bytes + sum(100 + len(url) for url in self.sitemaps)


def decode_robots(body: bytes) -> str:
    """Decode a file as UTF-8: at most 500 KiB, whole lines only.

    Octets that are not UTF-8 become percent escapes, which match URLs that contain them. A UTF-16
    byte order mark is honoured, the charset of the Content-Type header is not.
    """
    if len(body) > MAX_ROBOTS_BYTES:
        body = cut_to_whole_lines(body)
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in body:
        return body.decode("utf-16", "replace")
    # Without a NUL it is not UTF-16.
    body = _FALSE_MARKS.sub(b"", body, count=1)
    start = _BOM.match(body)
    text = body[start.end() if start else 0 :].decode("utf-8", "surrogateescape")
    return _ESCAPED_OCTET.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", text)


def cut_to_whole_lines(body: bytes) -> bytes:
    """Return at most 500 KiB without a partial last line, which would be another rule."""
    body = body[:MAX_ROBOTS_BYTES]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def parse_robots(text: str, product_token: str) -> RobotsFile:
    """Parse a file's lines for one crawler; never raises. Unknown lines are ignored.

    Only the groups of the token and of ``*`` are read, so that a file of many agents costs no more
    than its lines.
    """
    own = _Group()
    others = _Group()
    groups = {product_token.lower(): own, "*": others}
    is_named = False
    sitemaps: dict[str, None] = {}
    current: list[_Group] = []
    has_rules = False
    for line in _LINE_BREAKS.split(text):
        match = _FIELD.fullmatch(line.partition("#")[0])
        if match is None:
            continue
        value = (match["value"] or match["word"] or "").strip()
        if match["agent"]:
            if has_rules:
                current, has_rules = [], False
            token = _token(value)
            group = groups.get(token) if token else None
            is_named = is_named or group is own
            if group is not None and group not in current:
                current.append(group)
        elif match["allow"] or match["disallow"]:
            has_rules = True
            for group in current:
                if value:
                    group.lines[value, bool(match["allow"])] = None
        elif match["delay"]:
            for group in current:
                group.delay_s = _seconds(value) if group.delay_s is None else group.delay_s
        elif len(sitemaps) < MAX_SITEMAPS:
            sitemaps[value] = None
    group = own if is_named else others
    rules = (PathRule.of(value, allow=allow) for value, allow in group.lines)
    return RobotsFile(product_token, PathMatcher.of(rules), group.delay_s, tuple(sitemaps))


@dataclass(eq=False, slots=True)
class _Group:
    """The values of allow and disallow lines, each once, and the delay."""

    lines: dict[tuple[str, bool], None] = field(default_factory=dict)
    delay_s: float | None = None


def _token(value: str) -> str:
    """Return the lower-case product token of a line: ``foo`` for ``Foo/2.1``."""
    if _ALL_ROBOTS.match(value):
        return "*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _seconds(value: str) -> float | None:
    """Parse ``10``, ``.5`` or ``10 s``, 12 h at most; None for other texts."""
    match = _SECONDS.fullmatch(value)
    return min(MAX_DELAY_S, float(match[1])) if match else None


_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_SAME_ESCAPED = b"!&'()+,:;=@[]"
_PLAIN = frozenset(_UNRESERVED + _SAME_ESCAPED)
_DELIMITERS = frozenset(b"/?")
_ALL_PLAIN = re.compile(r"[A-Za-z0-9._~/!&'()+,:;=@\[\]-]*")
_OCTET = re.compile(rb"%([0-9A-Fa-f]{2})|(.)", re.DOTALL)
_MARK_CHARS = 8
_PATH_OF = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*([^#]*)")


class PathRule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One allow or disallow line.

    ``pieces`` are the parts between its stars, normalised; consecutive stars count as one.
    ``octets`` is the rule's length with special characters: its specificity.
    """

    allow: bool
    pieces: tuple[str, ...]
    anchored: bool
    octets: int

    @classmethod
    def of(cls, pattern: str, *, allow: bool) -> PathRule:
        """Parse the value of a line, such as ``/*/print$``."""
        anchored = pattern.endswith("$")
        before, mark, query = pattern.removesuffix("$").partition("?")
        path = [_normalise_octets(piece) for piece in before.split("*")]
        if mark:
            first, *others = (_normalise_octets(piece, in_query=True) for piece in query.split("*"))
            path = [*path[:-1], f"{path[-1]}?{first}", *others]
        octets = sum(map(len, path)) + len(path) - 1 + anchored
        pieces = [path[0], *filter(None, path[1:-1]), *path[1:][-1:]]
        return cls(allow, tuple(pieces), anchored, octets)

    @property
    def rank(self) -> tuple[int, bool]:
        """Sort key; of the matching rules, the one with the highest rank decides."""
        return self.octets, self.allow

    @property
    def is_prefix(self) -> bool:
        """Whether the rule has no special character."""
        return len(self.pieces) == 1 and not self.anchored

    def marks(self) -> Iterator[str]:
        """Yield substrings of at most 8 characters that every matching path contains."""
        for piece in self.pieces:
            for start in range(max(1, len(piece) - _MARK_CHARS + 1)):
                yield piece[start : start + _MARK_CHARS]

    def matches(self, path: str) -> bool:
        """Whether the rule matches a path, in time linear in the path's length."""
        first, *others = self.pieces
        if not path.startswith(first):
            return False
        if not others:
            return not self.anchored or path == first
        at = len(first)
        for piece in others[:-1]:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        if self.anchored:
            return len(path) - len(others[-1]) >= at and path.endswith(others[-1])
        return path.find(others[-1], at) >= 0


class PathMatcher(msgspec.Struct, array_like=True):
    """The rules of one group.

    A file may have tens of thousands of rules. Plain prefixes are looked up by length, other rules
    by a substring that a matching path must contain.
    """

    prefixes: dict[str, bool]
    """Whether a plain prefix is allowed."""
    patterns: dict[str, tuple[PathRule, ...]]
    """Rules with special characters, by a substring."""
    prefix_lengths: tuple[int, ...]
    """Descending."""
    mark_lengths: tuple[int, ...]

    @classmethod
    def of(cls, rules: Iterable[PathRule]) -> PathMatcher:
        """Index the rules; of equal ones that allow and disallow, allow applies."""
        ordered = sorted(set(rules), key=lambda rule: rule.rank)
        prefixes = {rule.pieces[0]: rule.allow for rule in ordered if rule.is_prefix}
        patterns = _by_rarest_mark([rule for rule in ordered if not rule.is_prefix])
        return cls(
            prefixes,
            patterns,
            tuple(sorted(set(map(len, prefixes)), reverse=True)),
            tuple(sorted(set(map(len, patterns)))),
        )

    @property
    def memory_bytes(self) -> int:
        """About how much memory this takes."""
        chars = sum(map(len, self.prefixes))
        rules = [rule for by_mark in self.patterns.values() for rule in by_mark]
        pieces = sum(60 + len(piece) for rule in rules for piece in rule.pieces)
        return 160 * len(self.prefixes) + chars + 360 * len(rules) + pieces

    def allow(self, url: str) -> bool:
        """Whether an absolute URL, or a path with its query, may be requested.

        The longest rule decides. Without a matching rule, and for ``/robots.txt``, it is allowed.
        """
        match = _PATH_OF.match(url)
        before, mark, query = (match[1] if match else url.partition("#")[0]).partition("?")
        if before == "/robots.txt" and not mark:
            return True
        path = _normalise_octets(before) or "/"
        if not mark:
            return self._decide((path,))
        spellings = [f"{path}?{_normalise_octets(query, in_query=True)}"]
        if not _DELIMITERS.isdisjoint(spellings[0].encode()[len(path) + 1 :]):
            # Rules such as "/*a%2Fb" do not say whether they mean path or query.
            escaped = spellings[0][len(path) + 1 :].replace("/", "%2F").replace("?", "%3F")
            spellings.append(f"{path}?{escaped}")
        return self._decide(spellings)

    def _decide(self, spellings: Sequence[str]) -> bool:
        prefix = self._longest_prefix(spellings)
        least = (0, False) if prefix is None else prefix
        for rule in sorted(self._candidates(spellings), key=lambda each: each.rank, reverse=True):
            if rule.rank <= least:
                break
            if any(map(rule.matches, spellings)):
                return rule.allow
        return prefix is None or prefix[1]

    def _candidates(self, spellings: Sequence[str]) -> list[PathRule]:
        """Return the rules with special characters whose substring occurs in a path."""
        found = {
            path[at : at + length]
            for length in self.mark_lengths
            for path in spellings
            for at in range(len(path) - length + 1)
        }
        return [rule for mark in found & self.patterns.keys() for rule in self.patterns[mark]]

    def _longest_prefix(self, spellings: Sequence[str]) -> tuple[int, bool] | None:
        """Return the rank of the longest plain prefix of a path."""
        for length in self.prefix_lengths:
            for path in spellings:
                # The slice of a shorter path is a shorter prefix, whose turn comes later.
                allow = self.prefixes.get(path[:length]) if len(path) >= length else None
                if allow is not None:
                    return length, allow
        return None


def _by_rarest_mark(rules: Sequence[PathRule]) -> dict[str, tuple[PathRule, ...]]:
    """Index each rule by its rarest substring."""
    often = Counter(mark for rule in rules for mark in rule.marks())
    by_mark: dict[str, list[PathRule]] = {}
    for rule in rules:
        # Ties: the longest, which occurs in fewer paths.
        mark = min(rule.marks(), key=lambda each: (often[each], -len(each)))
        by_mark.setdefault(mark, []).append(rule)
    return {mark: tuple(by_mark[mark]) for mark in by_mark}


def _normalise_octets(text: str, *, in_query: bool = False) -> str:
    """Return a piece of a path or query in one spelling; never raises."""
    if _ALL_PLAIN.fullmatch(text):
        return text
    octets = text.encode("utf-8", "surrogatepass")
    return _OCTET.sub(partial(_normalise_octet, in_query=in_query), octets).decode("ascii")


def _normalise_octet(match: re.Match[bytes], *, in_query: bool) -> bytes:
    escaped = match[1] is not None
    octet = int(match[1], 16) if escaped else match[2][0]
    if octet in _PLAIN or (octet in _DELIMITERS and (in_query or not escaped)):
        return bytes((octet,))
    return b"%%%02X" % octet
