"""Make the records of a corpus from a page's row, its document and the links to it.

A record is a page, or a chunk of one for retrieval. A chunk holds whole blocks while they fit; a
block that is too long is cut between lines, sentences or words. Chunks do not overlap: together
they are the document. Each knows the headings that it stands under.

The quality rules are those of Rae and others 2021 ("Scaling language models: methods, analysis &
insights from training Gopher", table A1), without the one on English stop words and those on
repeated n-grams.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import xxhash

from focused.corpus.page_selection import PageFilter, SelectedPage
from focused.corpus.records import TRAIN, VALIDATION, CorpusRecord, InLink
from focused.corpus.stored_documents import StoredDocument
from focused.durations import iso_time
from focused.text import hash_fraction
from focused.web.host_names import registered_domain
from focused.web.html.text_structure import (
    CODE,
    HEADING,
    TABLE,
    TextBlock,
    clean_line,
    render_markdown,
    render_text,
)

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


MIN_WORDS, MAX_WORDS = 50, 100_000

RULES = (
    "too-short",
    "too-long",
    "word-length",
    "few-letters",
    "symbols",
    "bullets",
    "ellipses",
    "repeated-lines",
)
"""The names of the rules."""

_UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})
"""Languages that write no spaces between words."""
_SYMBOL = re.compile(r"#|\.\.\.|…")
_BULLET = re.compile(r"\s*[-*•‣▪]\s")


def failed_rules(text: str, language: str = "") -> tuple[str, ...]:
    """Return the names of the rules that a text fails, in the order of :data:`RULES`.

    Rules on words are left out for languages that write no spaces between them.
    """
    failed = set()
    words = text.split()
    if language not in _UNSPACED:
        n_words = max(len(words), 1)
        failed |= {"too-short"} if len(words) < MIN_WORDS else set()
        failed |= {"too-long"} if len(words) > MAX_WORDS else set()
        if not 3 <= sum(map(len, words)) / n_words <= 10:
            failed.add("word-length")
        if sum(any(map(str.isalpha, word)) for word in words) < 0.8 * n_words:
            failed.add("few-letters")
        if len(_SYMBOL.findall(text)) > 0.1 * n_words:
            failed.add("symbols")
    lines = [line for line in text.split("\n") if line.strip()]
    n_lines = max(len(lines), 1)
    if sum(_BULLET.match(line) is not None for line in lines) > 0.9 * n_lines:
        failed.add("bullets")
    if sum(line.rstrip().endswith(("...", "…")) for line in lines) > 0.3 * n_lines:
        failed.add("ellipses")
    if sum(count - 1 for count in Counter(lines).values()) > 0.3 * n_lines:
        failed.add("repeated-lines")
    return tuple(rule for rule in RULES if rule in failed)


_MAX_TITLE_CHARS = 300


def page_records(
    page: SelectedPage,
    stored: StoredDocument,
    in_links: Iterable[InLink],
    page_filter: PageFilter,
    *,
    chunk_chars: int | None = None,
    validation: float = 0.0,
    seed: int = 0,
    authority: float | None = None,
    hub: float | None = None,
) -> Iterator[CorpusRecord]:
    """Yield the records of a page, a record a chunk; none if the filter drops its content.

    ``chunk_chars`` None makes one record. The domain's hash, seeded with ``seed``, is below
    ``validation`` for pages of that split.
    """
    blocks, declared = stored.document.blocks, stored.document.metadata
    text = render_text(blocks)
    words, failed = len(text.split()), failed_rules(text, page.language)
    if not page_filter.keeps_document(
        published=declared.published, robots=declared.robots, words=words, failed_rules=failed
    ):
        return
    domain = registered_domain(page.host)
    is_validation = hash_fraction(domain, seed) < validation
    chunks = (Chunk(blocks),) if chunk_chars is None else cut_into_chunks(blocks, chunk_chars)
    texts = [text] if chunk_chars is None else [render_text(c.blocks) for c in chunks]
    ids = chunk_ids(page.url, texts)
    for number, (chunk, own, own_id) in enumerate(zip(chunks, texts, ids, strict=True)):
        yield CorpusRecord(
            id=own_id,
            url=page.url,
            host=page.host,
            domain=domain,
            title=clean_line(page.title, _MAX_TITLE_CHARS),
            text=own,
            markdown=render_markdown(chunk.blocks),
            chunk=number,
            chunks=len(chunks),
            headings=chunk.headings,
            authors=declared.authors,
            published=declared.published or None,
            modified=declared.modified or None,
            fetched_at=iso_time(int(page.fetched_at)),
            language=page.language,
            relevance=page.relevance,
            on_topic=page.on_topic,
            score=page.score,
            depth=page.depth,
            parent=page.parent,
            anchor=clean_line(page.anchor, _MAX_TITLE_CHARS),
            in_links=tuple(
                InLink(link.source, clean_line(link.anchor, _MAX_TITLE_CHARS)) for link in in_links
            ),
            authority=authority,
            hub=hub,
            licences=declared.licences,
            robots=declared.robots,
            words=len(own.split()),
            quality=failed,
            text_sha256=hashlib.sha256(own.encode()).hexdigest(),
            cluster=page.cluster,
            cluster_size=page.cluster_size,
            duplicate_of=page.duplicate_of,
            training=page.training,
            gone=page.gone,
            split=VALIDATION if is_validation else TRAIN,
            model=page.model,
            warc_file=page.warc_file,
            warc_offset=page.warc_offset,
        )
