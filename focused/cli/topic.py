"""``focused topic``: start a topic, and print the schema of topic files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from focused.cli.common import FILE, FOLDER, SECONDS, echo
from focused.cli.topic_files import NewTopicOptions, init_topic
from focused.topic.topic_keys import topic_schema


@click.group()
def topic() -> None:
    """Start a topic."""


_AGENT = 'User agent with a contact, such as "MyBot/1.0 (+https://my.site)".'
_folder_option = click.option(
    "--folder",
    type=FOLDER,
    default=Path("topics"),
    show_default=True,
    help="Folder of the new files.",
)


@topic.command("init")
@click.argument("name")
@click.option("--user-agent", help=_AGENT)
@_folder_option
def topic_init(name: str, user_agent: str | None, folder: Path) -> None:
    """Write a commented topic file and a sample directory for you to edit."""
    topic_file, directory = init_topic(name, folder, user_agent)
    echo(
        f"wrote {topic_file} and {directory}\n"
        "Change them: seeds, samples"
        f"{'' if user_agent else ', user_agent'}. Then: focused crawl {topic_file}"
    )


@topic.command("schema")
def topic_schema_command() -> None:
    """Print the JSON Schema of topic files, for editors.

    See docs/reference/topic-files.md#in-an-editor.
    """
    click.echo(json.dumps(topic_schema(), indent=1))


@topic.command("new")
@click.argument("name")
@click.option(
    "--keywords", required=True, help="Words and phrases, separated by commas; whale* is a prefix."
)
@click.option(
    "--seeds", type=FILE, required=True, help="A file of URLs, one per line; # starts a comment."
)
@click.option("--user-agent", required=True, help=_AGENT)
@_folder_option
@click.option(
    "--pages",
    type=click.IntRange(min=5),
    default=100,
    show_default=True,
    help="Pages of the first crawl.",
)
@click.option("--web", type=FOLDER, help="Fetch from this recorded web instead of the live one.")
@click.option("--delay-s", type=SECONDS, help="Override politeness.delay_s.")
def topic_new(
    name: str,
    keywords: str,
    seeds: Path,
    user_agent: str,
    folder: Path,
    pages: int,
    web: Path | None,
    delay_s: float | None,
) -> None:
    """Make a topic file and a first classifier from keywords and a few pages.

    See docs/how-to/teaching.md#focused-topic-new.
    """
    words = tuple(word.strip() for word in re.split("[,，、،]", keywords) if word.strip())
    from focused.cli.new_topic import new_topic  # slow to import, and not for init and schema

    options = NewTopicOptions(name, words, seeds, user_agent, folder)
    new_topic(options, pages=pages, web=web, delay_s=delay_s)
