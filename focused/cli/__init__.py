"""The ``focused`` command line: thin commands over the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from focused.cli.cluster_commands import cluster, worker
from focused.cli.common import (
    ANY_PATH,
    FILE,
    FOLDER,
    SECONDS,
    changing_web_options,
    finite,
    settings_option,
)
from focused.cli.export_commands import export
from focused.cli.frontier_commands import frontier
from focused.cli.graph_commands import link_graph
from focused.cli.index_command import index
from focused.cli.report_commands import changes, history, report, ui, why
from focused.cli.search_command import search
from focused.cli.training_commands import label, retrain, topic_group, train
from focused.cli.web_commands import web
from focused.errors import FocusedError, missing_extra


class _PlainErrors(click.Group):
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
    help="Crawl this recorded web instead of the live one. A replay server in its own process "
    "serves it; samples and the report's labels come from it, too.",
)
@click.option(
    "--policy",
    default="focused",
    show_default=True,
    help="Ordering of the crawl, such as focused or bfs. Any other than focused gets a folder of "
    "its own, FOLDER-NAME. See docs/how-to/compare.md#policies.",
)
@click.option("--pages", type=click.IntRange(min=1), help="Override budget.pages.")
@click.option(
    "--delay-s",
    type=SECONDS,
    callback=finite,
    help="Override politeness.delay_s. A longer crawl-delay in robots.txt takes precedence.",
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
    help="Override revisit.continuous: go on after the first harvest and keep the pages fresh, or "
    "end with the harvest.",
)
@click.option(
    "--folder", type=FOLDER, help="Override output.folder. The ordering's name is not appended."
)
@click.option(
    "--processes",
    type=click.IntRange(min=2),
    help="Crawl by so many processes of this machine, each a part of the hosts. A crawl keeps its "
    "number. See docs/how-to/many-cores.md.",
)
@click.option(
    "--round-s",
    type=click.FloatRange(min=0.1),
    help="Seconds, at most, after which processes exchange links; 30 by default.",
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
    help="Do not crawl: verify all files of the crawl's folder, print what is damaged, change "
    "nothing. TOPIC may be the folder. The exit status is 1 if anything is damaged.",
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


@main.command()
@click.option(
    "--web",
    "webs",
    type=ANY_PATH,
    multiple=True,
    help="A recorded web's folder, or a WARC file; all WARC files together are one web. "
    "Repeatable; required.",
)
@click.option(
    "--labels", type=FILE, help="A labels.tsv to use as ground truth instead of the webs' own."
)
@click.option(
    "--topic", "topics", type=FILE, multiple=True, help="A topic file. Repeatable; required."
)
@click.option(
    "--policies",
    default="focused,best-first,bfs",
    show_default=True,
    help="Orderings to compare, separated by commas.",
)
@click.option(
    "--budget",
    default="1000",
    show_default=True,
    help="Pages per run; xF: F times the number of the topic's on-topic pages.",
)
@click.option(
    "--seeds",
    multiple=True,
    default=("topic",),
    show_default=True,
    help="Seed set: topic, on-topic:5, off-topic:5, or a file of URLs. Repeatable.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Repetitions with other seeds, latencies and tie-breaking.",
)
@click.option(
    "--host-cap",
    "host_caps",
    multiple=True,
    help="Maximum number of pages per host, or none. Default: the topic's. Repeatable.",
)
@click.option(
    "--latency-s", type=SECONDS, callback=finite, default=0.2, show_default=True,
    help="Mean response time in seconds.",
)  # fmt: skip
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for sampling seeds and tie-breaking.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes.",
)
@click.option("--json", "json_path", type=FILE, help="Also write the document of all runs there.")
@click.option(
    "--out",
    type=FOLDER,
    default=Path("comparison"),
    show_default=True,
    help="Folder of journal, document and report.",
)
@click.option("--fresh", is_flag=True, help="Move the journal of --out aside and repeat all runs.")
@click.option(
    "--live", is_flag=True, help="Run real crawls over the replayed web instead of simulations."
)
@click.option(
    "--delay-s",
    type=SECONDS,
    callback=finite,
    default=0.02,
    show_default=True,
    help="With --live: seconds between two requests to a host.",
)
@click.option(
    "--from", "document", type=FILE, help="Run nothing; report the runs of this comparison.json."
)
@click.option(
    "--workers",
    help="Simulate clusters of so many workers instead, such as 1,4,16, and compare them with a "
    "single crawl. The following options are for clusters.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="Partitions of each cluster; at least one for each worker, which is the default.",
)
@click.option(
    "--mode",
    "modes",
    default="exchange",
    show_default=True,
    help="Links of other partitions: exchange, firewall, crossover; separated by commas.",
)
@click.option(
    "--unit",
    "units",
    default="domain",
    show_default=True,
    help="What a partition is a hash of: domain, host, url; separated by commas.",
)
@click.option(
    "--batch-s",
    "batches_s",
    default="1",
    show_default=True,
    help="Seconds between two exchanges of links, separated by commas.",
)
@click.option(
    "--replicate",
    "replicates",
    default="0",
    show_default=True,
    help="URLs with the most in-links that all partitions know and never send, separated by "
    "commas.",
)
@click.option(
    "--share",
    "sharings",
    default="all",
    show_default=True,
    help="Besides links: all, no-learning, no-budget, nothing; separated by commas.",
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
    workers: str | None,
    **cluster: Any,
) -> None:
    """Simulate crawls of recorded webs and compare orderings by the webs' labels.

    Each ordering crawls for each topic. The same command resumes an interrupted comparison;
    Ctrl-C ends it with status 130. See docs/how-to/compare.md.
    """
    from focused.cli.compare_actions import (
        ClusterOptions,
        CompareOptions,
        compare_clusters,
        compare_policies,
        show_comparison_file,
    )
    from focused.experiments.analysis.comparison_runs import ExperimentSettings

    if document is not None:
        sys.exit(show_comparison_file(document, out))
    options = CompareOptions(
        webs=webs,
        labels=labels,
        topics=topics,
        policies=policies,
        seeds=seeds,
        host_caps=host_caps,
        settings=ExperimentSettings(budget, repeat, latency_s, seed, delay_s if live else None),
        jobs=jobs,
        json_path=json_path,
        folder=out,
        fresh=fresh,
    )
    if workers is not None:
        compare_clusters(options, ClusterOptions(workers, **cluster))
        return
    sys.exit(compare_policies(options))


@main.command("compare-revisits")
@click.argument("histories", metavar="[HISTORY]...", type=FILE, nargs=-1)
@click.option("--poisson", is_flag=True, help="Add eight synthetic sites of Poisson pages.")
@click.option("--bursty", is_flag=True, help="Add eight synthetic sites that change in bursts.")
@click.option(
    "--policies",
    default="all",
    show_default=True,
    help="Revisit policies, separated by commas. See docs/reference/revisit-policies.md.",
)
@click.option(
    "--intervals",
    default="7,30,90,365",
    show_default=True,
    help="Budgets: mean days between two visits of a page, separated by commas.",
)
@click.option(
    "--budget",
    type=click.Choice(["pooled", "per-site", "both"]),
    default="pooled",
    show_default=True,
    help="One budget for all sites, or one for each.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Repetitions with other pages.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed for drawing pages."
)
@click.option(
    "--years",
    type=click.FloatRange(min=0, min_open=True),
    default=3.0,
    show_default=True,
    help="Length of the simulation.",
)
@click.option(
    "--warm-up-days",
    type=click.FloatRange(min=0),
    default=182.625,
    show_default=True,
    help="Days at the start that are not measured.",
)
@click.option(
    "--max-pages",
    type=click.IntRange(min=1),
    default=400,
    show_default=True,
    help="Maximum number of pages per site.",
)
@click.option(
    "--signals",
    default="none",
    show_default=True,
    help="Sites with sitemaps that state changes: none, half, all, mixed (a third right, a third "
    "faulty, a third without), lying, or all with one fault: late, missing, rounded, frozen, "
    "stops, touched, clock, partial.",
)
@click.option(
    "--dates", is_flag=True, help="Let all servers send the time of the last change, Last-Modified."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Number of processes.",
)
@click.option(
    "--out",
    type=FOLDER,
    default=Path("revisits"),
    show_default=True,
    help="Folder of the report.",
)
def compare_revisits(
    histories: tuple[Path, ...],
    poisson: bool,
    bursty: bool,
    policies: str,
    intervals: str,
    budget: str,
    repeat: int,
    seed: int,
    years: float,
    warm_up_days: float,
    max_pages: int,
    signals: str,
    dates: bool,
    jobs: int,
    out: Path,
) -> None:
    """Simulate revisits of changing pages and compare policies by freshness and age.

    HISTORY is a change history, NAME.tsv or NAME.tsv.gz, one site each: lines of page, created or
    changed or deleted, time, lines added, lines deleted. See docs/how-to/compare-revisits.md.
    """
    from focused.cli.compare_actions import compare_revisits as run
    from focused.cli.compare_actions import split_days, split_names
    from focused.experiments.freshness.revisit_comparison import RevisitSettings

    settings = RevisitSettings(
        histories=tuple(str(path) for path in histories),
        poisson=poisson,
        bursty=bursty,
        policies=split_names(policies, "--policies"),
        intervals_days=split_days(intervals),
        budgets=("pooled", "per-site") if budget == "both" else (budget,),
        repeats=repeat,
        seed=seed,
        years=years,
        warm_up_days=warm_up_days,
        max_pages=max_pages,
        dated=dates,
        signals=signals,
    )
    run(settings, jobs, out)


main.add_command(frontier)
main.add_command(worker)
main.add_command(cluster)
main.add_command(web)
main.add_command(export)
main.add_command(index)
main.add_command(link_graph)
for _command in (report, search, ui, why, history, changes, train, label, retrain, topic_group):
    main.add_command(_command)
