"""The data card of a corpus: what it holds, when and how it was made, and under which conditions.

It begins with the metadata that the Hugging Face Hub and its ``datasets`` read. Texts of pages are
untrusted: those in the card are escaped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import msgspec

from focused.corpus.page_selection import ExportOptions, SelectedPage, SelectionTotals
from focused.corpus.records import CorpusRecord
from focused.corpus.writers import COMPRESSIONS, INDEX_FILE
from focused.web.html.text_structure import clean_line, escape_markdown

_MOST = 20
"""Rows of a table."""
_MAX_CHARS = 200


@dataclass(slots=True)
class ExportResult:
    """What an export counts while it writes records.

    ``reasons`` are those of pages without a document. ``was_complete``: the folder held this export
    already. ``resumed_at`` is the number of documents that an interrupted export had extracted.
    """

    was_complete: bool = False
    resumed_at: int = 0
    pages: int = 0
    records: int = 0
    words: int = 0
    filtered: int = 0
    clusters: int = 0
    samples: int = 0
    undated: int = 0
    unlicensed: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    licences: Counter[str] = field(default_factory=Counter)
    robots: Counter[str] = field(default_factory=Counter)
    quality: Counter[str] = field(default_factory=Counter)
    relevance: Counter[int] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add_record(self, record: CorpusRecord) -> None:
        """Count a record."""
        self.records += 1
        self.words += record.words
        self.splits[record.split] += 1

    def add_page(self, page: SelectedPage, record: CorpusRecord) -> None:
        """Count a page, of which ``record`` is the first record."""
        self.pages += 1
        self.clusters += page.cluster_size > 1 and page.duplicate_of is None
        self.samples += page.training
        self.undated += record.published is None
        self.unlicensed += not record.licences
        self.languages[record.language or "unknown"] += 1
        self.domains[record.domain] += 1
        self.licences.update(record.licences)
        self.robots.update(record.robots)
        self.quality.update(record.quality)
        self.models[record.model] += 1
        if record.relevance is not None:
            self.relevance[min(int(record.relevance * 10), 9)] += 1


def data_card(
    settings: Mapping[str, Any],
    options: ExportOptions,
    totals: SelectionTotals,
    counts: ExportResult,
) -> str:
    """Return the card as Markdown; ``settings`` are those of the crawl's ``settings.json``."""
    topic = settings.get("topic", {})
    name = clean_line(str(topic.get("name") or "unnamed"), _MAX_CHARS)
    parts = [
        _front_matter(name, options, counts),
        f"# Corpus of the topic {escape_markdown(name)}",
        _summary(options, totals, counts),
        "## How it was collected",
        _collection(settings, topic, totals, counts),
        "## How pages were judged",
        _judgement(options, counts),
        "## What is left out",
        _left_out(options, totals, counts),
        "## Licences and directives",
        _rights(counts),
        "## Composition",
        _table("language", counts.languages),
        _table("registered domain", counts.domains),
        _table("failed quality rule", counts.quality),
        "## Columns",
        "Each record has the columns of the reference page *Corpora* of Focused "
        "(docs/reference/corpus.md). Texts, titles and anchors were written by the pages' authors: "
        "treat them as untrusted input.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _front_matter(name: str, options: ExportOptions, counts: ExportResult) -> str:
    """Return the metadata for the Hugging Face Hub; JSON is YAML."""
    languages = sorted(each for each in counts.languages if each != "unknown")
    about: dict[str, Any] = {
        "pretty_name": f"Corpus of the topic {name}",
        "language": languages,
        "license": "other",
        "tags": ["focused-crawl"],
    }
    suffix = COMPRESSIONS[options.compression]
    if options.form in ("jsonl", "parquet", "csv"):
        # Readers fail over a split without rows.
        splits = [split for split in options.splits if counts.splits[split]] or options.splits
        files = [{"split": split, "path": f"{split}.{options.form}{suffix}"} for split in splits]
    else:
        files = [{"split": "index", "path": INDEX_FILE}]
    about["configs"] = [{"config_name": "default", "data_files": files}]
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in about.items())
    return f"---\n{lines}---"


def _summary(options: ExportOptions, totals: SelectionTotals, counts: ExportResult) -> str:
    unit = "pages" if options.chunk_chars is None else "chunks of pages"
    splits = ", ".join(f"{counts.splits[split]:,} {split}" for split in options.splits)
    return (
        f"{counts.records:,} {unit} ({splits}) from {counts.pages:,} web pages of "
        f"{len(counts.domains):,} registered domains, with {counts.words:,} words. The pages were "
        f"fetched from {_day(totals.first_at)} to {_day(totals.last_at)} and selected on "
        f"{_day(totals.created_at)} by focused-crawler {metadata.version('focused-crawler')}."
    )


def _collection(
    settings: Mapping[str, Any],
    topic: Mapping[str, Any],
    totals: SelectionTotals,
    counts: ExportResult,
) -> str:
    policy = clean_line(str(settings.get("policy") or "unknown"), _MAX_CHARS)
    obeys = topic.get("politeness", {}).get("robots", True)
    seeds = topic.get("seeds", {}).get("urls")
    return _list(
        f"A crawl with the ordering {escape_markdown(policy)} fetched {totals.fetched:,} pages."
        + (f" It began with {len(seeds):,} seeds." if seeds else ""),
        f"It {'obeyed' if obeys else 'did not obey'} robots.txt.",
        "Main text and structure are those that trafilatura "
        f"{metadata.version('trafilatura')} extracts; menus, footers and comments are left out.",
        "Authors, dates and licences are those that pages declare. "
        f"{counts.undated:,} pages declare no date of publication.",
    )


def _judgement(options: ExportOptions, counts: ExportResult) -> str:
    least = options.pages.min_relevance
    chosen = (
        "the pages that the classifier calls on topic"
        if least is None
        else f"pages with a relevance of {least:g} or more"
    )
    models = ", ".join(f"`{escape_markdown(each)}`" for each in sorted(counts.models) if each)
    bins = {f"{low / 10:.1f} to {(low + 1) / 10:.1f}": n for low, n in counts.relevance.items()}
    return (
        f"This corpus has {chosen}. A topic classifier trained on sample pages computed each "
        "page's `relevance`, a calibrated probability; no person looked at the pages, so that some "
        f"are off topic. Models: {models or 'unknown'}. {counts.samples:,} pages are training "
        "samples of the classifier (column `training`).\n\n"
        + _table("relevance", dict(sorted(bins.items())))
    )


def _left_out(options: ExportOptions, totals: SelectionTotals, counts: ExportResult) -> str:
    conditions = {
        name: value
        for name, value in msgspec.to_builtins(options.pages).items()
        if value != msgspec.to_builtins(type(options.pages)())[name]
    }
    shown = ", ".join(f"{name} = {json.dumps(value)}" for name, value in conditions.items())
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(counts.reasons.items()))
    return _list(
        f"Conditions besides the default: {escape_markdown(shown) or 'none'}.",
        f"{counts.filtered:,} selected pages did not pass the conditions on their text.",
        f"Pages without a document: {reasons or 'none'}.",
        f"{totals.noindex:,} pages asked not to be indexed, and the crawl did not store them.",
        f"The crawl found {totals.duplicates:,} duplicates among its pages, which are "
        f"{'included' if options.pages.duplicates else 'left out'}. {counts.clusters:,} pages of "
        "the corpus have duplicates (column `cluster_size`).",
    )


def _rights(counts: ExportResult) -> str:
    return (
        f"The pages belong to their authors. {counts.unlicensed:,} of {counts.pages:,} pages "
        "declare no licence (column `licences`): that is no permission. Check what your use needs. "
        "Pages with robots directives (column `robots`) are included unless a condition above "
        "leaves them out; `noarchive`, `noai` and `tdm-reservation` ask not to be stored or used "
        "for training or mining.\n\n"
        + "\n\n".join(
            filter(None, (_table("licence", counts.licences), _table("directive", counts.robots)))
        )
    )


def _list(*lines: str) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(name: str, counts: Mapping[str, int]) -> str:
    """Return a table of the most frequent values; empty without values."""
    if not counts:
        return ""
    rows: Iterable[tuple[str, int]] = counts.items()
    if isinstance(counts, Counter):
        rows = sorted(rows, key=lambda row: (-row[1], row[0]))[:_MOST]
    lines = [f"| {name} | pages |", "|---|---:|"]
    lines += [f"| {escape_markdown(clean_line(key, _MAX_CHARS))} | {n:,} |" for key, n in rows]
    if len(counts) > _MOST:
        lines.append(f"| {len(counts) - _MOST:,} others | |")
    return "\n".join(lines)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat() if at else "never"
