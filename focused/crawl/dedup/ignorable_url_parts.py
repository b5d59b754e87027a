"""Learn by host which parts of URLs don't change the page: session ids, sort orders, spellings.

Each fetched page is compared with the first page whose URL differs in one part alone. A part that
made no difference on :data:`MIN_DISTINCT_TEXTS` different pages, and hardly ever one, or none on
:data:`MIN_EQUAL_PAGES` pages, is ignorable on its host. Links that differ from a fetched URL in
ignorable parts alone are skipped. A whole parameter needs :data:`MIN_PARAMETER_VALUES` values;
until then each value is a part of its own, because the first page of a list is the list itself and
the second is not. Redirects between two spellings count too. Links are never rewritten.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from focused.crawl.dedup.signatures import SIGNATURES_TABLE, ContentSignature, hash_key
from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.web.url_patterns import (
    PARAMETER_ORDER,
    SPELLING_PARTS,
    differing_parts,
    ignorable_parts,
    looks_like_token,
    part_name,
    part_with_value,
    without_parts,
)
from focused.web.urls import host_of

MIN_DISTINCT_TEXTS, MIN_EQUAL_PAGES, MIN_PARAMETER_VALUES = 5, 15, 3
_EQUAL_PER_DIFFERENT = 10
MAX_IGNORABLE_PARTS = 20
"""Per host; beyond that the parameters' names are generated too."""
SESSION_ID = "trap: session id"
IGNORABLE_PARAMETER = "trap: ignorable parameter"
SPELLING_VARIANT = "another spelling"
_COUNTS = struct.Struct(">IIII")


@dataclass(slots=True)
class _PartCounts:
    """Pages that were equal without the part, with so many ``texts``, and different ones.

    ``values`` counts a parameter's values among the equal pages.
    """

    equal_pages: int = 0
    different_pages: int = 0
    texts: int = 0
    values: int = 0

    def is_ignorable(self, *, by_one_text: bool) -> bool:
        if by_one_text and not self.different_pages and self.equal_pages >= MIN_EQUAL_PAGES:
            return True
        return self.texts >= max(MIN_DISTINCT_TEXTS, _EQUAL_PER_DIFFERENT * self.different_pages)


class IgnorableUrlParts:
    """Learns ignorable URL parts by host; persistent, the caller commits.

    A page adds a row of 50 bytes, and one for each of at most 8 parts of its URL.
    """

    def __init__(self, tables: Tables, keeps: Callable[[str], object] = lambda name: False) -> None:
        """``keeps`` tells by name which parameters are never ignorable."""
        self._tables = tables
        self._keeps = keeps
        self._ignorable: dict[str, list[str]] = {
            host.decode(): unpack(raw) for host, raw in tables.scan("ignorable_url_parts")
        }

    def of(self, host: str) -> tuple[str, ...]:
        """Return the ignorable parts of a host."""
        return tuple(self._ignorable.get(host, ()))

    def why(self, url: str) -> str | None:
        """Return why a URL is skipped: its page was fetched under another URL. Otherwise None."""
        ignorable = self._ignorable.get(host_of(url))
        if ignorable is None:
            return None
        raw = self._tables.get(SIGNATURES_TABLE, hash_key(without_parts(url, ignorable)))
        if raw is None:
            return None
        first = ContentSignature.read(raw)
        # A row without a part that matters here belongs to another page.
        stands = not first.part or not {first.part, part_name(first.part)}.isdisjoint(ignorable)
        return (
            _refusal_reason(url, ignorable)
            if stands and first.own != ContentSignature.own_of(url)
            else None
        )

    def take(self, url: str, signature: ContentSignature, copy_of: str | None) -> None:
        """Learn from the page at ``url``, which duplicates the page at ``copy_of``."""
        host = host_of(url)
        ignorable = self._ignorable.get(host, [])
        original = b"" if copy_of is None else ContentSignature.own_of(copy_of)
        self._compare_or_store(host, without_parts(url, ()), signature, original)
        if ignorable:
            self._compare_or_store(host, without_parts(url, ignorable), signature, original)
        for part in ignorable_parts(url):
            valued = part_with_value(url, part)
            if part not in ignorable and valued not in ignorable:
                bare = without_parts(url, {*ignorable, part})
                self._compare_or_store(host, bare, signature.without(valued), original)

    def take_same(self, url: str, other: str) -> None:
        """Learn from a redirect or canonical link that ``url`` and ``other`` are one page.

        Each ``other`` counts once per part, because missing items may all redirect to one list.
        """
        host = host_of(url)
        if host != host_of(other):
            return
        for part in differing_parts(url, other):
            shown = [
                part_with_value(each, part)
                for each in (url, other)
                if part in ignorable_parts(each)
            ]
            if self._is_new(f"{host} {part} > {other}"):
                self._count(host, shown or [part], other)

    def _compare_or_store(
        self, host: str, bare: str, signature: ContentSignature, original: bytes
    ) -> None:
        """Compare a page with the first page of the same bare URL, or store it as the first.

        Both must lack the same part, or one of them none; otherwise they differ in two parts.
        """
        key = hash_key(bare)
        raw = self._tables.get(SIGNATURES_TABLE, key)
        first = None if raw is None else ContentSignature.read(raw)
        if first is not None and first.own != signature.own:
            parts = [each.part for each in (first, signature) if each.part]
            names, equal = {part_name(part) for part in parts}, len(set(parts)) < len(parts)
            # Equal values: the URLs differ in something else, such as the order.
            if len(names) == 1 and not (equal and parts[0].startswith("?")):
                self._compare(host, parts, signature, first, original)
        if first is None or (first.part and not signature.part):
            self._tables.put(SIGNATURES_TABLE, key, signature.packed())

    def _compare(
        self,
        host: str,
        parts: Sequence[str],
        one: ContentSignature,
        first: ContentSignature,
        original: bytes,
    ) -> None:
        # A list may be sorted differently; another spelling must bring the same order.
        in_any_order = parts[0].startswith("?") or parts[0] == PARAMETER_ORDER
        if first.own == original:
            self._count(host, parts, original.hex())
        elif not one.is_like(first, in_any_order=in_any_order):
            self._count(host, parts, None)
        else:
            self._count(host, parts, (one.text if one.text == first.text else one.bag).hex())

    def _count(self, host: str, parts: Sequence[str], same: str | None) -> None:
        """Count one comparison for the part of one or two pages.

        ``same`` identifies what was equal; None: the part made a difference.
        """
        self._count_one(host, part_name(parts[0]), same, parts)
        if len(parts) == 1 and parts[0].startswith("?"):
            self._count_one(host, parts[0], same, ())

    def _count_one(self, host: str, part: str, same: str | None, values: Sequence[str]) -> None:
        key = hash_key(f"{host} {part}")
        raw = self._tables.get(SIGNATURES_TABLE, key)
        counts = _PartCounts() if raw is None else _PartCounts(*_COUNTS.unpack(raw))
        if same is None:
            counts.different_pages += 1
        else:
            counts.equal_pages += 1
            # Many missing pages share one text.
            counts.texts += self._is_new(f"{host} {part} {same}")
            counts.values += sum(self._is_new(f"{host} {value} of {part}") for value in values)
        self._tables.put(SIGNATURES_TABLE, key, _COUNTS.pack(*astuple(counts)))
        enough = counts.values >= MIN_PARAMETER_VALUES or not part.startswith("?") or "=" in part
        if enough and counts.is_ignorable(by_one_text=part not in SPELLING_PARTS):
            self._learn(host, part)

    def _learn(self, host: str, part: str) -> None:
        ignorable = self._ignorable.get(host, [])
        name = part_name(part)
        if (
            part in ignorable
            or name in ignorable
            or self._keeps(name[1:])
            or len(ignorable) >= MAX_IGNORABLE_PARTS
        ):
            return
        # A parameter that is ignorable as a whole replaces its values.
        others = [each for each in ignorable if part != name or part_name(each) != name]
        self._ignorable[host] = [*others, part]
        self._tables.put("ignorable_url_parts", host.encode(), pack(self._ignorable[host]))

    def _is_new(self, mark: str) -> bool:
        """Set a mark; True if it was not set before."""
        key = hash_key(mark)
        if self._tables.get(SIGNATURES_TABLE, key) is not None:
            return False
        self._tables.put(SIGNATURES_TABLE, key, b"")
        return True


def _refusal_reason(url: str, ignorable: Sequence[str]) -> str:
    """Name the reason by the ignorable parts of the URL."""
    shown = [
        (part, part_with_value(url, part))
        for part in ignorable_parts(url)
        if part not in SPELLING_PARTS
    ]
    parts = [valued for part, valued in shown if part in ignorable or valued in ignorable]
    if not parts:
        return SPELLING_VARIANT
    # A folder is ignorable only where it looks like a token.
    tokens = (looks_like_token(each.partition("=")[2]) or each[0] != "?" for each in parts)
    return SESSION_ID if any(tokens) else IGNORABLE_PARAMETER
