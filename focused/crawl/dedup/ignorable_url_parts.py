"""Parts of URLs that change nothing: session ids, sort orders, spellings; learned by host.

Each fetched page is held against the first one whose URL differs in one slot
alone. A slot that made no difference on :data:`MIN_DISTINCT_TEXTS` different pages, and
hardly ever one, or never one and :data:`MIN_EQUAL_PAGES` times none, is idle on
its host: a link that differs from a fetched URL in idle slots alone is not
worth a fetch. Of a parameter :data:`MIN_PARAMETER_VALUES` values must have made none;
until then each value is a slot of its own, for the first page of a list is the
list, and its second is not. Servers tell of slots, too, by redirects from one
spelling to another. No link is changed: a server that wants its session gets it.
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
"""Of a host: more, and its parameters' names are made up, too."""
SESSION_ID = "trap: session id"
IGNORABLE_PARAMETER = "trap: ignorable parameter"
SPELLING_VARIANT = "another spelling"
_COUNTS = struct.Struct(">IIII")


@dataclass(slots=True)
class _PartCounts:
    """Pages that were ``alike`` without a slot, with so many ``texts``; and that were not.

    ``values`` of a parameter were among those alike.
    """

    alike: int = 0
    unlike: int = 0
    texts: int = 0
    values: int = 0

    def is_idle(self, *, by_one_text: bool) -> bool:
        if by_one_text and not self.unlike and self.alike >= MIN_EQUAL_PAGES:
            return True
        return self.texts >= max(MIN_DISTINCT_TEXTS, _EQUAL_PER_DIFFERENT * self.unlike)


class IgnorableUrlParts:
    """Durable, over :class:`Tables`; the caller commits.

    On disk a page adds a row of 50 bytes, and one for each of its slots, 8 at most.
    """

    def __init__(self, tables: Tables, keeps: Callable[[str], object] = lambda name: False) -> None:
        """``keeps`` tells by their names which parameters are never idle."""
        self._tables = tables
        self._keeps = keeps
        self._idle: dict[str, list[str]] = {
            host.decode(): unpack(raw) for host, raw in tables.scan("trap_slots")
        }

    def of(self, host: str) -> tuple[str, ...]:
        """The slots that were found idle on a host."""
        return tuple(self._idle.get(host, ()))

    def why(self, url: str) -> str | None:
        """Why a normalised URL is not worth a fetch: its page was fetched under another one."""
        idle = self._idle.get(host_of(url))
        if idle is None:
            return None
        raw = self._tables.get(SIGNATURES_TABLE, hash_key(without_parts(url, idle)))
        if raw is None:
            return None
        first = ContentSignature.read(raw)
        # What left out a slot that matters here is another page's row.
        stands = not first.slot or not {first.slot, part_name(first.slot)}.isdisjoint(idle)
        return (
            _refusal_reason(url, idle)
            if stands and first.own != ContentSignature.own_of(url)
            else None
        )

    def take(self, url: str, said: ContentSignature, copy_of: str | None) -> None:
        """A page came from ``url`` that repeats the page at ``copy_of``: count what it tells."""
        host = host_of(url)
        idle = self._idle.get(host, [])
        original = b"" if copy_of is None else ContentSignature.own_of(copy_of)
        self._arrive(host, without_parts(url, ()), said, original)
        if idle:
            self._arrive(host, without_parts(url, idle), said, original)
        for slot in ignorable_parts(url):
            valued = part_with_value(url, slot)
            if slot not in idle and valued not in idle:
                bare = without_parts(url, {*idle, slot})
                self._arrive(host, bare, said.without(valued), original)

    def told(self, url: str, other: str) -> None:
        """The server itself says that a normalised URL and ``other`` are one page.

        Each ``other`` counts once for a slot: items that are gone may all lead to one list.
        """
        host = host_of(url)
        if host != host_of(other):
            return
        for slot in differing_parts(url, other):
            shown = [
                part_with_value(each, slot)
                for each in (url, other)
                if slot in ignorable_parts(each)
            ]
            if self._is_new(f"{host} {slot} > {other}"):
                self._count(host, shown or [slot], other)

    def _arrive(self, host: str, bare: str, said: ContentSignature, original: bytes) -> None:
        """Hold a page against the first one of that bare URL, or let it be the first.

        Both must have left out the same slot, or one of them none: else they differ in two.
        """
        key = hash_key(bare)
        raw = self._tables.get(SIGNATURES_TABLE, key)
        first = None if raw is None else ContentSignature.read(raw)
        if first is not None and first.own != said.own:
            slots = [each.slot for each in (first, said) if each.slot]
            names, equal = {part_name(slot) for slot in slots}, len(set(slots)) < len(slots)
            # One value on both sides: they differ in something else, their order perhaps.
            if len(names) == 1 and not (equal and slots[0].startswith("?")):
                self._compare(host, slots, said, first, original)
        if first is None or (first.slot and not said.slot):
            self._tables.put(SIGNATURES_TABLE, key, said.packed())

    def _compare(
        self,
        host: str,
        slots: Sequence[str],
        one: ContentSignature,
        first: ContentSignature,
        original: bytes,
    ) -> None:
        # Sorted in another way a list is the same; spelled in another way it would be by chance.
        in_any_order = slots[0].startswith("?") or slots[0] == PARAMETER_ORDER
        if first.own == original:
            self._count(host, slots, original.hex())
        elif not one.is_like(first, in_any_order=in_any_order):
            self._count(host, slots, None)
        else:
            self._count(host, slots, (one.text if one.text == first.text else one.bag).hex())

    def _count(self, host: str, slots: Sequence[str], same: str | None) -> None:
        """Count for the slot of one or two pages, with its values there.

        ``same`` names what was the same, None: it made a difference.
        """
        self._count_one(host, part_name(slots[0]), same, slots)
        if len(slots) == 1 and slots[0].startswith("?"):
            self._count_one(host, slots[0], same, ())

    def _count_one(self, host: str, slot: str, same: str | None, values: Sequence[str]) -> None:
        key = hash_key(f"{host} {slot}")
        raw = self._tables.get(SIGNATURES_TABLE, key)
        account = _PartCounts() if raw is None else _PartCounts(*_COUNTS.unpack(raw))
        if same is None:
            account.unlike += 1
        else:
            account.alike += 1
            # Many a URL without a page is answered by one text.
            account.texts += self._is_new(f"{host} {slot} {same}")
            account.values += sum(self._is_new(f"{host} {value} of {slot}") for value in values)
        self._tables.put(SIGNATURES_TABLE, key, _COUNTS.pack(*astuple(account)))
        enough = account.values >= MIN_PARAMETER_VALUES or not slot.startswith("?") or "=" in slot
        if enough and account.is_idle(by_one_text=slot not in SPELLING_PARTS):
            self._learn(host, slot)

    def _learn(self, host: str, slot: str) -> None:
        idle = self._idle.get(host, [])
        name = part_name(slot)
        if (
            slot in idle
            or name in idle
            or self._keeps(name[1:])
            or len(idle) >= MAX_IGNORABLE_PARTS
        ):
            return
        # A parameter's values are of no interest any more once it is idle as a whole.
        left = [each for each in idle if slot != name or part_name(each) != name]
        self._idle[host] = [*left, slot]
        self._tables.put("trap_slots", host.encode(), pack(self._idle[host]))

    def _is_new(self, mark: str) -> bool:
        """Whether the mark was not set before; it is now."""
        key = hash_key(mark)
        if self._tables.get(SIGNATURES_TABLE, key) is not None:
            return False
        self._tables.put(SIGNATURES_TABLE, key, b"")
        return True


def _refusal_reason(url: str, idle: Sequence[str]) -> str:
    """The reason by what of the URL is idle."""
    shown = [
        (slot, part_with_value(url, slot))
        for slot in ignorable_parts(url)
        if slot not in SPELLING_PARTS
    ]
    parts = [valued for slot, valued in shown if slot in idle or valued in idle]
    if not parts:
        return SPELLING_VARIANT
    # A folder is idle only where it looks like a token.
    tokens = (looks_like_token(each.partition("=")[2]) or each[0] != "?" for each in parts)
    return SESSION_ID if any(tokens) else IGNORABLE_PARAMETER
