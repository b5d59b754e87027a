"""``focused ui`` and ``label``: pages served on this machine."""

from __future__ import annotations

import sys
import time
import webbrowser
from pathlib import Path

import click

from focused.cli.common import FILE, FOLDER, echo, serving_options


@click.command()
@click.argument("folders", type=FOLDER, nargs=-1)
@click.option(
    "--network-mbit",
    type=click.FloatRange(min=0, min_open=True),
    help="Speed of the network, to show a crawl's share. Default: that of the interface, where "
    "Linux knows it.",
)
@serving_options("console")
def ui(
    folders: tuple[Path, ...],
    network_mbit: float | None,
    no_browser: bool,
    port: int,
    host: str,
) -> None:
    """Watch and steer crawls in the browser.

    FOLDERS are crawls' folders, or folders that hold some; by default crawls/. See
    docs/how-to/console.md.
    """
    from focused.console.server import serve_console

    def ready(address: str) -> None:
        click.echo(f"The console is at {address}")
        click.echo("Anyone with this address can steer these crawls. Ctrl-C ends.", err=True)
        if not no_browser:
            webbrowser.open(address)

    serve_console(
        folders or (Path("crawls"),),
        clock=time.time,
        ready=ready,
        host=host,
        port=port,
        network_mbit=network_mbit,
    )


@click.command()
@click.argument("where", type=click.Path(path_type=Path, exists=True))
@click.option("--terminal", is_flag=True, help="Ask on the terminal, not in the browser.")
@click.option(
    "--labels",
    type=FILE,
    help="Override training.labels. Required if the topic file no longer exists.",
)
@serving_options("page")
def label(
    where: Path, terminal: bool, no_browser: bool, labels: Path | None, port: int, host: str
) -> None:
    """Label pages of a crawl as on or off topic.

    WHERE is the crawl's folder or its topic file; the crawl may run. Ctrl-C ends it; the same
    command resumes. See docs/how-to/labelling.md.
    """
    _run_labelling(where, labels, terminal=terminal, browser=not no_browser, host=host, port=port)


def _run_labelling(
    where: Path,
    labels: Path | None,
    *,
    terminal: bool,
    browser: bool,
    host: str,
    port: int,
) -> None:
    """Open a labelling session and run it until it is ended."""
    from focused.labelling.label_server import serve_session
    from focused.labelling.page_renderer import PageRenderer
    from focused.labelling.session import format_counts, open_session
    from focused.labelling.terminal import LabellingTerminal

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
        click.echo(format_counts(progress), err=True)


def _ready(address: str, browser: bool) -> None:
    click.echo(f"Label here: {address}")
    click.echo("Anyone with this address can label. Ctrl-C ends.", err=True)
    if browser:
        webbrowser.open(address)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\rreading pages: {done}/{total}", err=True, nl=done == total)
