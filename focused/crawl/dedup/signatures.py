"""Content signatures of fetched pages: whether two URLs brought the same page."""

from __future__ import annotations

from dataclasses import dataclass, replace

import xxhash

from focused.storage.tables import Tables
from focused.text.content_signatures import NO_BAG_HASH

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
