"""What commands print: text from outside is made visible, nothing else is changed."""

from __future__ import annotations

import click

from focused.errors import visible


def echo(text: str, *, err: bool = False) -> None:
    """Print text, on standard error with ``err``; it cannot steer the terminal."""
    click.echo(visible(text), err=err)
