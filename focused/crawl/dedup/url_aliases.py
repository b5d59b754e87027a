"""Learn by host which URLs bring a page that was fetched under another URL, and skip them.

Ignorable URL parts don't change the page: session ids, sort orders, spellings. Each fetched page is
compared with the first page whose URL differs in one part alone. A part that made no difference on
:data:`MIN_DISTINCT_TEXTS` different pages, and hardly ever one, or none on :data:`MIN_EQUAL_PAGES`
pages, is ignorable on its host. Links that differ from a fetched URL in ignorable parts alone are
skipped. A whole parameter needs :data:`MIN_PARAMETER_VALUES` values; until then each value is a
part of its own, because the first page of a list is the list itself and the second is not.
Redirects between two spellings count too. Links are never rewritten.

Canonical links (RFC 6596) name the URL that a page stands for. They are often wrong: all pages of a
list name its first page, all pages of a site its front page. A host's canonical links are trusted
after :data:`MIN_HITS` confirmations, ten times as many as contradictions; a confirmation is a page
with the same content as the one it names, or as another page that names the same. Then a URL that a
fetched page names is skipped. One in :data:`RECHECK_ONE_IN` is fetched anyway, to notice when a
host goes wrong. Pages never stand for pages of another host. A page's link to its AMP variant
(``rel=amphtml``) says the same of that URL: the variant is skipped where the host's links are
trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace

import msgspec
import xxhash

from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.text.content_signatures import NO_BAG_HASH
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

SIGNATURES_TABLE = "signatures"
NO_TEXT = bytes(16)
"""The text digest of a page that is compared with no other."""
_TEXT, _BAG, _OWN = slice(0, 16), slice(16, 24), slice(24, 32)


@dataclass(frozen=True, slots=True)
class ContentSignature:
    """Digests of a page's text (16 bytes), of its words in any order (8 bytes) and of its URL.

    ``part`` is the part that was removed from the URL under which the signature is stored.
    """

    text: bytes
    bag: bytes
    own: bytes
    part: str = ""

    @classmethod
    def of(cls, url: str, text: bytes = NO_TEXT, bag: bytes = NO_BAG_HASH) -> ContentSignature:
        """Return the signature of the page at ``url``."""
        return cls(text, bag, cls.own_of(url))

    @classmethod
    def read(cls, row: bytes) -> ContentSignature:
        """Decode a row of :meth:`packed`."""
        return cls(row[_TEXT], row[_BAG], row[_OWN], row[32:].decode())

    @staticmethod
    def own_of(url: str) -> bytes:
        """Return 8 bytes of a URL's hash."""
        return xxhash.xxh3_64_digest(url.encode())

    def without(self, part: str) -> ContentSignature:
        """Return the signature to store where ``part`` was removed from the URL."""
        return replace(self, part=part)

    def is_like(self, other: ContentSignature, *, in_any_order: bool) -> bool:
        """Whether both pages have the same text, or ``in_any_order`` the same words."""
        same_text = self.text == other.text != NO_TEXT
        return same_text or (in_any_order and self.bag == other.bag != NO_BAG_HASH)

    @property
    def has_text(self) -> bool:
        """Whether the signature has a text digest."""
        return self.text != NO_TEXT

    def packed(self) -> bytes:
        """Encode as a row."""
        return self.text + self.bag + self.own + self.part.encode()


def load_signature(tables: Tables, url: str) -> ContentSignature | None:
    """Return the signature of the page fetched from a normalised URL, or None."""
    row = tables.get(SIGNATURES_TABLE, hash_key(url if "?" in url else f"{url}?"))
    signature = None if row is None else ContentSignature.read(row)
    return (
        signature
        if signature is not None
        and signature.own == ContentSignature.own_of(url)
        and not signature.part
        else None
    )


def hash_key(text: str) -> bytes:
    """Return 16 bytes of a text's hash, as a key."""
    return xxhash.xxh3_128_digest(text.encode())


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


CANONICAL = "canonical of a fetched page"
MIN_HITS = 3
RECHECK_ONE_IN = 8
_HITS_PER_MISS = 10
_TABLE, _HOSTS = "canonical_urls", "canonical_hosts"


class _CanonicalTarget(msgspec.Struct, array_like=True):
    """A URL that pages name as canonical, with the signature of the first of them.

    ``stands``: that page may stand for the URL. ``open``: no contradiction so far.
    """

    signature: bytes
    by: str
    stands: bool
    open: bool = True


class _HostRecord(msgspec.Struct, array_like=True):
    """A host's confirmed and contradicted canonical links."""

    hits: int = 0
    misses: int = 0

    @property
    def is_good(self) -> bool:
        return self.hits >= max(MIN_HITS, _HITS_PER_MISS * self.misses)


_decode_target = msgspec.msgpack.Decoder(_CanonicalTarget).decode
_decode_host_record = msgspec.msgpack.Decoder(_HostRecord).decode


class CanonicalUrls:
    """Learns whose canonical links are right; persistent, the caller commits.

    A page adds at most two rows of about 100 bytes for each URL that it names.
    """

    def __init__(
        self, tables: Tables, load_signature: Callable[[str], ContentSignature | None]
    ) -> None:
        """``load_signature`` returns the signature of the page fetched from a URL, or None."""
        self._tables = tables
        self._load_signature = load_signature
        self._host_records = {
            host.decode(): _decode_host_record(raw) for host, raw in tables.scan(_HOSTS)
        }

    def are_trusted(self, host: str) -> bool:
        """Whether the host's canonical links are trusted."""
        record = self._host_records.get(host)
        return record is not None and record.is_good

    def was_named(self, url: str) -> bool:
        """Whether a fetched page names the URL as canonical."""
        return host_of(url) in self._host_records and self._target(url) is not None

    def why(self, url: str) -> str | None:
        """Return why a URL is skipped, or None."""
        if not self.are_trusted(host_of(url)):
            return None
        target = self._target(url)
        if target is None or not target.stands or not target.open:
            return None
        return CANONICAL if hash_key(url)[0] % RECHECK_ONE_IN else None

    def take(
        self,
        url: str,
        signature: ContentSignature,
        canonical: str | None,
        copy_of: str | None,
        *,
        stands: bool,
        amp: str | None = None,
    ) -> None:
        """Learn from a fetched page that names ``canonical`` and ``amp``, and duplicates
        ``copy_of``.

        ``stands``: the page may stand for these URLs, as it is kept and its links are followed.
        """
        host = host_of(url)
        earlier = self._target(url) if host in self._host_records else None
        if earlier is not None:
            self._compare(url, earlier, signature, copy_of)
        for named in (canonical, amp):
            if named is not None and named != url and host_of(named) == host:
                self._take_named(url, signature, named, copy_of, stands=stands)

    def _take_named(
        self,
        url: str,
        signature: ContentSignature,
        canonical: str,
        copy_of: str | None,
        *,
        stands: bool,
    ) -> None:
        host = host_of(url)
        there = self._load_signature(canonical)
        target = self._target(canonical)
        if copy_of == canonical:
            self._count(host, signature)
        elif there is not None and there.has_text:
            self._count(host, signature if signature.is_like(there, in_any_order=True) else None)
        elif target is not None and target.by != url:
            self._compare(canonical, target, signature, copy_of)
        elif target is None:
            self._keep(canonical, _CanonicalTarget(signature.packed(), url, stands))
            if host not in self._host_records:
                self._keep_record(host, _HostRecord())

    def _compare(
        self, url: str, target: _CanonicalTarget, signature: ContentSignature, copy_of: str | None
    ) -> None:
        """Compare a page with the first page that names the same URL."""
        same = copy_of == target.by or signature.is_like(
            ContentSignature.read(target.signature), in_any_order=True
        )
        self._count(host_of(url), signature if same else None)
        if not same and target.open:
            target.open = False
            self._keep(url, target)

    def _count(self, host: str, same: ContentSignature | None) -> None:
        """Count a confirmation by the content ``same``, or a contradiction for None.

        Each content counts once, because many missing pages have the same text.
        """
        if same is not None:
            once = hash_key(f"{host} {same.text.hex()}")
            if self._tables.get(_TABLE, once) is not None:
                return
            self._tables.put(_TABLE, once, b"")
        record = self._host_records.get(host, _HostRecord())
        record.hits += same is not None
        record.misses += same is None
        self._keep_record(host, record)

    def _keep_record(self, host: str, record: _HostRecord) -> None:
        self._host_records[host] = record
        self._tables.put(_HOSTS, host.encode(), pack(record))

    def _target(self, url: str) -> _CanonicalTarget | None:
        raw = self._tables.get(_TABLE, hash_key(url))
        return None if raw is None else _decode_target(raw)

    def _keep(self, url: str, target: _CanonicalTarget) -> None:
        self._tables.put(_TABLE, hash_key(url), pack(target))
