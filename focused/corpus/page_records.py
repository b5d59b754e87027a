"""Make the records of a corpus from a page's row, its document and the links to it.

The quality rules are those of Rae and others 2021 ("Scaling language models: methods, analysis &
insights from training Gopher", table A1), without the one on English stop words and those on
repeated n-grams.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from focused.corpus.chunks import Chunk, chunk_ids, cut_into_chunks
from focused.corpus.page_selection import PageFilter, SelectedPage
from focused.corpus.records import TRAIN, VALIDATION, CorpusRecord, InLink
from focused.corpus.stored_documents import StoredDocument
from focused.durations import iso_time
from focused.text.hash_sampling import hash_fraction
from focused.web.host_names import registered_domain
from focused.web.html.text_structure import clean_line, render_markdown, render_text

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


def count_words(text: str) -> int:
    """Return the number of words between white space."""
    return len(text.split())


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
    words, failed = count_words(text), failed_rules(text, page.language)
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
            words=words if len(chunks) == 1 else count_words(own),
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
