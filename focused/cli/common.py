"""Option types and output shared by the commands."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from focused.errors import ConfigurationError, escape_control_characters, os_errors_as

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
ANY_PATH = click.Path(path_type=Path)


def finite(value: Any) -> float:
    """Return a number; the type of options without nan and infinity, which click's accept."""
    number: float = click.FLOAT.convert(value, None, None)
    if not math.isfinite(number):
        raise click.BadParameter(f"{value} is not a finite number.")
    return number


class Finite(click.FloatRange):
    """A range of finite numbers."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fails for a text that is none."""
        return finite(super().convert(value, param, ctx))


SECONDS = Finite(min=0)


class Converted(click.ParamType):  # type: ignore[type-arg]  # older clicks have no arguments
    """What a function makes of a text; a ValueError means that the text has a problem.

    Without ``problem`` the error describes it.
    """

    def __init__(self, name: str, function: Callable[[str], Any], problem: str = "") -> None:
        self.name = name
        self._function = function
        self._problem = problem

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; fails for a text with the problem."""
        try:
            return self._function(value.strip())
        except ValueError as error:
            self.fail(f"{value} {self._problem or error}", param, ctx)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def add_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def echo(text: str, *, err: bool = False) -> None:
    """Print text with control characters escaped; to standard error with ``err``."""
    click.echo(escape_control_characters(text), err=err)


def writing(path: Path, hint: str = "") -> AbstractContextManager[None]:
    """Return a context that turns an OSError into a ConfigurationError that names the path.

    ``hint`` ends the message; it says what helps.
    """
    return os_errors_as(ConfigurationError, f"{path} cannot be written", hint)


def crawl_folder(where: Path) -> Path:
    """Return the folder of a crawl that a command names: by its folder or its topic file."""
    from focused.topic.topic_file import load_topic  # slow to import

    return load_topic(where).crawl_folder("focused") if where.is_file() else where


def read_url_file(path: Path, name: str) -> list[str]:
    """Return the URLs of a file, one a line, without comments.

    Raises ConfigurationError, which calls the file ``name``.
    """
    from focused.topic.topic_file import parse_url_line  # slow to import

    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigurationError(
            f"{name}: line {line} is not UTF-8; save the file in UTF-8"
        ) from error
    return list(filter(None, map(parse_url_line, lines)))


def free_path(path: Path) -> Path:
    """Return the first path beside ``path`` that is free, with a number at its end."""
    number = 1
    while (free := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return free


class Problems:
    """Prints the first problems to standard error, and counts all."""

    def __init__(self, shown: int = 20) -> None:
        self._shown = shown
        self.count = 0

    def report(self, what: str) -> None:
        """Print a problem."""
        self.count += 1
        if self.count <= self._shown:
            echo(f"focused: {what}", err=True)

    def status(self) -> int:
        """Return the exit status: 1 if there was a problem."""
        if self.count > self._shown:
            echo(f"focused: and {self.count - self._shown:,} more", err=True)
        return int(self.count > 0)


def parse_time(text: str) -> float:
    """Return a date or time of ISO 8601 in seconds since the epoch. Raises ValueError.

    Without an offset it is in UTC.
    """
    at = datetime.fromisoformat(text.strip())
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def _parse_settings(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE.")
        settings[name] = value
    return settings


settings_option = click.option(
    "-s",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_settings,
    help="Set a setting of Scrapy or of the add-on. Repeatable. See docs/reference/settings.md.",
)
"""The option ``-s`` of Scrapy's own commands; its value is a dict."""


def serving_options(what: str) -> Decorator:
    """Add ``--no-browser``, ``--port`` and ``--host``, the options of a ``what`` in the browser."""
    return add_options(
        click.option("--no-browser", is_flag=True, help="Do not open a browser."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=0,
            help="Port to listen on. Default: a free one.",
        ),
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            help=f"Address to listen on. Any other exposes the {what} to other machines.",
        ),
    )
