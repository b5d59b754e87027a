"""``focused train``, ``topic new``, ``label``, ``retrain``: how a topic gets its classifier."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from focused.cli.options import FILE, FOLDER, SECONDS, finite


@click.command()
@click.argument("topic", type=FILE)
@click.option("--web", type=FOLDER, help="Take the samples' pages from this recorded web.")
def train(topic: Path, web: Path | None) -> None:
    """Train the topic classifier from the directory that the topic names."""
    from focused.cli.crawling import train_model

    train_model(topic, web)


@click.command()
@click.argument("topic", type=FILE)
@click.option("--web", type=FOLDER, help="Take the samples' pages from this recorded web.")
@click.option("--replace", is_flag=True, help="Replace the old model, be it the better one.")
@click.option("--restore", type=click.IntRange(min=1), help="Bring an earlier version back.")
def retrain(topic: Path, web: Path | None, replace: bool, restore: int | None) -> None:
    """Train anew, with people's labels, and replace the model unless the old one is better.

    Both judge the labelled pages that were drawn at random and taught neither.
    Exit status 1: the old model stays.
    """
    from focused.cli import retraining

    if restore is not None:
        sys.exit(retraining.restore(topic, restore))
    sys.exit(retraining.retrain(topic, web, replace=replace))


@click.group("topic")
def topic_group() -> None:
    """Topics: begin one."""


@topic_group.command("new")
@click.argument("name")
@click.option("--keywords", required=True, help="Words and phrases, with commas between them.")
@click.option("--seeds", type=FILE, required=True, help="A file of URLs, one a line.")
@click.option("--user-agent", required=True, help='Yours, like "MyBot/1.0 (+https://my.site)".')
@click.option("--folder", type=FOLDER, default=Path("topics"), show_default=True)
@click.option("--pages", type=click.IntRange(min=5), default=100, show_default=True)
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
    """From keywords and a few pages to a topic file and a first classifier."""
    from focused.cli.begun_topic import Idea
    from focused.cli.new_topic import new_topic

    words = tuple(word.strip() for word in re.split("[,，、،]", keywords) if word.strip())
    idea = Idea(name, words, seeds, user_agent, folder)
    new_topic(idea, pages=pages, web=web, delay_s=delay_s)


@click.command()
@click.argument("where", type=click.Path(path_type=Path, exists=True))
@click.option("--terminal", is_flag=True, help="Ask on the terminal, not in the browser.")
@click.option("--no-browser", is_flag=True, help="Print the address, open no browser.")
@click.option("--labels", type=FILE, help="Override training.labels.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Left out: a free one.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Another lets other machines in."
)
def label(
    where: Path, terminal: bool, no_browser: bool, labels: Path | None, port: int, host: str
) -> None:
    """Label pages of a crawl: WHERE is its folder, or its topic file."""
    from focused.cli.label import run_labelling

    run_labelling(where, labels, terminal=terminal, browser=not no_browser, host=host, port=port)
