"""``focused web ...``: recorded webs built, imported, looked at, served."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from focused.errors import ConfigurationError
from focused.recorded.faults import FaultPlan, parse_fault
from focused.recorded.serve import serve_forever


def serve_web(
    folder: Path,
    host: str,
    port: int,
    faults: tuple[str, ...],
    seed: int,
    access_log: Path | None,
) -> None:
    """Answer for all hosts of a recorded web until Ctrl-C."""

    def ready(port: int) -> None:
        click.echo(
            f"serving {folder} on {host}:{port}; "
            f"crawl it with: scrapy crawl topic -a topic=FILE -s FOCUSED_REPLAY={host}:{port}"
        )

    plan = FaultPlan(tuple(map(parse_fault, faults)), seed)
    serve_forever(
        folder, host=host, port=port, faults=plan, access_log=access_log, on_ready=ready
    )
