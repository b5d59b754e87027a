"""``focused label``: ask people about pages, in the browser or on the terminal."""

from __future__ import annotations

import sys
import time
import webbrowser
from pathlib import Path

import click

from focused.cli.common import echo
from focused.labelling.label_server import serve_session
from focused.labelling.page_renderer import PageRenderer
from focused.labelling.session import open_session
from focused.labelling.terminal import LabellingTerminal


def run_labelling(
    where: Path,
    labels: Path | None,
    *,
    terminal: bool,
    browser: bool,
    host: str,
    port: int,
) -> None:
    """Open a labelling session and run it until it is ended."""
    with open_session(where, labels, _progress) as session:
        echo(f"Labels go to {session.task.labels}", err=True)
        if terminal:
            with PageRenderer() as reader:
                LabellingTerminal(session, clock=time.time, reader=reader).run()
        else:
            serve_session(
                session,
                clock=time.time,
                ready=lambda address: _ready(address, browser),
                host=host,
                port=port,
            )
        progress = session.progress()
        click.echo(f"{progress.yes} yes, {progress.no} no, {progress.skipped} skipped", err=True)


def _ready(address: str, browser: bool) -> None:
    click.echo(f"Label here: {address}")
    click.echo("Anyone with this address can label. Ctrl-C ends.", err=True)
    if browser:
        webbrowser.open(address)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\rreading pages: {done}/{total}", err=True, nl=done == total)
