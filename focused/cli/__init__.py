"""``focused ...``: the commands, each a few lines over the library."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click

from focused.cli.frontier import frontier
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


_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_SECONDS = click.FloatRange(min=0)


def _finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuse what a range lets through: nan is below nothing, and inf never passes."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds.")
    return value


@main.command()
@click.argument("topic", type=_FILE)
@click.option("--web", type=_FOLDER, help="Crawl this recorded web instead of the live one.")
@click.option(
    "--policy", default="focused", show_default=True, help="focused, bfs, ...; see docs/compare.md."
)
@click.option("--pages", type=click.IntRange(min=1), help="Override budget.pages.")
@click.option("--delay-s", type=_SECONDS, callback=_finite, help="Override politeness.delay_s.")
@click.option("--folder", type=_FOLDER, help="Override output.folder.")
@click.option("--fresh", is_flag=True, help="Move an earlier crawl's folder away and start anew.")
def crawl(topic: Path, fresh: bool, **options: Any) -> None:
    """Crawl the topic of a TOML file; the same command resumes a stopped crawl."""
    from focused.cli.crawling import CrawlOptions, run_crawl

    sys.exit(run_crawl(topic, CrawlOptions(**options), fresh=fresh))


@main.command()
@click.argument("topic", type=_FILE)
@click.option("--web", type=_FOLDER, help="Take the samples' pages from this recorded web.")
def train(topic: Path, web: Path | None) -> None:
    """Train the topic classifier from the directory that the topic names."""
    from focused.cli.crawling import train_model

    train_model(topic, web)


@main.command()
@click.argument("topic", type=_FILE)
@click.option("--web", type=_FOLDER, help="Take the samples' pages from this recorded web.")
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


@main.group("topic")
def topic_group() -> None:
    """Topics: begin one."""


@topic_group.command("new")
@click.argument("name")
@click.option("--keywords", required=True, help="Words and phrases, with commas between them.")
@click.option("--seeds", type=_FILE, required=True, help="A file of URLs, one a line.")
@click.option("--user-agent", required=True, help='Yours, like "MyBot/1.0 (+https://my.site)".')
@click.option("--folder", type=_FOLDER, default=Path("topics"), show_default=True)
@click.option("--pages", type=click.IntRange(min=5), default=100, show_default=True)
@click.option("--web", type=_FOLDER, help="Fetch from this recorded web instead of the live one.")
@click.option("--delay-s", type=_SECONDS, callback=_finite, help="Override politeness.delay_s.")
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
    from focused.cli.new_topic import Idea, new_topic

    words = tuple(word.strip() for word in keywords.split(",") if word.strip())
    idea = Idea(name, words, seeds, user_agent, folder)
    new_topic(idea, pages=pages, web=web, delay_s=delay_s)


@main.command()
@click.argument("folders", type=_FOLDER, nargs=-1, required=True)
@click.option("--web", type=_FOLDER, help="A recorded web whose labels judge the harvest.")
@click.option("--plot", type=_FILE, help="Where the curves of several crawls are drawn.")
def report(folders: tuple[Path, ...], web: Path | None, plot: Path | None) -> None:
    """Print and draw again what a crawl brought; several crawls are compared."""
    from focused.cli.reporting import show_reports

    show_reports(folders, web, plot)


@main.command()
@click.argument("url")
@click.option(
    "--folder", type=_FOLDER, help="The crawl's folder; without it, the newest under crawls/."
)
def why(url: str, folder: Path | None) -> None:
    """Tell why a page was fetched: its way from a seed, score by score."""
    from focused.cli.reporting import show_why

    show_why(url, folder)


_ANY_PATH = click.Path(path_type=Path)


@main.command()
@click.argument("where", type=click.Path(path_type=Path, exists=True))
@click.option("--terminal", is_flag=True, help="Ask on the terminal, not in the browser.")
@click.option("--no-browser", is_flag=True, help="Print the address, open no browser.")
@click.option("--labels", type=_FILE, help="Override training.labels.")
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


@main.command()
@click.option(
    "--web",
    "webs",
    type=_ANY_PATH,
    multiple=True,
    help="A recorded web's folder, or WARC files, which together are one web. Repeatable.",
)
@click.option("--labels", type=_FILE, help="A labels.tsv that judges instead of the webs' own.")
@click.option("--topic", "topics", type=_FILE, multiple=True, help="A topic file. Repeatable.")
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
    "--latency-s", type=_SECONDS, callback=_finite, default=0.2, show_default=True,
    help="Mean time of an answer.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--json", "json_path", type=_FILE, help="Write the comparison's document there, too.")
@click.option("--out", type=_FOLDER, default=Path("comparison"), show_default=True)
@click.option("--fresh", is_flag=True, help="Set the runs of --out aside and make all anew.")
@click.option("--live", is_flag=True, help="Real crawls over the replayed web, not simulated ones.")
@click.option(
    "--delay-s",
    type=_SECONDS,
    callback=_finite,
    default=0.02,
    show_default=True,
    help="Between two requests to a host, with --live.",
)
@click.option(
    "--from", "document", type=_FILE, help="Run nothing; show the runs of this comparison.json."
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


@main.group()
def web() -> None:
    """Recorded webs: build, import, look at, serve."""


@web.command("build")
@click.argument("kind", type=click.Choice(["docweb", "foldoc", "wordnet", "debian"]))
@click.option("--tier", type=click.Choice(["small", "medium", "full"]), default="small")
@click.option("--folder", type=_FOLDER, help="Default: webs/docweb-TIER or webs/KIND.")
@click.option(
    "--cache", type=_FOLDER, default=Path("webs/packages"), help="Keeps what was downloaded."
)
def web_build(kind: str, tier: str, folder: Path | None, cache: Path) -> None:
    """Make a recorded web from Debian packages.

    docweb: documentation on many hosts. foldoc, wordnet: dictionaries, one host each.
    debian: the pages of Debian's package index.
    """
    from focused.recorded.debian_site import build_debian_site
    from focused.recorded.docweb import build_docweb
    from focused.recorded.foldoc import build_foldoc
    from focused.recorded.wordnet import build_wordnet

    others = {"foldoc": build_foldoc, "wordnet": build_wordnet, "debian": build_debian_site}
    if kind == "docweb":
        built = build_docweb(folder or Path("webs") / f"docweb-{tier}", tier, cache, click.echo)
    else:
        built = others[kind](folder or Path("webs") / kind, cache, click.echo)
    click.echo(
        f"{built.folder}: {built.pages:,} pages on {built.hosts:,} hosts, "
        f"{built.redirects:,} redirects, from {built.download_bytes / 1e6:.1f} MB of packages"
    )


@web.command("import")
@click.argument("sources", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option("--folder", type=_FOLDER, required=True, help="Where the recorded web goes.")
@click.option("--base-url", help="For a folder of HTML: the address of its top.")
@click.option("--labels", type=_FILE, help="A labels.tsv: url, tab, category.")
def web_import(
    sources: tuple[Path, ...], folder: Path, base_url: str | None, labels: Path | None
) -> None:
    """Make a recorded web from a folder of HTML, or from WARC files of others."""
    from focused.cli.webs import import_sources

    import_sources(sources, folder, base_url, labels)


@web.command("info")
@click.argument("folder", type=_FOLDER)
def web_info(folder: Path) -> None:
    """Print pages, hosts, links and categories of a recorded web."""
    from focused.cli.webs import show_web

    show_web(folder)


@web.command("serve")
@click.argument("folder", type=_FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8100, show_default=True)
@click.option("--fault", "faults", multiple=True, help="HOSTPATTERN:kind=503,rate=0.1; see docs.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the faults' dice.")
@click.option("--access-log", type=_FILE, help="One JSON line per request.")
def web_serve(
    folder: Path,
    host: str,
    port: int,
    faults: tuple[str, ...],
    seed: int,
    access_log: Path | None,
) -> None:
    """Answer for all hosts of a recorded web on one loopback port."""
    from focused.cli.webs import serve_web

    serve_web(folder, host, port, faults, seed, access_log)
