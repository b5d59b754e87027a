"""The options that choose pages of a crawl, shared by ``export`` and ``index``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

chunk_option = click.option(
    "--chunk-chars",
    type=click.IntRange(min=100),
    help="Cut pages into chunks of at most so many characters.",
)
"""``--chunk-chars``."""

processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Parser processes. Default: one for each core.",
)
"""``--processes``."""

_OPTIONS = (
    click.option(
        "--min-relevance",
        type=click.FloatRange(min=0, max=1),
        help="Pages of at least this relevance, instead of those on topic. 0: all pages.",
    ),
    click.option(
        "--language", "languages", multiple=True, help="Only this language (ISO 639-1). Repeatable."
    ),
    click.option(
        "--host", "hosts", multiple=True, help="Only this host and its subdomains. Repeatable."
    ),
    click.option(
        "--not-host",
        "not_hosts",
        multiple=True,
        help="Not this host, nor its subdomains. Repeatable.",
    ),
    click.option(
        "--fetched-since",
        help="Only pages fetched from then on: 2026-01-31 or 2026-01-31T14:00, UTC unless it names "
        "an offset.",
    ),
    click.option("--fetched-until", help="Only pages fetched before."),
    click.option(
        "--published-since",
        help="Only pages published from that day on.",
    ),
    click.option("--published-until", help="Only pages published before that day."),
    click.option(
        "--min-words",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Minimum number of words in the main text.",
    ),
    click.option(
        "--good-quality",
        is_flag=True,
        help="Leave out pages that fail a rule of docs/reference/corpus.md#quality-rules.",
    ),
    click.option(
        "--not-robots",
        "robots",
        multiple=True,
        help="Leave out pages with this robots directive, such as noai. Repeatable.",
    ),
    click.option("--duplicates", is_flag=True, help="Include duplicates of other pages."),
    click.option(
        "--no-samples", is_flag=True, help="Leave out training samples of the classifier."
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :func:`focused.cli.export_actions.page_filter`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
