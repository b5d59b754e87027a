"""Commands that the console runs for a crawl: its label page, retraining, its link graph.

Each is ``focused`` in a child process, so that it doesn't block the console, and its failure stays
its own. A running crawl swaps in a retrained model by itself.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from focused.child_processes import python_command, python_environment
from focused.errors import ConfigurationError

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

    def retrain(self, crawl: Path, topic_file: str, web: str | None) -> None:
        """Start ``focused retrain`` unless it runs for this crawl."""
        self._run("retrain", crawl, [topic_file, *([] if web is None else ["--web", web])])

    def retraining(self, crawl: Path) -> dict[str, Any] | None:
        """Return whether retraining runs, its exit status and its output; None before any."""
        return self._state("retrain", crawl)

    def build_graph(self, crawl: Path) -> None:
        """Start ``focused graph build`` unless it runs for this crawl."""
        self._run("graph", crawl, ["build", str(crawl)])

    def graph_build(self, crawl: Path) -> dict[str, Any] | None:
        """Return the state of the build, as :meth:`retraining` does."""
        return self._state("graph", crawl)

    def _run(self, command: str, crawl: Path, arguments: Sequence[str]) -> None:
        known = self._runs.get((command, crawl))
        if known is not None and known[0].poll() is None:
            return
        output = self._files.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115  # it does
        self._runs[command, crawl] = _start([command, *arguments], output), output

    def _state(self, command: str, crawl: Path) -> dict[str, Any] | None:
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
