"""Cut documents into chunks for retrieval.

A chunk holds whole blocks while they fit; a block that is too long is cut between lines, sentences
or words. Chunks do not overlap: together they are the document. Each knows the headings that it
stands under.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import xxhash

from focused.web.html.text_structure import CODE, HEADING, TABLE, TextBlock

MIN_CHUNK_CHARS = 100
"""Smallest maximum of a chunk."""

_SENTENCE_END = re.compile(r"[.!?。!?]['\")\]]*\s+|\n|[。!?]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive blocks of a document; ``headings`` are those above the first, outermost first."""

    blocks: tuple[TextBlock, ...]
    headings: tuple[str, ...] = ()


def record_id(url: str, text: str, occurrence: int = 0) -> str:
    """Return 32 hexadecimal digits that depend on URL and text alone (xxHash128).

    ``occurrence`` counts the chunks of the page with the same text before this one. So the ids of
    other chunks stay when a page changes elsewhere.
    """
    return xxhash.xxh3_128_hexdigest(f"{url}\0{occurrence}\0{text}".encode("utf-8", "replace"))


def chunk_ids(url: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield the ids of a page's chunks, which are in order."""
    seen: Counter[str] = Counter()
    for text in texts:
        yield record_id(url, text, seen[text])
        seen[text] += 1


def cut_into_chunks(blocks: Sequence[TextBlock], max_chars: int) -> tuple[Chunk, ...]:
    """Return chunks whose blocks have at most ``max_chars`` characters together.

    A heading begins a new chunk if the current one is at least half full, and never ends one unless
    it ends the document.
    """
    chunks: list[Chunk] = []
    current: list[TextBlock] = []
    above: list[TextBlock] = []  # the open headings
    headings: tuple[str, ...] = ()  # above the current chunk
    chars = 0

    def finish() -> None:
        nonlocal chars
        if current:
            chunks.append(Chunk(tuple(current), headings))
            current.clear()
            chars = 0

    for block in _fitting(blocks, max_chars):
        is_heading = block.kind == HEADING
        if chars + len(block.text) > max_chars or (is_heading and chars >= max_chars / 2):
            carried = _trailing_headings(current, max_chars - len(block.text))
            del current[len(current) - len(carried) :]
            finish()
            first = (carried or [block])[0]
            headings = _path(above, first)
            current += carried
            chars = sum(len(each.text) for each in carried)
        if not chunks and not current:
            headings = ()
        current.append(block)
        chars += len(block.text)
        if is_heading:
            above = [each for each in above if each.level < block.level] + [block]
    finish()
    return tuple(chunks)


def _trailing_headings(blocks: Sequence[TextBlock], room: int) -> list[TextBlock]:
    """Return the headings at the end, which belong to the next chunk, if they fit there."""
    first = len(blocks)
    while first > 0 and blocks[first - 1].kind == HEADING:
        first -= 1
    found = list(blocks[first:])
    return found if first > 0 and sum(len(each.text) for each in found) <= room else []


def _path(above: Sequence[TextBlock], first: TextBlock) -> tuple[str, ...]:
    """Return the texts of the headings above a chunk that begins with ``first``."""
    before = list(above)
    for number, heading in enumerate(above):
        if heading is first or (first.kind == HEADING and heading.level >= first.level):
            before = list(above[:number])
            break
    return tuple(heading.text for heading in before)


def _fitting(blocks: Iterable[TextBlock], max_chars: int) -> Iterator[TextBlock]:
    """Yield blocks, the long ones in parts."""
    for block in blocks:
        start = 0
        while len(block.text) - start > max_chars:
            end = _cut_at(block, start, max_chars)
            yield _part(block, start, end)
            start = end
        yield _part(block, start, len(block.text)) if start else block


def _cut_at(block: TextBlock, start: int, max_chars: int) -> int:
    """Return where to cut: after a line or sentence, else between words, else anywhere."""
    window = block.text[start : start + max_chars]
    if block.kind in (CODE, TABLE):
        end = window.rfind("\n") + 1
    else:
        end = max((found.end() for found in _SENTENCE_END.finditer(window)), default=0)
        if end < max_chars / 4:
            end = max(end, window.rfind(" ") + 1)
    return start + (end or len(window))


def _part(block: TextBlock, start: int, end: int) -> TextBlock:
    text = block.text[start:end]
    if block.kind in (CODE, TABLE):
        return msgspec.structs.replace(block, text=text.strip("\n"))
    lead = len(text) - len(text.lstrip())
    spans = tuple(
        (first - start - lead, last - start - lead)
        for first, last in block.code_spans
        if start + lead <= first and last <= end
    )
    return msgspec.structs.replace(block, text=text.strip(), code_spans=spans)
