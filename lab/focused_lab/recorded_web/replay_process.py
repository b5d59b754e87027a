"""Run a replay server in a child process.

The child prints its port, or an error, as JSON on its first line of output. It ends when its
standard input closes, so also when its parent dies.
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

from focused.child_processes import python_command, python_environment
from focused.errors import FocusedError, RecordedWebError
from focused_lab.living_web.living_options import LivingReplay
from focused_lab.recorded_web.replay_clock import ReplayClock
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from focused_lab.recorded_web.replay_server import serve_forever

_STOP_WITHIN_S = 5.0


class ReplayProcess:
    """Context manager that serves a recorded web in a child process.

    ``address`` is ``HOST:PORT`` while it runs. With ``living`` the pages of the web change, and
    ``clock`` is the server's :class:`~focused_lab.recorded_web.replay_clock.ReplayClock` as text.
    Entering raises RecordedWebError with the child's reason if it cannot serve.
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: FaultPlan | None = None,
        access_log: Path | None = None,
        living: LivingReplay | None = None,
    ) -> None:
        plan = faults or FaultPlan()
        self._host = host
        self._command = python_command(__name__, str(folder.absolute()))
        self._command += ["--host", host, "--port", str(port), "--seed", str(plan.seed)]
        self._command += [f"--fault={fault}" for fault in plan.faults]
        if access_log is not None:
            self._command.append(f"--access-log={access_log.absolute()}")
        if living is not None:
            self._command.append(f"--living={living.to_json()}")
        self._child: subprocess.Popen[str] | None = None
        self.address = ""
        self.clock = ""

    def __enter__(self) -> Self:
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=python_environment(),
            # Ctrl-C must not stop the server: the crawl still fetches while it stops.
            start_new_session=True,
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        message = json.loads(line) if line else {}
        if "port" not in message:
            self._stop()
            reason = message.get("error", "the server's process ended before it could serve")
            raise RecordedWebError(reason)
        self.address = f"{self._host}:{message['port']}"
        self.clock = message["clock"]
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
    """Run as the child of :class:`ReplayProcess`; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--access-log", type=Path)
    parser.add_argument("--living")
    given = parser.parse_args(arguments)
    clocks: list[ReplayClock] = []
    try:
        living = None if given.living is None else LivingReplay.from_json(given.living)
        serve_forever(
            given.folder,
            host=given.host,
            port=given.port,
            faults=FaultPlan(tuple(parse_fault(text) for text in given.fault), given.seed),
            access_log=given.access_log,
            living=living,
            on_clock=clocks.append,
            on_ready=lambda port: _print_json({"port": port, "clock": "".join(map(str, clocks))}),
            stop=_wait_for_parent_exit,
        )
    except FocusedError as error:
        _print_json({"error": str(error)})
        return 1
    return 0


def _print_json(what: dict[str, int | str]) -> None:
    print(json.dumps(what), flush=True)


def _wait_for_parent_exit() -> None:
    # Not sys.stdin: the thread would hold its lock at exit.
    while os.read(0, 1024):
        pass


if __name__ == "__main__":
    sys.exit(main())
