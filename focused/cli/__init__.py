"""``focused ...``: the commands, each a few lines over the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from focused.cli.frontier import frontier
from focused.cli.options import ANY_PATH, FILE, FOLDER, SECONDS, finite
from focused.cli.teaching import label, retrain, topic_group, train
from focused.cli.web import web
from focused.errors import FocusedError


class _PlainErrors(click.Group):
    """Errors that a user can mend are a line on the terminal, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FocusedError as error:
            click.echo(f"focused: {error}", err=True)
            sys.exit(2)


@click.group(cls=_PlainErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="focused-crawler")
def main() -> None:
    """Bring home the pages of the Web that are on one topic."""


@main.command()
@click.argument("topic", type=ANY_PATH)
@click.option("--web", type=FOLDER, help="Crawl this recorded web instead of the live one.")
@click.option(
    "--policy",
    default="focused",
    show_default=True,
    help="focused, bfs, ...; see docs/how-to/compare.md.",
)
@click.option("--pages", type=click.IntRange(min=1), help="Override budget.pages.")
@click.option("--delay-s", type=SECONDS, callback=finite, help="Override politeness.delay_s.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Override politeness.concurrency.")
@click.option("--folder", type=FOLDER, help="Override output.folder.")
@click.option("--fresh", is_flag=True, help="Move an earlier crawl's folder away and start anew.")
@click.option(
    "--check",
    is_flag=True,
    help="Read all of the crawl's folder, print what is damaged, change nothing. TOPIC may be the "
    "folder.",
)
def crawl(topic: Path, fresh: bool, check: bool, **options: Any) -> None:
    """Crawl the topic of a TOML file; the same command resumes a stopped crawl."""
    from focused.cli.crawling import CrawlOptions, folder_of, run_crawl

    if check:
        from focused.cli.checking import run_check

        sys.exit(run_check(topic if topic.is_dir() else folder_of(topic, CrawlOptions(**options))))
    if topic.is_dir():
        raise click.BadParameter(f"{topic} is a folder: name a topic file.", param_hint="TOPIC")
    sys.exit(run_crawl(topic, CrawlOptions(**options), fresh=fresh))


@main.command()
@click.argument("where", type=ANY_PATH, nargs=-1)
@click.option("--web", type=FOLDER, help="A recorded web whose labels judge the harvest.")
@click.option(
    "--policies",
    help="With a topic file: the policies whose crawls are compared, such as focused,bfs.",
)
@click.option("--out", type=FOLDER, help="Write report.json and pictures of one crawl there.")
@click.option("--plot", type=FILE, help="Where the curves of several crawls are drawn.")
def report(
    where: tuple[Path, ...],
    web: Path | None,
    policies: str | None,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Print what a crawl brought; several crawls are compared.

    WHERE is a crawl's folder or a topic file. Without it: the crawl under crawls/, if there
    is one alone.
    """
    from focused.cli.reporting import crawls_of, show_comparison, show_report

    folders = crawls_of(where, policies)
    if len(folders) == 1:
        show_report(folders[0], web, out, plot)
    else:
        show_comparison(folders, web, out, plot)


@main.command()
@click.argument("url")
@click.option(
    "--folder", type=FOLDER, help="The crawl's folder; without it, the only one under crawls/."
)
def why(url: str, folder: Path | None) -> None:
    """Tell why a page was fetched: its way from a seed, score by score."""
    from focused.cli.reporting import show_why

    show_why(url, folder)


@main.command()
@click.option(
    "--web",
    "webs",
    type=ANY_PATH,
    multiple=True,
    help="A recorded web's folder, or WARC files, which together are one web. Repeatable.",
)
@click.option("--labels", type=FILE, help="A labels.tsv that judges instead of the webs' own.")
@click.option("--topic", "topics", type=FILE, multiple=True, help="A topic file. Repeatable.")
@click.option("--policies", default="focused,best-first,bfs", show_default=True)
@click.option(
    "--budget",
    default="1000",
    show_default=True,
    help="Pages per run; x1.5: so many times the topic's on-topic pages.",
)
@click.option(
    "--seeds",
    multiple=True,
    default=("topic",),
    show_default=True,
    help="topic, on-topic:5, off-topic:5, or a file of URLs. Repeatable.",
)
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--host-cap",
    "host_caps",
    multiple=True,
    help="Pages per host at most, or none; without it, the topic's own. Repeatable.",
)
@click.option(
    "--latency-s", type=SECONDS, callback=finite, default=0.2, show_default=True,
    help="Mean time of an answer.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--json", "json_path", type=FILE, help="Write the comparison's document there, too.")
@click.option("--out", type=FOLDER, default=Path("comparison"), show_default=True)
@click.option("--fresh", is_flag=True, help="Set the runs of --out aside and make all anew.")
@click.option("--live", is_flag=True, help="Real crawls over the replayed web, not simulated ones.")
@click.option(
    "--delay-s",
    type=SECONDS,
    callback=finite,
    default=0.02,
    show_default=True,
    help="Between two requests to a host, with --live.",
)
@click.option(
    "--from", "document", type=FILE, help="Run nothing; show the runs of this comparison.json."
)
def compare(
    webs: tuple[Path, ...],
    labels: Path | None,
    topics: tuple[Path, ...],
    policies: str,
    budget: str,
    seeds: tuple[str, ...],
    repeat: int,
    host_caps: tuple[str, ...],
    latency_s: float,
    seed: int,
    jobs: int,
    json_path: Path | None,
    out: Path,
    fresh: bool,
    live: bool,
    delay_s: float,
    document: Path | None,
) -> None:
    """Simulate crawls of recorded webs and compare policies by the webs' labels.

    The same command goes on with a comparison that was interrupted.
    """
    from focused.cli.comparing import CompareOptions, compare_policies, findings_again
    from focused.evaluation.examination.terms import Terms

    if document is not None:
        sys.exit(findings_again(document, out))
    options = CompareOptions(
        webs=webs,
        labels=labels,
        topics=topics,
        policies=policies,
        seeds=seeds,
        host_caps=host_caps,
        terms=Terms(budget, repeat, latency_s, seed, delay_s if live else None),
        jobs=jobs,
        json_path=json_path,
        folder=out,
        fresh=fresh,
    )
    sys.exit(compare_policies(options))


main.add_command(frontier)
main.add_command(web)
for _command in (train, label, retrain, topic_group):
    main.add_command(_command)
