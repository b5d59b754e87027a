"""What the console shows of a crawl that others prepare: index, link graph, label page.

Label pages, retraining, indexing and link graphs are ``focused`` in child processes, so that they
don't block the console, and their failure stays their own. A running crawl swaps in a retrained
model itself.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from focused.child_processes import python_command, python_environment
from focused.errors import ConfigurationError, SearchError, missing_extra
from focused.link_graph.measures import LinkReport, build_link_report
from focused.link_graph.page_graph import read_graph_info

_RESULTS = 20


def search_index(crawl: Path, text: str, *, on_topic: bool, offset: int) -> dict[str, Any]:
    """Return hits, their total, and the number of indexed pages; no hits without text.

    ``indexed`` is None without an index. Raises FocusedError for a query that cannot be read.
    """
    found: dict[str, Any] = {"hits": [], "total": 0, "indexed": None}
    try:
        from focused.search.index import CrawlSearch, SearchQuery

        searching = CrawlSearch(crawl)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "search") or error from None
    except SearchError:
        return found
    found["indexed"] = searching.indexed
    if text.strip():
        query = SearchQuery(text, _RESULTS, offset, on_topic=on_topic)
        found |= asdict(searching.search(query))
    return found


def read_link_report(folder: Path) -> dict[str, Any] | None:
    """Return the report of the link graph in ``folder``, None without one.

    ``until`` is when the newest page of the graph was fetched, in seconds since the epoch.
    Raises StateError for a damaged graph.
    """
    info = read_graph_info(folder)
    if info is None:
        return None
    until = max((source.until for source in info.sources), default=None)
    return {"until": until, **asdict(_link_report(folder, info.generation))}


@lru_cache(maxsize=8)
def _link_report(folder: Path, generation: int) -> LinkReport:
    """Compute the report of a graph once; ``generation`` changes when it is built again."""
    return build_link_report(folder)


_ADDRESS = re.compile(r"http://[^\s#]++#\S++")
_MAX_OUTPUT_CHARS = 20_000
_STOP_S = 5.0


class ChildCommands:
    """The child processes of one console; :meth:`close` ends them."""

    def __init__(self) -> None:
        self._label_pages: dict[Path, tuple[subprocess.Popen[str], str]] = {}
        self._files = ExitStack()
        self._runs: dict[tuple[str, Path], tuple[subprocess.Popen[str], IO[str]]] = {}

    def open_label_page(self, crawl: Path) -> str:
        """Return the address of the crawl's label page, which is started unless it runs.

        Blocks until the pages of the crawl are read. Raises ConfigurationError if it cannot start.
        """
        known = self._label_pages.get(crawl)
        if known is not None and known[0].poll() is None:
            return known[1]
        process = _start(["label", str(crawl), "--no-browser"], subprocess.PIPE)
        assert process.stdout is not None
        line = ""
        for line in process.stdout:
            if found := _ADDRESS.search(line):
                self._label_pages[crawl] = process, found[0]
                return found[0]
        process.wait()
        process.stdout.close()
        message = line.strip().removeprefix("focused: ")
        raise ConfigurationError(message or "the label page ended at once")

    def run(self, command: str, crawl: Path, arguments: Sequence[str]) -> None:
        """Start a command of ``focused`` unless it runs for this crawl."""
        known = self._runs.get((command, crawl))
        if known is not None and known[0].poll() is None:
            return
        output = self._files.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115  # it does
        self._runs[command, crawl] = _start([command, *arguments], output), output

    def state(self, command: str, crawl: Path) -> dict[str, Any] | None:
        """Return whether the command runs, its exit status and its output; None before any."""
        known = self._runs.get((command, crawl))
        if known is None:
            return None
        process, output = known
        status = process.poll()  # before the output, which is then whole
        output.seek(0)
        text = output.read()[-_MAX_OUTPUT_CHARS:]
        return {"is_running": status is None, "status": status, "output": text}

    def close(self) -> None:
        """End all children."""
        children = [*self._label_pages.values(), *self._runs.values()]
        for process, _ in children:
            process.terminate()
        for process, _ in children:
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._files.close()


def _start(arguments: Sequence[str], output: int | IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        python_command("focused.cli", *arguments),
        # Retraining may fetch samples, by the logins and proxies of the topic.
        env=python_environment(has_secrets=arguments[0] == "retrain"),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C ends the console, which ends them
    )
