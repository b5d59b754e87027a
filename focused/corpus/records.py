"""One record of a corpus: a page, or a chunk of a page."""

from __future__ import annotations

import msgspec

CORPUS_FORMAT = 1


class InLink(msgspec.Struct, frozen=True):
    """A link to a page of the corpus: the page that has it, and its anchor text."""

    source: str
    anchor: str


class CorpusRecord(msgspec.Struct, frozen=True):
    """A record; docs/reference/corpus.md has the meaning of each column."""

    id: str
    url: str
    host: str
    domain: str
    title: str
    text: str
    markdown: str
    chunk: int
    chunks: int
    headings: tuple[str, ...]
    authors: tuple[str, ...]
    published: str | None
    modified: str | None
    fetched_at: str
    language: str
    relevance: float | None
    on_topic: bool
    score: float
    depth: int
    parent: str | None
    anchor: str
    in_links: tuple[InLink, ...]
    authority: float | None
    hub: float | None
    licences: tuple[str, ...]
    robots: tuple[str, ...]
    words: int
    quality: tuple[str, ...]
    text_sha256: str
    cluster: str
    cluster_size: int
    duplicate_of: str | None
    training: bool
    gone: bool
    split: str
    model: str
    warc_file: str
    warc_offset: int


COLUMNS = CorpusRecord.__struct_fields__
"""The columns, in order."""

TRAIN, VALIDATION = "train", "validation"
"""The splits; without a split all records are in ``train``."""
