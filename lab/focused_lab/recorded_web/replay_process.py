"""Run a replay server in a child process."""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from focused.child_processes import drop_secrets, spawn_context
from focused.errors import FocusedError, RecordedWebError
from focused_lab.recorded_web.replay_clock import ReplayClock
from focused_lab.recorded_web.replay_faults import FaultPlan
from focused_lab.recorded_web.replay_server import SourceOnClock, serve_forever

_STOP_WITHIN_S = 5.0


class ReplayProcess:
    """Context manager that serves a recorded web in a child process.

    ``address`` is ``HOST:PORT`` while it runs. With ``changing`` the pages of the web change, and
    ``clock`` is the server's :class:`~focused_lab.recorded_web.replay_clock.ReplayClock` as text.
    Entering raises RecordedWebError with the child's reason if it cannot serve.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        faults: FaultPlan | None = None,
        access_log: Path | None = None,
        changing: SourceOnClock | None = None,
    ) -> None:
        context = spawn_context()
        self._pipe, self._child_end = context.Pipe()
        self._child = context.Process(
            target=_serve,
            args=(self._child_end, folder, port, faults, access_log, changing),
            daemon=True,  # never joined at exit: it ends with the pipe
        )
        self.address = ""
        self.clock = ""

    def __enter__(self) -> Self:
        self._child.start()
        self._child_end.close()
        try:
            message = self._pipe.recv()
        except EOFError:
            message = "the server's process ended before it could serve"
        except BaseException:  # Ctrl-C
            self._stop()
            raise
        if isinstance(message, str):
            self._stop()
            raise RecordedWebError(message)
        port, self.clock = message
        self.address = f"127.0.0.1:{port}"
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._pipe.close()
        self._child.join(_STOP_WITHIN_S)
        if self._child.is_alive():
            self._child.kill()
            self._child.join()
        self._child.close()


def _serve(
    pipe: Connection,
    folder: Path,
    port: int,
    faults: FaultPlan | None,
    access_log: Path | None,
    changing: SourceOnClock | None,
) -> None:
    """Serve until the parent closes its end of the pipe, which it also does when it dies.

    Sends the port and the clock, or why it cannot serve.
    """
    drop_secrets()
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C must not stop the server: the crawl still fetches while it stops
    clocks: list[ReplayClock] = []

    def wait_for_parent() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()

    try:
        serve_forever(
            folder,
            port=port,
            faults=faults,
            access_log=access_log,
            changing=changing,
            on_clock=clocks.append,
            on_ready=lambda port: pipe.send((port, "".join(map(str, clocks)))),
            stop=wait_for_parent,
        )
    except FocusedError as error:
        pipe.send(str(error))
