"""Parts of URLs that change nothing: session ids, sort orders, spellings; learned by host.

Each fetched page is held against the first one whose URL differs in one slot
alone. A slot that made no difference on :data:`MIN_SAME` different pages, and
hardly ever one, or never one and :data:`MIN_SAME_TEXT` times none, is idle on
its host: a link that differs from a fetched URL in idle slots alone is not
worth a fetch. Of a parameter :data:`MIN_VALUES` values must have made none;
until then each value is a slot of its own, for the first page of a list is the
list, and its second is not. Servers tell of slots, too, by redirects from one
spelling to another. No link is changed: a server that wants its session gets it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from focused.crawl.page_texts import TABLE, Said, row_key
from focused.frontier.rows import pack, unpack
from focused.frontier.tables import Tables
from focused.web.url import host_of
from focused.web.url_patterns import (
    ORDER,
    SPELLINGS,
    differing_slots,
    looks_like_token,
    name_of_slot,
    slots_of,
    valued_slot,
    without_slots,
)

MIN_SAME, MIN_SAME_TEXT, MIN_VALUES = 5, 15, 3
_SAME_PER_DIFFERENT = 10
MAX_IDLE_SLOTS = 20
"""Of a host: more, and its parameters' names are made up, too."""
SESSION = "trap: session id"
PARAMETER = "trap: idle parameter"
SPELLING = "another spelling"
_COUNTS = struct.Struct(">IIII")


@dataclass(slots=True)
class _Account:
    """Pages that were ``alike`` without a slot, with so many ``texts``; and that were not.

    ``values`` of a parameter were among those alike.
    """

    alike: int = 0
    unlike: int = 0
    texts: int = 0
    values: int = 0

    def is_idle(self, *, by_one_text: bool) -> bool:
        if by_one_text and not self.unlike and self.alike >= MIN_SAME_TEXT:
            return True
        return self.texts >= max(MIN_SAME, _SAME_PER_DIFFERENT * self.unlike)


class IdleSlots:
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
        raw = self._tables.get(TABLE, row_key(without_slots(url, idle)))
        if raw is None:
            return None
        first = Said.read(raw)
        # What left out a slot that matters here is another page's row.
        stands = not first.slot or not {first.slot, name_of_slot(first.slot)}.isdisjoint(idle)
        return _named(url, idle) if stands and first.own != Said.own_of(url) else None

    def take(self, url: str, said: Said, copy_of: str | None) -> None:
        """A page came from ``url`` that repeats the page at ``copy_of``: count what it tells."""
        host = host_of(url)
        idle = self._idle.get(host, [])
        original = b"" if copy_of is None else Said.own_of(copy_of)
        self._arrive(host, without_slots(url, ()), said, original)
        if idle:
            self._arrive(host, without_slots(url, idle), said, original)
        for slot in slots_of(url):
            valued = valued_slot(url, slot)
            if slot not in idle and valued not in idle:
                bare = without_slots(url, {*idle, slot})
                self._arrive(host, bare, said.without(valued), original)

    def told(self, url: str, other: str) -> None:
        """The server itself says that a normalised URL and ``other`` are one page.

        Each ``other`` counts once for a slot: items that are gone may all lead to one list.
        """
        host = host_of(url)
        if host != host_of(other):
            return
        for slot in differing_slots(url, other):
            shown = [valued_slot(each, slot) for each in (url, other) if slot in slots_of(each)]
            if self._is_new(f"{host} {slot} > {other}"):
                self._count(host, shown or [slot], other)

    def _arrive(self, host: str, bare: str, said: Said, original: bytes) -> None:
        """Hold a page against the first one of that bare URL, or let it be the first.

        Both must have left out the same slot, or one of them none: else they differ in two.
        """
        key = row_key(bare)
        raw = self._tables.get(TABLE, key)
        first = None if raw is None else Said.read(raw)
        if first is not None and first.own != said.own:
            slots = [each.slot for each in (first, said) if each.slot]
            names, equal = {name_of_slot(slot) for slot in slots}, len(set(slots)) < len(slots)
            # One value on both sides: they differ in something else, their order perhaps.
            if len(names) == 1 and not (equal and slots[0].startswith("?")):
                self._compare(host, slots, said, first, original)
        if first is None or (first.slot and not said.slot):
            self._tables.put(TABLE, key, said.packed())

    def _compare(
        self, host: str, slots: Sequence[str], one: Said, first: Said, original: bytes
    ) -> None:
        # Sorted in another way a list is the same; spelled in another way it would be by chance.
        in_any_order = slots[0].startswith("?") or slots[0] == ORDER
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
        self._count_one(host, name_of_slot(slots[0]), same, slots)
        if len(slots) == 1 and slots[0].startswith("?"):
            self._count_one(host, slots[0], same, ())

    def _count_one(self, host: str, slot: str, same: str | None, values: Sequence[str]) -> None:
        key = row_key(f"{host} {slot}")
        raw = self._tables.get(TABLE, key)
        account = _Account() if raw is None else _Account(*_COUNTS.unpack(raw))
        if same is None:
            account.unlike += 1
        else:
            account.alike += 1
            # Many a URL without a page is answered by one text.
            account.texts += self._is_new(f"{host} {slot} {same}")
            account.values += sum(self._is_new(f"{host} {value} of {slot}") for value in values)
        self._tables.put(TABLE, key, _COUNTS.pack(*astuple(account)))
        enough = account.values >= MIN_VALUES or not slot.startswith("?") or "=" in slot
        if enough and account.is_idle(by_one_text=slot not in SPELLINGS):
            self._learn(host, slot)

    def _learn(self, host: str, slot: str) -> None:
        idle = self._idle.get(host, [])
        name = name_of_slot(slot)
        if slot in idle or name in idle or self._keeps(name[1:]) or len(idle) >= MAX_IDLE_SLOTS:
            return
        # A parameter's values are of no interest any more once it is idle as a whole.
        left = [each for each in idle if slot != name or name_of_slot(each) != name]
        self._idle[host] = [*left, slot]
        self._tables.put("trap_slots", host.encode(), pack(self._idle[host]))

    def _is_new(self, mark: str) -> bool:
        """Whether the mark was not set before; it is now."""
        key = row_key(mark)
        if self._tables.get(TABLE, key) is not None:
            return False
        self._tables.put(TABLE, key, b"")
        return True


def _named(url: str, idle: Sequence[str]) -> str:
    """The reason by what of the URL is idle."""
    shown = [(slot, valued_slot(url, slot)) for slot in slots_of(url) if slot not in SPELLINGS]
    parts = [valued for slot, valued in shown if slot in idle or valued in idle]
    if not parts:
        return SPELLING
    # A folder is idle only where it looks like a token.
    tokens = (looks_like_token(each.partition("=")[2]) or each[0] != "?" for each in parts)
    return SESSION if any(tokens) else PARAMETER
