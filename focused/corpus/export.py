"""Export a crawl as a corpus.

1. Select pages by their rows, with in-links and clusters (:mod:`focused.corpus.page_selection`).
2. Extract their documents in parser processes, and store them beside the pages.
3. Make records of the documents and write them in a format (:mod:`focused.corpus.writers`).
4. Move the files to their places; the data card comes last.

What the first two steps have done is kept in ``.export/`` of the output's folder. An export that
was interrupted, even by a kill, goes on with it. So the result does not depend on interruptions.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from focused.archive.crawl_tables import read_json, read_settings
from focused.corpus.data_card import ExportResult, data_card
from focused.corpus.page_records import page_records
from focused.corpus.page_selection import ExportOptions, Selection, open_selection, select_pages
from focused.corpus.records import CORPUS_FORMAT, TRAIN, VALIDATION
from focused.corpus.stored_documents import (
    EXTRACTION_LIMITS,
    NO_TEXT,
    StoredDocument,
    extract_documents,
)
from focused.corpus.writers import INDEX_FILE, open_writer
from focused.errors import ConfigurationError, ExtractionError, StateError
from focused.files import fsync_folder, lock_folder, write_atomically, write_json_atomically
from focused.web.html.main_text import require_extraction

CARD_FILE = "README.md"
"""The data card; it exists only in a complete export."""
WORK_FOLDER = ".export"

_CRAWL_FOLDER = "folder"
_NAMES = (TRAIN, VALIDATION, INDEX_FILE.partition(".")[0])
_ARGUMENTS_FILE = "arguments.json"
GROUP_DOCUMENTS = 100
"""Documents that are stored together: what an interrupted export extracts again."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredDocument).decode

ProgressCallback = Callable[[str, int, int], object]
"""Called with what is done now, how many pages of it, and of how many."""


def export_corpus(
    crawl: Path,
    folder: Path,
    options: ExportOptions,
    *,
    now: float,
    processes: int = 1,
    progress: ProgressCallback = lambda step, done, total: None,
    fresh: bool = False,
) -> ExportResult:
    """Export the crawl in ``crawl`` to ``folder``, or go on with an interrupted export.

    ``now`` is in seconds since the epoch. ``fresh`` removes an earlier export, once the crawl was
    read. Raises ConfigurationError if ``folder`` has another export or foreign files, StateError if
    the crawl cannot be read or another export into ``folder`` runs, ModuleNotFoundError without the
    extra ``corpus``, ExtractionError if no page could be extracted, OSError if a file cannot be
    written.
    """
    require_extraction()
    settings = read_settings(crawl)
    work = folder / WORK_FOLDER
    selection_file = work / "selection.sqlite"
    is_replaced = fresh and work.is_dir()
    arguments = _arguments(crawl, folder, options)
    busy = StateError(f"{folder}: another export into this folder is running")
    with _folder_to_fill(work), lock_folder(work, busy):
        is_begun = not is_replaced and _is_begun(folder, arguments)
        if is_begun and (folder / CARD_FILE).exists():
            return ExportResult(was_complete=True)
        if not (is_begun and selection_file.exists()):
            progress("selecting", 0, 0)
            selected = work / "next.sqlite"
            select_pages(crawl, selected, options.pages, now)
            if is_replaced:
                _remove_export(folder, selected)
            write_json_atomically(work / _ARGUMENTS_FILE, arguments)
            selected.replace(selection_file)
        with open_selection(selection_file) as selection:
            result = ExportResult(resumed_at=selection.next_position())
            _extract(crawl, selection, result.resumed_at, processes, progress, options)
            _write(selection, folder, options, result, progress)
            failed = {
                reason: pages for reason, pages in result.reasons.items() if reason != NO_TEXT
            }
            if failed and sum(failed.values()) == selection.totals.selected:
                selection.drop_documents()  # the next export tries all pages again
                reasons = ", ".join(
                    f"{reason}: {pages:,}" for reason, pages in sorted(failed.items())
                )
                raise ExtractionError(f"{crawl}: no page could be extracted ({reasons})")
            card = data_card(settings, options, selection.totals, result)
        _move(work / "files", folder)
        write_atomically(folder / CARD_FILE, card.encode())
        selection_file.unlink()
        return result


@contextmanager
def _folder_to_fill(folder: Path) -> Iterator[None]:
    """Make a folder and its parents; if the block fails, remove those that it leaves empty."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for each in made:
                each.rmdir()
        raise


def _arguments(crawl: Path, folder: Path, options: ExportOptions) -> dict[str, Any]:
    """Return what an export is, as it is stored."""
    return {
        "format": CORPUS_FORMAT,
        "crawl": crawl.resolve().name,
        # Relative: a corpus may be published.
        _CRAWL_FOLDER: os.path.relpath(crawl.resolve(), folder.resolve()),
        **json.loads(msgspec.json.encode(options)),
    }


def _is_begun(folder: Path, arguments: Mapping[str, Any]) -> bool:
    """Whether an export with these arguments was begun; an error if ``folder`` has other files."""
    known = read_json(folder / WORK_FOLDER / _ARGUMENTS_FILE)
    if not known:
        names = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
        if names - {WORK_FOLDER}:
            raise ConfigurationError(f"{folder}: is not empty; --out names another folder")
        return False
    # A crawl's folder may have been moved, but not to where another one still is.
    earlier = known.pop(_CRAWL_FOLDER, arguments[_CRAWL_FOLDER])
    if earlier != arguments[_CRAWL_FOLDER] and (folder / str(earlier)).is_dir():
        known["crawl"] = earlier
    own = {key: value for key, value in arguments.items() if key != _CRAWL_FOLDER}
    differing = [key for key, value in own.items() if known.get(key) != value]
    if differing:
        state = "a complete" if (folder / CARD_FILE).exists() else "an interrupted"
        raise ConfigurationError(
            f"{folder}: holds {state} export with other arguments ({', '.join(differing)}); "
            "repeat them, give --out another folder, or --fresh to replace it"
        )
    return True


def _extract(
    crawl: Path,
    selection: Selection,
    start: int,
    processes: int,
    progress: ProgressCallback,
    options: ExportOptions,
) -> None:
    total, done = selection.totals.selected, start
    progress("extracting", done, total)
    if start >= total:
        return
    documents = extract_documents(
        crawl,
        selection.pages(start),
        processes=processes,
        limits=EXTRACTION_LIMITS,
        guess_dates=options.guess_dates,
    )
    while group := list(islice(documents, GROUP_DOCUMENTS)):
        selection.store_documents((each.position, _encode(each)) for each in group)
        done += len(group)
        progress("extracting", done, total)


def _write(
    selection: Selection,
    folder: Path,
    options: ExportOptions,
    result: ExportResult,
    progress: ProgressCallback,
) -> None:
    """Write all records to new files in the work folder, and count them."""
    files = folder / WORK_FOLDER / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    total = selection.totals.selected
    scores = {} if options.graph is None else _link_scores(Path(options.graph))
    with open_writer(options.form, files, options.splits, options.compression) as writer:
        for (position, page), raw in zip(selection.pages(), selection.documents(), strict=True):
            stored = _decode(raw)
            if stored.reason:
                result.reasons[stored.reason] += 1
            else:
                authority, hub = scores.get(page.url, (None, None))
                records = list(
                    page_records(
                        page,
                        stored,
                        selection.in_links(position),
                        options.pages,
                        chunk_chars=options.chunk_chars,
                        validation=options.validation,
                        seed=options.seed,
                        authority=authority,
                        hub=hub,
                    )
                )
                result.filtered += not records
                for record in records:
                    writer.write(record)
                    result.add_record(record)
                if records:
                    result.add_page(page, records[0])
            if (position + 1) % 1_000 == 0 or position + 1 == total:
                progress("writing", position + 1, total)


def _link_scores(graph: Path) -> dict[str, tuple[float, float]]:
    """The scores of pages by their links. Raises StateError if there is no graph."""
    from focused.link_graph.measures import scores_by_url
    from focused.link_graph.page_graph import PageGraph

    return scores_by_url(PageGraph(graph))


def _move(files: Path, folder: Path) -> None:
    """Move the files to their places. May be repeated: what was moved is replaced."""
    for path in sorted(files.iterdir()):
        target = folder / path.name
        if target.is_dir():
            shutil.rmtree(target)
        path.replace(target)
    fsync_folder(folder)
    files.rmdir()


def _remove_export(folder: Path, kept: Path) -> None:
    """Remove the files of an export, and no others; the card first. ``kept`` stays."""
    (folder / CARD_FILE).unlink(missing_ok=True)
    files = [path for path in folder.iterdir() if path.name.partition(".")[0] in _NAMES]
    for path in {*files, *(folder / WORK_FOLDER).iterdir()} - {kept}:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
