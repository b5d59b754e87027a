"""Opens all that a session needs, and closes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from focused.errors import StateError
from focused.labelling.crawled import read_crawled
from focused.labelling.pool import Progress, teaching_pool
from focused.labelling.session import Session
from focused.labelling.subject import subject_of
from focused.labels.label_file import LabelFile
from focused.recorded.kept_pages import KeptPages, kept_pages_path


@contextmanager
def opened_session(
    where: Path, labels: Path | None = None, progress: Progress | None = None
) -> Iterator[Session]:
    """A session on the crawl at ``where``, its folder or its topic file.

    ``progress(done, total)`` is called while pages are read. Raises a
    :class:`focused.errors.FocusedError` when crawl or labels cannot be read, another session
    has the labels, or nothing was fetched yet.
    """
    subject = subject_of(where, labels)
    crawled = read_crawled(subject.folder)
    if not crawled.pages:
        raise StateError(f"{subject.folder}: nothing was fetched yet; let the crawl run a while")
    with LabelFile(subject.labels) as file, KeptPages(kept_pages_path(subject.labels)) as kept:
        pool = teaching_pool(crawled, subject.judge, progress)
        yield Session(subject, crawled, pool, file, kept)
