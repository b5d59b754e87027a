"""What fetched pages said, in 32 bytes each: whether two URLs brought the same page."""

from __future__ import annotations

from dataclasses import dataclass, replace

import xxhash

from focused.storage.tables import Tables
from focused.text.content_signatures import NO_BAG_HASH

SIGNATURES_TABLE = "trap_texts"
NO_TEXT = bytes(16)
"""Of a page that nothing is compared with, but as a copy of another."""
_TEXT, _BAG, _OWN = slice(0, 16), slice(16, 24), slice(24, 32)


@dataclass(frozen=True, slots=True)
class ContentSignature:
    """``text`` is 16 bytes that pages of the same words share, ``bag`` 8 for any order of them.

    See :mod:`focused.web.content_hash` and :mod:`focused.text.content_signatures`. ``own`` are 8
    bytes of the page's URL. ``slot`` is the part of that URL that was left out
    where this is kept, ``""`` for none.
    """

    text: bytes
    bag: bytes
    own: bytes
    slot: str = ""

    @classmethod
    def of(cls, url: str, text: bytes = NO_TEXT, bag: bytes = NO_BAG_HASH) -> ContentSignature:
        """What the page at ``url`` said, or only that it came."""
        return cls(text, bag, cls.own_of(url))

    @classmethod
    def read(cls, row: bytes) -> ContentSignature:
        """Read a row of :meth:`packed`."""
        return cls(row[_TEXT], row[_BAG], row[_OWN], row[32:].decode())

    @staticmethod
    def own_of(url: str) -> bytes:
        """8 bytes of a URL."""
        return xxhash.xxh3_64_digest(url.encode())

    def without(self, slot: str) -> ContentSignature:
        """The same, to be kept where ``slot`` was left out of the URL."""
        return replace(self, slot=slot)

    def is_like(self, other: ContentSignature, *, in_any_order: bool) -> bool:
        """Whether both pages say the same, or ``in_any_order`` the same words."""
        same_text = self.text == other.text != NO_TEXT
        return same_text or (in_any_order and self.bag == other.bag != NO_BAG_HASH)

    @property
    def has_text(self) -> bool:
        """Whether more is kept than that the page came."""
        return self.text != NO_TEXT

    def packed(self) -> bytes:
        """A row of 32 bytes and the slot's."""
        return self.text + self.bag + self.own + self.slot.encode()


def load_signature(tables: Tables, url: str) -> ContentSignature | None:
    """What the page said that came from a normalised URL; None when none came."""
    row = tables.get(SIGNATURES_TABLE, hash_key(url if "?" in url else f"{url}?"))
    said = None if row is None else ContentSignature.read(row)
    return (
        said
        if said is not None and said.own == ContentSignature.own_of(url) and not said.slot
        else None
    )


def hash_key(text: str) -> bytes:
    """16 bytes of a URL, or of what URLs have in common."""
    return xxhash.xxh3_128_digest(text.encode())
