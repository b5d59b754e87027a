"""All errors that a user can fix, named for the remedy.

::

    FocusedError                print the message and exit; never a traceback
    ├── ConfigurationError      fix the topic file or setting that the message names
    ├── TrainingError           fix the samples: too few, one class only, none readable
    ├── ModelError              train again: the model is missing, damaged, foreign or too new
    │   └── ModelLockedError    wait: another process trains the model
    ├── RecordedWebError        build or import the recorded web again
    ├── LabelError              fix the label file, or end the other session
    ├── ComparisonError         name another comparison, or compare again
    ├── StateError              the crawl folder is damaged, foreign or in use
    │   └── StateFormatError    it was written by a version with another format
    ├── SearchError             build the search index again
    ├── ExtractionError         name a crawl with pages that can be extracted
    ├── MissingExtraError       install the extra that the message names
    └── StorageError            make the shared storage readable and writable

A failure of a single page is not an exception: it is a :class:`focused.web.page.Failed`,
which is counted and reported and never stops a crawl. Every message says what is wrong,
where (file, line, key, URL) and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_JOINERS = "\u200c\u200d"  # part of words in some scripts, harmless


def escape_control_characters(text: str) -> str:
    r"""Escape characters that could control a terminal or reorder text: ESC becomes ``\x1b``.

    Applies to all untrusted text that is printed: URLs, titles, anchors, file names, values,
    output of other programs. Keeps line breaks; escapes control characters, bidirectional
    marks, lone surrogates and unusual spaces as ``repr`` does.
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char == "\n" or char in _JOINERS
        else char.encode("unicode_escape").decode()
        for char in text
    )


def print_notice(text: str) -> None:
    """Print a line about a crawl on standard error, with the program's name."""
    print(f"focused: {escape_control_characters(text)}", file=sys.stderr, flush=True)


def exit_before_start() -> NoReturn:
    """Exit with status 130, as after Ctrl-C, when a crawl is stopped before it starts."""
    print_notice("stopped before the crawl started; the same command resumes")
    raise SystemExit(130) from None


class FocusedError(Exception):
    """Base of all errors that a user can fix; ``str()`` is safe for the terminal."""

    def __str__(self) -> str:
        return escape_control_characters(super().__str__())


class ConfigurationError(FocusedError):
    """A topic file, setting or argument is wrong; the message names the key."""


class TrainingError(FocusedError):
    """The classifier cannot be trained from these samples."""


class ModelError(FocusedError):
    """A model file is missing, damaged, foreign, or newer than this program."""


class ModelLockedError(ModelError):
    """Another process is training the model."""


class RecordedWebError(FocusedError):
    """A recorded web cannot be built, read or served."""


class LabelError(FocusedError):
    """A label file cannot be read or written, or another session has it open."""


class ComparisonError(FocusedError):
    """A comparison file is damaged or was not written by Focused."""


class StateError(FocusedError):
    """A crawl folder is damaged, belongs to another crawl, or is in use."""


class StateFormatError(StateError):
    """A crawl folder was written by a version of the crawler with another format."""


class StorageError(FocusedError):
    """The shared storage of a crawl cannot be read or written."""


class SearchError(FocusedError):
    """A search index is missing, damaged or in use."""


class ExtractionError(FocusedError):
    """No page of a crawl can be extracted."""


class MissingExtraError(FocusedError):
    """A command needs libraries of an extra that is not installed."""


_EXTRAS = {
    "report": "report",
    "why": "report",
    "compare": "experiments",
    "compare-revisits": "experiments",
    "label": "label",
    "export": "corpus",
    "search": "search",
    "graph": "graph",
}
_EXTRA_OF_MODULE = {
    "duckdb": "graph",
    "elasticsearch": "elasticsearch",
    "form2request": "login",
    "fsspec": "cluster",
    "jinja2": "experiments",
    "htmldate": "corpus",
    "keyring": "login",
    "lxml_html_clean": "corpus",
    "markdown_it": "documents",
    "matplotlib": "report",
    "nh3": "label",
    "opensearchpy": "opensearch",
    "pandas": "report",
    "prometheus_client": "operations",
    "pypdfium2": "documents",
    "playwright": "javascript",
    "pysolr": "solr",
    "ray": "cluster",
    "pythonjsonlogger": "operations",
    "tantivy": "search",
    "trafilatura": "corpus",
}


@contextmanager
def os_errors_as(kind: type[FocusedError], what: str, hint: str = "") -> Iterator[None]:
    """Raise an OSError of the block as a ``kind`` of error, with the message ``WHAT: REASON``.

    ``hint`` follows the reason; it says what helps.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}{hint}") from error


def missing_extra(error: ModuleNotFoundError, command: str) -> MissingExtraError | None:
    """Return the error that names the extra to install; None where no extra has the module."""
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRA_OF_MODULE:
        return None
    extra = _EXTRAS.get(command, _EXTRA_OF_MODULE[module])
    return MissingExtraError(
        f"{command} needs {module}, which is not installed: pip install 'focused-crawler[{extra}]'"
    )
