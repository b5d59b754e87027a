"""``focused ui`` and ``label``: pages served on this machine."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from focused.cli.common import FILE, FOLDER, echo, serving_options


@click.command()
@click.argument("folders", type=FOLDER, nargs=-1)
@serving_options("console")
def ui(folders: tuple[Path, ...], no_browser: bool, port: int, host: str) -> None:
    """Watch and steer crawls in the browser.

    FOLDERS are crawls' folders, or folders that hold some; by default crawls/. See
    docs/how-to/console.md.
    """
    from focused.console.server import serve_console  # label needs another extra

    serve_console(
        folders or (Path("crawls"),),
        clock=time.time,
        ready=_shows("The console is at", "steer these crawls", no_browser=no_browser),
        host=host,
        port=port,
    )


@click.command()
@click.argument("where", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--labels",
    type=FILE,
    help="Override training.labels. Required if the topic file no longer exists.",
)
@serving_options("page")
def label(where: Path, no_browser: bool, labels: Path | None, port: int, host: str) -> None:
    """Label pages of a crawl as on or off topic.

    WHERE is the crawl's folder or its topic file; the crawl may run. Ctrl-C ends it; the same
    command resumes. See docs/how-to/labelling.md.
    """
    from focused.cli.progress_bars import page_progress
    from focused.labelling.label_server import serve_session
    from focused.labelling.session import format_counts, open_session

    with ExitStack() as stack:
        with page_progress(str(where)) as progress:
            session = stack.enter_context(open_session(where, labels, progress))
        echo(f"Labels go to {session.task.labels}", err=True)
        serve_session(
            session,
            clock=time.time,
            ready=_shows("Label here:", "label", no_browser=no_browser),
            host=host,
            port=port,
        )
        click.echo(format_counts(session.progress()), err=True)


def _shows(text: str, use: str, *, no_browser: bool) -> Callable[[str], None]:
    """Return a function that prints the address of a page, and opens it in the browser."""

    def ready(address: str) -> None:
        click.echo(f"{text} {address}")
        click.echo(f"Anyone with this address can {use}. Ctrl-C ends.", err=True)
        if not no_browser:
            webbrowser.open(address)

    return ready
