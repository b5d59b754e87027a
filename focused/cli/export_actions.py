"""What ``focused export`` does."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from focused.cli.common import crawl_folder, echo, parse_time, writing
from focused.cli.progress_bars import progress_bar
from focused.corpus.export import CARD_FILE, ExportResult, ProgressCallback, export_corpus
from focused.corpus.page_filter import ExportOptions, PageFilter
from focused.corpus.writers import has_compression
from focused.errors import ConfigurationError
from focused.parser_process import cores

_LANGUAGE = re.compile(r"[a-z]{2}")


def export_crawl(
    where: Path,
    form: str,
    out: Path | None,
    *,
    processes: int | None,
    fresh: bool,
    **options: Any,
) -> None:
    """Export the crawl of a folder or topic file, and print what was written."""
    crawl = crawl_folder(where)
    named = crawl.resolve()  # "." has no name
    folder = out or named.with_name(f"{named.name}-corpus")
    now = time.time()
    with _progress() as progress, writing(folder):
        result = export_corpus(
            crawl,
            folder,
            _export_options(form, **options),
            now=now,
            processes=processes or cores(),
            progress=progress,
            fresh=fresh,
        )
    for line in _result_lines(folder, result):
        echo(f"focused: {line}", err=True)


def _export_options(
    form: str,
    *,
    compression: str,
    chunk_chars: int | None,
    validation: float,
    seed: int,
    graph: Path | None,
    guess_dates: bool,
    **conditions: Any,
) -> ExportOptions:
    """Return the checked options. Raises ConfigurationError."""
    if compression != "none" and not has_compression(form):
        raise ConfigurationError(f"--compression: {form} has none; leave the option out")
    return ExportOptions(
        form=form,
        pages=page_filter(**conditions),
        chunk_chars=chunk_chars,
        validation=validation,
        seed=seed,
        compression=compression,
        graph=None if graph is None else str(graph.resolve()),
        guess_dates=guess_dates,
    )


def page_filter(
    *,
    fetched_since: str | None,
    fetched_until: str | None,
    published_since: str | None,
    published_until: str | None,
    no_samples: bool,
    **conditions: Any,
) -> PageFilter:
    """Return the filter of the options in :func:`selection_options`. Raises ConfigurationError."""
    for language in conditions["languages"]:
        if not _LANGUAGE.fullmatch(language):
            raise ConfigurationError(
                f"--language {language}: is no code of ISO 639-1, such as en or de"
            )
    return PageFilter(
        fetched_since=_timestamp("--fetched-since", fetched_since),
        fetched_until=_timestamp("--fetched-until", fetched_until),
        published_since=_day("--published-since", published_since),
        published_until=_day("--published-until", published_until),
        samples=not no_samples,
        hosts=_lower(conditions.pop("hosts")),
        not_hosts=_lower(conditions.pop("not_hosts")),
        robots=_lower(conditions.pop("robots")),
        **conditions,
    )


def _lower(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value.strip().lower() for value in values)


def _timestamp(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise ConfigurationError(
            f"{option} {text}: is no date or time in ISO 8601, such as 2026-01-31"
        ) from None


def _day(option: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise ConfigurationError(f"{option} {text}: is no date, such as 2026-01-31") from None


def _result_lines(folder: Path, result: ExportResult) -> Iterator[str]:
    if result.was_complete:
        yield f"{folder} holds this export already; --fresh makes it anew"
        return
    yield (
        f"wrote {result.records:,} records of {result.pages:,} pages with {result.words:,} words "
        f"to {folder}"
    )
    if result.filtered:
        yield f"left out {result.filtered:,} pages by conditions on their text"
    for reason, pages in sorted(result.reasons.items()):
        yield f"no document of {pages:,} pages: {reason}"
    yield f"the data card is {folder / CARD_FILE}"


@contextmanager
def _progress() -> Iterator[ProgressCallback]:
    """Show a progress bar; without a terminal, a line for each tenth of each step."""
    with progress_bar() as bar:
        task = bar.add_task("", total=None)
        said = ("", -1)

        def advance(step: str, done: int, total: int) -> None:
            nonlocal said
            bar.update(task, description=step, completed=done, total=total or None)
            tenth = 10 * done // total if total else 0
            if not bar.console.is_terminal and (step, tenth) != said:
                said = (step, tenth)
                echo(
                    f"focused: {step}: {done:,} of {total:,} pages"
                    if total
                    else f"focused: {step}",
                    err=True,
                )

        yield advance
