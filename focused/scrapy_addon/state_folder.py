"""Open and check a crawl's folder, and format the errors that stop a crawl."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from focused.archive.warc_files import WARC_FILE
from focused.crawl.crawl_stats import Counters
from focused.errors import FocusedError, StateError
from focused.storage.environment import write_error_advice
from focused.storage.state_store import StateStore
from focused.topic import Topic

_CRAWL_FILES = ("pages.parquet", "links.parquet", WARC_FILE, "settings.json", "stats.json")
"""Files that a crawl writes beside its state."""


def open_state(topic: Topic, policy: str, *, replayed: bool, spider: str) -> StateStore:
    """Open the state in the topic's folder; raises StateError.

    A folder belongs to one topic, one policy, one web and one spider: robots.txt rules and links of
    a replayed web must not reach a live crawl, and requests name callbacks of their spider. A
    folder with a crawl's files but no state is refused, because the files would be overwritten.
    """
    identity = {
        "topic": topic.name,
        "policy": policy,
        "web": "a recorded one" if replayed else "the live one",
        "spider": spider,
    }
    folder = topic.output.folder
    _refuse_to_overwrite(folder)
    return StateStore.open(folder / "state", identity)


def check_state(topic: Topic, policy: str, *, replayed: bool, spider: str) -> None:
    """Raise StateError if :func:`open_state` would; create no folder."""
    folder = topic.output.folder
    if (folder / "state").exists():
        open_state(topic, policy, replayed=replayed, spider=spider).close()
        return
    _refuse_to_overwrite(folder)
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        error = errno.ENOTDIR
    elif os.access(there, os.W_OK | os.X_OK):
        return
    else:
        read_only = os.statvfs(there).f_flag & os.ST_RDONLY
        error = errno.EROFS if read_only else errno.EACCES
    raise StateError(
        f"{folder} cannot be written to: {there}: {os.strerror(error)}. "
        "Choose another output.folder, or mend this one."
    )


def _refuse_to_overwrite(folder: Path) -> None:
    """Raise StateError if a folder without state contains a crawl's files."""
    data = folder / "state" / "data.mdb"
    if data.is_file() and data.stat().st_size:
        return
    found = next((name for name in _CRAWL_FILES if (folder / name).exists()), None)
    if found is not None:
        raise StateError(
            f"{folder} holds {found}, but no crawl state: a new crawl would "
            "overwrite it. Choose another output.folder, or move this one away."
        )


def format_error(error: Exception, folder: Path) -> str:
    """Return a message about an error that stopped the crawl in ``folder``."""
    if isinstance(error, FocusedError):
        return str(error)
    if isinstance(error, OSError):
        return (
            f"cannot write to {folder}: {error.strerror or error}. What was fetched before is "
            f"safe; {write_error_advice(error)} and start the same command again."
        )
    return (
        f"the crawl in {folder} was stopped by {type(error).__name__}: {error}. See the "
        "log; the WARC and Parquet files stay readable."
    )


def no_pages_message(topic: Topic, counters: Counters) -> str:
    """Return why a crawl that fetched nothing has no pages."""
    urls = topic.seeds.urls
    seeds = ", ".join(urls[:3]) + (f" and {len(urls) - 3} more" if len(urls) > 3 else "")
    kinds = ", ".join(f"{kind} ({count})" for kind, count in counters.failures.items())
    return (
        f"no page came from the seeds ({seeds}): {kinds or 'nothing was requested'}. "
        f"Check seeds in {topic.path}, and the network"
    )
