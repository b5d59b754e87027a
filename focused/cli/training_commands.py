"""``focused train``, ``topic new``, ``label``, ``retrain``."""

from __future__ import annotations

import re
import sys
import time
import webbrowser
from pathlib import Path

import click

from focused.cli.common import FILE, FOLDER, SECONDS, echo, finite, serving_options


@click.command()
@click.argument("topic", type=FILE)
@click.option(
    "--web",
    type=FOLDER,
    help="Read the samples from this recorded web. Default: fetch them, politely.",
)
def train(topic: Path, web: Path | None) -> None:
    """Train the topic classifier from the topic's directory.

    Writes the model (training.model) and its card (.md), and keeps fetched samples in NAME.samples/
    beside it. The same command resumes a stopped download.
    """
    from focused.scrapy_addon.model_training import train_topic_model
    from focused.topic.topic_file import load_topic

    train_topic_model(load_topic(topic), web, replay=None, say=echo)


@click.command()
@click.argument("topic", type=FILE)
@click.option(
    "--web",
    type=FOLDER,
    help="Read the samples from this recorded web. Default: fetch them, politely.",
)
@click.option("--replace", is_flag=True, help="Replace the old model whatever the comparison says.")
@click.option("--restore", type=click.IntRange(min=1), help="Restore this version of the model.")
def retrain(topic: Path, web: Path | None, replace: bool, restore: int | None) -> None:
    """Retrain with the labels of focused label; replace the model unless the old one is better.

    Exit status 1: the old model stays. See docs/how-to/teaching.md#focused-retrain.
    """
    from focused.cli import retrain_actions

    if restore is not None:
        sys.exit(retrain_actions.restore(topic, restore))
    sys.exit(retrain_actions.retrain(topic, web, replace=replace))


@click.group("topic")
def topic_group() -> None:
    """Start a topic."""


@topic_group.command("init")
@click.argument("name")
@click.option(
    "--user-agent", help='User agent with a contact, such as "MyBot/1.0 (+https://my.site)".'
)
@click.option(
    "--folder",
    type=FOLDER,
    default=Path("topics"),
    show_default=True,
    help="Folder of the new files.",
)
def topic_init(name: str, user_agent: str | None, folder: Path) -> None:
    """Write a commented topic file and a sample directory for you to edit."""
    from focused.cli.common import echo
    from focused.cli.new_topic import init_topic

    topic_file, directory = init_topic(name, folder, user_agent)
    echo(
        f"wrote {topic_file} and {directory}\n"
        "Change them: seeds, samples"
        f"{'' if user_agent else ', user_agent'}. Then: focused crawl {topic_file}"
    )


@topic_group.command("schema")
def topic_schema_command() -> None:
    """Print the JSON Schema of topic files, for editors.

    See docs/reference/topic-files.md#in-an-editor.
    """
    import json

    from focused.topic.json_schema import topic_schema

    click.echo(json.dumps(topic_schema(), indent=1))


@topic_group.command("new")
@click.argument("name")
@click.option(
    "--keywords",
    required=True,
    help="Words and phrases, separated by commas; whale* is a prefix.",
)
@click.option(
    "--seeds", type=FILE, required=True, help="A file of URLs, one per line; # starts a comment."
)
@click.option(
    "--user-agent",
    required=True,
    help='User agent with a contact, such as "MyBot/1.0 (+https://my.site)".',
)
@click.option(
    "--folder",
    type=FOLDER,
    default=Path("topics"),
    show_default=True,
    help="Folder of the new files.",
)
@click.option(
    "--pages",
    type=click.IntRange(min=5),
    default=100,
    show_default=True,
    help="Pages of the first crawl.",
)
@click.option("--web", type=FOLDER, help="Fetch from this recorded web instead of the live one.")
@click.option("--delay-s", type=SECONDS, callback=finite, help="Override politeness.delay_s.")
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
    from focused.cli.new_topic import NewTopicOptions, new_topic

    words = tuple(word.strip() for word in re.split("[,，、،]", keywords) if word.strip())
    options = NewTopicOptions(name, words, seeds, user_agent, folder)
    new_topic(options, pages=pages, web=web, delay_s=delay_s)


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
