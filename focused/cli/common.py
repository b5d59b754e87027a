"""Option types and output shared by the commands."""

from __future__ import annotations

import math
from pathlib import Path

import click

from focused.errors import escape_control_characters

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
ANY_PATH = click.Path(path_type=Path)
SECONDS = click.FloatRange(min=0)


def finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuse nan and infinity, which a click range accepts."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds.")
    return value


def echo(text: str, *, err: bool = False) -> None:
    """Print text with control characters escaped; to standard error with ``err``."""
    click.echo(escape_control_characters(text), err=err)
