"""A replay server in a process of its own, so that a crawl's second core serves.

The child says on its first line of output which port it got, or why it got
none, as JSON. It ends when its standard input closes: then its parent has
ended, in whatever way.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import focused
from focused.errors import FocusedError, RecordedWebError
from focused.recorded_web.replay_faults import FaultPlan, parse_fault
from focused.recorded_web.replay_server import serve_forever

_STOP_WITHIN_S = 5.0


class ReplayProcess:
    """Context manager: serves the recorded web of a folder in a child process.

    ``address`` is ``HOST:PORT`` while it runs. Entering raises
    RecordedWebError, with the child's reason, when it cannot serve.
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: FaultPlan | None = None,
        access_log: Path | None = None,
    ) -> None:
        plan = faults or FaultPlan()
        self._host = host
        self._command = [sys.executable, "-m", __name__, str(folder.absolute())]
        self._command += ["--host", host, "--port", str(port), "--seed", str(plan.seed)]
        self._command += [f"--fault={fault}" for fault in plan.faults]
        if access_log is not None:
            self._command.append(f"--access-log={access_log.absolute()}")
        self._child: subprocess.Popen[str] | None = None
        self.address = ""

    def __enter__(self) -> Self:
        # In a bare checkout the package is found from its own folder only.
        search = [str(Path(focused.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search))},
            # Ctrl-C is for the crawl: it still fetches while it stops cleanly.
            start_new_session=True,
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        said = json.loads(line) if line else {}
        if "port" not in said:
            self._stop()
            reason = said.get("error", "the server's process ended before it could serve")
            raise RecordedWebError(reason)
        self.address = f"{self._host}:{said['port']}"
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _stop(self) -> None:
        child, self._child, self.address = self._child, None, ""
        if child is None:
            return
        assert child.stdin is not None and child.stdout is not None
        child.stdin.close()
        try:
            child.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve as the child of :class:`ReplayProcess`; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--access-log", type=Path)
    given = parser.parse_args(arguments)
    try:
        serve_forever(
            given.folder,
            host=given.host,
            port=given.port,
            faults=FaultPlan(tuple(parse_fault(text) for text in given.fault), given.seed),
            access_log=given.access_log,
            on_ready=lambda port: _print_json({"port": port}),
            stop=_wait_for_parent_exit,
        )
    except FocusedError as error:
        _print_json({"error": str(error)})
        return 1
    return 0


def _print_json(what: dict[str, int | str]) -> None:
    print(json.dumps(what), flush=True)


def _wait_for_parent_exit() -> None:
    # The bare descriptor: a thread inside sys.stdin would hold its lock at exit.
    while os.read(0, 1024):
        pass


if __name__ == "__main__":
    sys.exit(main())
