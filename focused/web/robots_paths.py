"""Which paths a robots.txt group lets us ask for: RFC 9309, sections 2.2.2 and 2.2.3.

Paths are compared in one spelling of their octets. Escapes of unreserved
characters are written plainly, and so are the delimiters that say the same
escaped or not (``;`` and ``%3B``, as the RFC has both sides encoded). All else
is percent-encoded. A slash or question mark that is escaped in the path is no
delimiter and stays another octet; in the query it is the same, as the
RFC's own example has it (``?baz=https://foo.bar``).

Octets are never taken for characters: ``%E9`` and ``%E8`` are two paths,
though neither is UTF-8.

A file may have tens of thousands of rules. Plain prefixes are looked up by
length, rules with special characters by a few characters that a path must have
to match: :class:`PathRules` tries those alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_SAME_ESCAPED = b"!&'()+,:;=@[]"
_PLAIN = frozenset(_UNRESERVED + _SAME_ESCAPED)
_DELIMITERS = frozenset(b"/?")
_ALL_PLAIN = re.compile(r"[A-Za-z0-9._~/!&'()+,:;=@\[\]-]*")
_OCTET = re.compile(rb"%([0-9A-Fa-f]{2})|(.)", re.DOTALL)
_MARK_CHARS = 8
_PATH_OF = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*([^#]*)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line.

    ``pieces`` stood between its stars, in the one spelling; stars in a row are
    one. ``octets`` tells how specific the rule is: its length, special
    characters included.
    """

    allow: bool
    pieces: tuple[str, ...]
    anchored: bool
    octets: int

    @classmethod
    def of(cls, pattern: str, *, allow: bool) -> Rule:
        """Read the value of a line, such as ``/*/print$``."""
        anchored = pattern.endswith("$")
        before, mark, query = pattern.removesuffix("$").partition("?")
        path = [_spell(piece) for piece in before.split("*")]
        if mark:
            first, *others = (_spell(piece, in_query=True) for piece in query.split("*"))
            path = [*path[:-1], f"{path[-1]}?{first}", *others]
        octets = sum(map(len, path)) + len(path) - 1 + anchored
        pieces = [path[0], *filter(None, path[1:-1]), *path[1:][-1:]]
        return cls(allow, tuple(pieces), anchored, octets)

    @property
    def rank(self) -> tuple[int, bool]:
        """Of the rules that match, the one with the highest rank decides."""
        return self.octets, self.allow

    @property
    def is_prefix(self) -> bool:
        """Whether the rule has no special character."""
        return len(self.pieces) == 1 and not self.anchored

    def marks(self) -> Iterator[str]:
        """Yield strings of 8 characters at most; a path that the rule matches has them all."""
        for piece in self.pieces:
            for start in range(max(1, len(piece) - _MARK_CHARS + 1)):
                yield piece[start : start + _MARK_CHARS]

    def matches(self, path: str) -> bool:
        """Tell whether the rule speaks of a path; time is linear in the path's length."""
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


class PathRules:
    """The rules of one group, all its lines together."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        ordered = sorted(set(rules), key=lambda rule: rule.rank)
        self._prefixes = {rule.pieces[0]: rule for rule in ordered if rule.is_prefix}
        self._lengths = sorted(set(map(len, self._prefixes)), reverse=True)
        self._patterns = _by_rarest_mark([rule for rule in ordered if not rule.is_prefix])
        self._mark_lengths = sorted(set(map(len, self._patterns)))

    def allow(self, url: str) -> bool:
        """Tell whether an absolute URL, or a path with its query, may be asked for.

        The rule with the most octets decides; without one all is allowed, and
        ``/robots.txt`` always is.
        """
        match = _PATH_OF.match(url)
        before, mark, query = (match[1] if match else url.partition("#")[0]).partition("?")
        if before == "/robots.txt" and not mark:
            return True
        path = _spell(before) or "/"
        if not mark:
            return self._decide((path,))
        spellings = [f"{path}?{_spell(query, in_query=True)}"]
        if not _DELIMITERS.isdisjoint(spellings[0].encode()[len(path) + 1 :]):
            # A rule such as "/*a%2Fb" does not tell whether it means path or query.
            escaped = spellings[0][len(path) + 1 :].replace("/", "%2F").replace("?", "%3F")
            spellings.append(f"{path}?{escaped}")
        return self._decide(spellings)

    def _decide(self, spellings: Sequence[str]) -> bool:
        prefix = self._longest_prefix(spellings)
        least = (0, False) if prefix is None else prefix.rank
        for rule in sorted(self._candidates(spellings), key=lambda each: each.rank, reverse=True):
            if rule.rank <= least:
                break
            if any(map(rule.matches, spellings)):
                return rule.allow
        return prefix is None or prefix.allow

    def _candidates(self, spellings: Sequence[str]) -> list[Rule]:
        """The rules with special characters whose mark is in one of the paths."""
        found = {
            path[at : at + length]
            for length in self._mark_lengths
            for path in spellings
            for at in range(len(path) - length + 1)
        }
        return [rule for mark in found & self._patterns.keys() for rule in self._patterns[mark]]

    def _longest_prefix(self, spellings: Sequence[str]) -> Rule | None:
        for length in self._lengths:
            for path in spellings:
                rule = self._prefixes.get(path[:length])
                if rule is not None:
                    return rule
        return None


def _by_rarest_mark(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """Put each rule under the rarest of its marks."""
    often = Counter(mark for rule in rules for mark in rule.marks())
    filed: dict[str, list[Rule]] = {}
    for rule in rules:
        # Of marks that are as rare the longest: fewer paths have it.
        mark = min(rule.marks(), key=lambda each: (often[each], -len(each)))
        filed.setdefault(mark, []).append(rule)
    return filed


def _spell(text: str, *, in_query: bool = False) -> str:
    """Write a piece of a path or of a query in the one spelling; never raises."""
    if _ALL_PLAIN.fullmatch(text):
        return text
    octets = text.encode("utf-8", "surrogatepass")
    return _OCTET.sub(partial(_octet, in_query=in_query), octets).decode("ascii")


def _octet(match: re.Match[bytes], *, in_query: bool) -> bytes:
    escaped = match[1] is not None
    octet = int(match[1], 16) if escaped else match[2][0]
    if octet in _PLAIN or (octet in _DELIMITERS and (in_query or not escaped)):
        return bytes((octet,))
    return b"%%%02X" % octet
