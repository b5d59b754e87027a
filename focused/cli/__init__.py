"""The ``focused`` command line: thin commands over the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from focused.cli.common import (
    ANY_PATH,
    FOLDER,
    SECONDS,
    changing_web_options,
    finite,
    settings_option,
)
from focused.cli.export_commands import download, export
from focused.cli.frontier_commands import frontier
from focused.cli.graph_commands import link_graph
from focused.cli.index_command import index
from focused.cli.installed_commands import ExtensibleGroup
from focused.cli.report_commands import changes, history, report, ui, why
from focused.cli.search_command import search
from focused.cli.training_commands import label, retrain, topic_group, train
from focused.cli.web_commands import web
from focused.errors import FocusedError, missing_extra


class _PlainErrors(ExtensibleGroup):
    """Prints errors that a user can fix in one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FocusedError as error:
            click.echo(f"focused: {error}", err=True)
            sys.exit(2)
        except ModuleNotFoundError as error:
            missing = missing_extra(error, ctx.invoked_subcommand or "focused")
            if missing is None:
                raise
            click.echo(f"focused: {missing}", err=True)
            sys.exit(2)


@click.group(cls=_PlainErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="focused-crawler")
def main() -> None:
    """Crawl the Web for pages on one topic."""


@main.command()
@click.argument("topic", type=ANY_PATH)
@click.option(
    "--web",
    type=FOLDER,
    help="Crawl this recorded web instead of the live one; samples and the report's labels come "
    "from it, too.",
)
@click.option(
    "--policy",
    default="focused",
    show_default=True,
    help="Ordering of the crawl, such as bfs. Any other than focused gets a folder of its own, "
    "FOLDER-NAME. See docs/how-to/compare.md#policies.",
)
@click.option("--pages", type=click.IntRange(min=1), help="Override budget.pages.")
@click.option(
    "--delay-s",
    type=SECONDS,
    callback=finite,
    help="Override politeness.delay_s.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    help="Override politeness.concurrency. With --web FOLDER --delay-s 0 --concurrency 1 every run "
    "fetches the same pages in the same order.",
)
@click.option(
    "--continuous/--once",
    default=None,
    help="Override revisit.continuous: keep the pages fresh after the first harvest, or end.",
)
@click.option(
    "--folder", type=FOLDER, help="Override output.folder. The ordering's name is not appended."
)
@click.option(
    "--processes",
    type=click.IntRange(min=2),
    help="Number of processes, each for a part of the hosts; fixed for a crawl. See "
    "docs/how-to/many-cores.md.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Run the processes on a Ray cluster: HOST:PORT, auto for the one of this machine, or "
    "local to start one. See docs/how-to/many-machines.md.",
)
@click.option("--storage", metavar="URL", help="Override cluster.storage.")
@click.option(
    "--round-s",
    type=click.FloatRange(min=0.1),
    help="Maximum length of a round of --processes; 30 by default.",
)
@changing_web_options
@settings_option
@click.option(
    "--fresh",
    is_flag=True,
    help="Rename an earlier crawl's folder (NAME.1, NAME.2, ...) and start anew.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Do not crawl: verify all files of the crawl's folder and print what is damaged. TOPIC "
    "may be the folder. The exit status is 1 if anything is damaged.",
)
def crawl(topic: Path, fresh: bool, check: bool, **options: Any) -> None:
    """Crawl the topic of a TOML file; the same command resumes a stopped crawl.

    The crawl trains the topic's model first if it is missing or its samples have changed.
    """
    from focused.cli.crawl_actions import CrawlOptions, folder_of, run_crawl

    if check:
        from focused.cli.crawl_actions import run_check

        sys.exit(run_check(topic if topic.is_dir() else folder_of(topic, CrawlOptions(**options))))
    if topic.is_dir():
        raise click.BadParameter(f"{topic} is a folder: name a topic file.", param_hint="TOPIC")
    sys.exit(run_crawl(topic, CrawlOptions(**options), fresh=fresh))


main.add_command(frontier)
main.add_command(web)
main.add_command(export)
main.add_command(index)
main.add_command(download)
main.add_command(link_graph)
for _command in (report, search, ui, why, history, changes, train, label, retrain, topic_group):
    main.add_command(_command)
