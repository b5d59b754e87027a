"""Commands of other packages: entry points of the group ``focused.commands``."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from focused.cli import COMMANDS as OWN_COMMANDS
from focused.cli import main
from tests.support.command import focused
from tests.support.packages import install

COMMANDS = """
import click

@click.command()
def greet():
    "Greet the crawler."
    click.echo("hello")

@click.command()
def crawl():
    "Replace the crawler's own."
    click.echo("replaced")
"""
ENTRY_POINTS = """
[focused.commands]
greet = their_commands:greet
crawl = their_commands:crawl
broken = their_commands:missing
number = their_commands:COMMAND_COUNT
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that adds commands, installed as pip does."""
    install(tmp_path, "their_commands", f"{COMMANDS}\nCOMMAND_COUNT = 3\n", ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_package_adds_a_command():
    assert focused("greet").output == "hello\n"


def test_a_command_of_the_crawler_cannot_be_replaced():
    assert "replaced" not in focused("crawl", "--help").output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "the command broken of their_commands cannot be imported"),
        (
            "number",
            "the command number of their_commands: their_commands:COMMAND_COUNT is no click",
        ),
    ],
)
def test_what_is_no_command_is_named_with_its_package(name, message):
    result = focused(name, status=2)
    assert message in result.output


def test_an_unknown_command_is_a_usage_error():
    result = focused("comparisons", status=2)
    assert "No such command" in result.output


def test_each_line_of_the_help_begins_as_the_help_of_its_command():
    context = click.Context(main)
    for name, (_, line) in OWN_COMMANDS.items():
        command = main.get_command(context, name)
        assert command is not None and command.help is not None
        assert command.help.startswith(line.removesuffix(".").partition(":")[0]), name


def test_the_help_imports_no_command():
    code = "import sys; from focused.cli import main; main(['--help'], standalone_mode=False); "
    child = [sys.executable, "-P", "-c", f"{code} print(*sys.modules)"]
    loaded = subprocess.run(child, capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scrapy", "focused.cli.crawl"}.intersection(loaded)
