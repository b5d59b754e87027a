"""Examine how fresh the crawler keeps a web that changes, over HTTP and with kills on the way.

    python benchmarks/living_crawl.py webs/docweb-small HISTORIES/*.tsv.gz

For each revisit policy a replay server serves the web with the change histories. A crawl fetches
the whole web while the server's clock runs in real time. Then the server starts again at the same
time of its clock, ``--speed`` times as fast, and the crawl goes on as a continuous crawl for
``--days``. It is killed with SIGKILL ``--kills`` times at random moments and started again at once.

``--sitemaps`` and ``--feeds`` are the shares of hosts with such a list, which the crawl reads. Half
of these hosts announce all changes, the others half of them.

The clock runs on while a killed crawl starts again; the table says how many days that took. On a
busy machine lower ``--speed``, until the revisits a day come near 95% of ``--pages-per-day``.

Measured after ``--warm-up-days``, from the crawl's archive and the true histories: freshness and
age of the collection, and the time from the creation of a page to its download. The simulator runs
the policies on the same pages, with the lists that the crawl read and without them, at the pace
that the crawl reached, readings of lists included. All stored records must be
readable, each page must be scheduled or queued exactly once, and no answered request may be
unknown to the crawl except those in flight at a kill.

A crawl that ended is not repeated, only measured again. Prints a table and writes it
with ``living.json`` to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGINT
from typing import Any

from scrapy.cmdline import execute

from focused.crawl.folder_check import check_folder
from focused.durations import DAY_S, YEAR_S
from focused.reports.metrics import select_relevant_urls
from focused.revisit.policies import find_revisit_policy
from focused.scrapy_addon.model_training import train_topic_model
from focused.storage.state_store import StateStore
from focused.topic.topic_file import load_topic
from focused.web.urls import host_of
from focused_lab.changing_web.assigned_changes import home_page
from focused_lab.changing_web.change_options import ChangeOptions, ChangingReplay, host_behaviour
from focused_lab.changing_web.changing_web import FEED_PATH, SITEMAP_PATH
from focused_lab.freshness.announced_lists import announced_lists
from focused_lab.freshness.crash_check import (
    check_collection,
    check_requests,
    read_requests,
)
from focused_lab.freshness.crawl_evaluation import (
    Discovery,
    downloaded_pages,
    evaluate_crawl,
    read_crawl_visits,
    read_truth,
    restrict_window,
    true_window,
)
from focused_lab.freshness.simulator import simulate
from focused_lab.freshness.sitemaps import SiteList
from focused_lab.freshness.windows import Window
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.recorded_web.replay_clock import ReplayClock
from focused_lab.recorded_web.replay_process import ReplayProcess

HERE = Path(__file__).parent
ROOT = HERE.parent
TOPIC_FILE = "living.toml"
LIST_PATHS = {"sitemap": SITEMAP_PATH, "feed": FEED_PATH}
CONCURRENCY = 16
SHARE = 0.95
"""The share of the revisits in a day's pages."""
MIN_INTERVAL_HOURS = 1.0
PRELOADED = (
    "scrapy.cmdline",
    "focused.scrapy_addon.spiders.topic_spider",
    "joblib",
    "pandas",
    "pyarrow.parquet",
    "sklearn.linear_model",
    "matplotlib.pyplot",
)
IDLE_S = 30.0
"""The first harvest is over when the server has no request for so long."""
STOP_WITHIN_S = 300.0
IN_FLIGHT_S = 20.0
"""Real seconds for which a request of a killed crawl may still reach the access log."""

TOPIC = """
name = "living"
[seeds]
urls = {seeds}
robots_sitemaps = {robots_sitemaps}
[training]
directory = {directory}
good = {good}
model = {model}
[scope]
allow_hosts = {hosts}
deny_hosts = {without}
near_duplicates = false
[politeness]
user_agent = "FocusedBenchmark/1.0 (+http://127.0.0.1/)"
delay_s = 0.0
concurrency = {concurrency}
[budget]
pages = {pages}
[revisit]
policy = {policy}
pages_per_day = {pages_per_day}
share = {share}
by_relevance = false
min_interval_hours = {min_interval_hours}
[output]
folder = "crawl"
"""


@dataclass(frozen=True, slots=True)
class Run:
    """When a crawl ran, in seconds since the epoch by the server's clock."""

    harvested_at: float
    end: float
    kills: tuple[float, ...]
    speed: float


def main() -> None:
    """Crawl with each policy, measure, and write the results."""
    options = _options()
    topic = load_topic(options.topic)
    if not topic.training.model.exists():
        train_topic_model(topic, options.web, replay=None, say=print)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        crawled = pool.map(partial(_run, options=options), options.policies)
        runs = dict(zip(options.policies, crawled, strict=True))
    results = _results(runs, options)
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"options": _settings(options), "policies": results}, indent=1)
    (options.out / "living.json").write_text(text + "\n")
    table = _table(results)
    (options.out / "table.md").write_text(table)
    print(table)
    if any(each["problems"] for each in results.values()):
        sys.exit("the kills lost something: see 'problems' in living.json")


def _run(policy: str, options: argparse.Namespace) -> Run:
    """Crawl until the end, unless the crawl in the folder ended before."""
    folder: Path = options.folder / policy
    record = folder / "run.json"
    if record.exists():
        return Run(**json.loads(record.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    topic = _write_topic(folder, policy, options)
    harvested_at = _harvest(folder, topic, options)
    rng = random.Random(0)
    moments = sorted(rng.uniform(0.02, 0.95) for _ in range(options.kills))
    with _served(folder, options, harvested_at, options.speed) as (clock, address):
        kills = []
        for part in (*moments, 1.0):
            crawl = _start(clock, address, folder, topic)
            _wait_until(harvested_at + part * options.days * DAY_S, clock, crawl, folder)
            ended = clock()
            if part < 1.0:
                crawl.kill()
                crawl.join()
                kills.append(ended)
                print(f"{folder.name}: killed on {_day(ended):.1f} days", flush=True)
        _stop(crawl, folder)
    run = Run(harvested_at, ended, tuple(kills), options.speed)
    record.write_text(json.dumps(asdict(run)))
    return run


def _harvest(folder: Path, topic: Path, options: argparse.Namespace) -> float:
    """Fetch the web in real time; return when that ended, by the server's clock."""
    with _served(folder, options, ChangeOptions().start, 1.0) as (clock, address):
        began = clock()
        crawl = _start(clock, address, folder, topic)
        while (last := _last_request_at(folder)) is None or clock() - last < IDLE_S:
            _check_running(crawl, folder)
            time.sleep(1.0)
        _stop(crawl, folder)
        print(f"{folder.name}: the first harvest took {last - began:.0f} s", flush=True)
        return clock()


def _last_request_at(folder: Path) -> float | None:
    """Return the time of the last request in the access log, of robots.txt too, or None."""
    log = folder / "access.log"
    if not log.exists() or not log.stat().st_size:
        return None
    with log.open("rb") as file:
        file.seek(-min(log.stat().st_size, 1 << 16), os.SEEK_END)
        lines = file.read().rsplit(b"\n", 2)  # the last one is empty, or not complete yet
    return float(json.loads(lines[-2])["time"]) if len(lines) > 1 else None


def _check_running(crawl: BaseProcess, folder: Path) -> None:
    if crawl.exitcode is not None:
        raise SystemExit(f"the crawl ended by itself: see {folder / 'crawl.log'}")


def _wait_until(at: float, clock: ReplayClock, crawl: BaseProcess, folder: Path) -> None:
    while (left_s := clock.real_s(at - clock())) > 0:
        _check_running(crawl, folder)
        time.sleep(min(left_s, 1.0))


def _start(clock: ReplayClock, address: str, folder: Path, topic: Path) -> BaseProcess:
    """Start the crawl in a process that is forked from one that has imported its libraries.

    Otherwise it would take days of a fast clock until the crawl fetches its first page.
    """
    settings = {
        "FOCUSED_REPLAY": address,
        "FOCUSED_CLOCK": clock,
        "FOCUSED_CONTINUOUS": True,
        "FOCUSED_POLICY": "bfs",
        "FOCUSED_FOLDER": folder / "crawl",
    }
    arguments = ["scrapy", "crawl", "topic", "-a", f"topic={topic}"]
    arguments += [text for name, value in settings.items() for text in ("-s", f"{name}={value}")]
    context = get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    crawl = context.Process(target=_crawl, args=(arguments, folder / "crawl.log"))
    crawl.start()
    return crawl


def _crawl(arguments: Sequence[str], log: Path) -> None:
    with log.open("ab") as output:
        for number in (1, 2):
            os.dup2(output.fileno(), number)
    os.chdir(ROOT)
    sys.argv = list(arguments)
    execute()


def _stop(crawl: BaseProcess, folder: Path) -> None:
    os.kill(crawl.pid or 0, SIGINT)
    crawl.join(STOP_WITHIN_S)
    if crawl.exitcode != 0:
        crawl.kill()
        raise SystemExit(f"the crawl did not stop in order: see {folder / 'crawl.log'}")


@contextmanager
def _served(
    folder: Path, options: argparse.Namespace, at: float, speed: float
) -> Iterator[tuple[ReplayClock, str]]:
    """Serve the changing web from a time of its clock on."""
    changing = ChangingReplay(
        tuple(options.histories),
        _change_options(options),
        speed=speed,
        day=_day(at),
        truth=folder / "truth",
    )
    log = folder / "access.log"
    with ReplayProcess(options.web, changing=changing, access_log=log) as served:
        yield ReplayClock.parse(served.clock), served.address


def _change_options(options: argparse.Namespace) -> ChangeOptions:
    # A week more, because the first harvest takes some time of the clock, too.
    years = (options.days + 7) * DAY_S / YEAR_S
    return ChangeOptions(
        years=years,
        sitemaps=options.sitemaps,
        feeds=options.feeds,
        noise=0.0,
    )


def _day(at: float) -> float:
    return (at - ChangeOptions().start) / DAY_S


def _write_topic(folder: Path, policy: str, options: argparse.Namespace) -> Path:
    """Write a topic whose seeds are the home pages and feeds of the web's hosts."""
    training = load_topic(options.topic).training
    hosts = sorted(_hosts(options))
    values = {
        "seeds": _seeds(options, hosts),
        "robots_sitemaps": options.sitemaps > 0,
        "directory": [str(path) for path in training.directory],
        "good": list(training.good),
        "model": str(training.model),
        "hosts": hosts,
        "without": options.without_hosts,
        "policy": policy,
        # The schedule derives the mean interval from this limit: it must not be far too large.
        "pages": _count_pages(options.web, hosts) + _count_lists(hosts, options),
        "concurrency": CONCURRENCY,
        "pages_per_day": options.pages_per_day,
        "share": SHARE,
        "min_interval_hours": MIN_INTERVAL_HOURS,
    }
    path = folder / TOPIC_FILE
    path.write_text(TOPIC.format(**{name: json.dumps(value) for name, value in values.items()}))
    return path


def _hosts(options: argparse.Namespace) -> Collection[str]:
    with RecordedWeb.open(options.web) as web:
        return frozenset(web.hosts) - frozenset(options.without_hosts)


def _seeds(options: argparse.Namespace, hosts: Collection[str]) -> list[str]:
    urls: dict[str, list[str]] = {host: [] for host in hosts}
    with RecordedWeb.open(options.web) as web:
        for url in web.page_urls:
            if host_of(url) in urls:
                urls[host_of(url)].append(url)
    home_pages = [home_page(each) for each in urls.values() if each]
    changing = _change_options(options)
    return home_pages + [
        url.partition("://")[0] + "://" + host_of(url) + FEED_PATH
        for url in home_pages
        if host_behaviour(host_of(url), changing).has_feed
    ]


def _count_pages(folder: Path, hosts: Collection[str]) -> int:
    with RecordedWeb.open(folder) as web:
        return sum(host_of(url) in hosts for url in web.page_urls)


def _count_lists(hosts: Collection[str], options: argparse.Namespace) -> int:
    behaviours = [host_behaviour(host, _change_options(options)) for host in hosts]
    return sum(each.has_sitemap + each.has_feed for each in behaviours)


def _results(runs: Mapping[str, Run], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure all crawls; the discovery of the same created pages, those that any crawl found."""
    hosts, relevant = _hosts(options), _relevant(options)
    # The copies of the harvest are of its time, so the window begins before it.
    start = ChangeOptions().start
    measured = {}
    truths, windows, visits = {}, {}, {}
    for policy, run in runs.items():
        folder = options.folder / policy
        truths[policy] = read_truth(folder / "truth")
        window = true_window(truths[policy], start, run.end, warm_up_s=options.warm_up_days * DAY_S)
        pages = {life.name for life in window.pages if host_of(life.name) in hosts}
        windows[policy] = restrict_window(window, pages)
        visits[policy] = read_crawl_visits(folder / "crawl")
    found = frozenset[str]().union(
        *(downloaded_pages(windows[policy], visits[policy]) for policy in runs)
    )
    for policy, run in runs.items():
        window = windows[policy]
        collection = restrict_window(window, downloaded_pages(window, visits[policy]))
        evaluation = evaluate_crawl(window, start, visits[policy], found)
        on_topic = evaluate_crawl(window, start, visits[policy], found & relevant)
        days = window.duration_s / DAY_S
        read_at = {url.partition("://")[2]: each.revisits for url, each in visits[policy].items()}
        lists = {
            host + LIST_PATHS[kind]: each
            for (host, kind), each in announced_lists(
                collection, truths[policy], _change_options(options)
            ).items()
        }
        lists = {url: each for url, each in lists.items() if url in read_at}
        readings = sum(
            window.warm_up_s <= at - start < window.duration_s
            for url in lists
            for at in read_at[url]
        )
        mean_interval_s = evaluation.result.time_s / (evaluation.revisits + readings)
        measured[policy] = {
            "days": days,
            "real_s": days * DAY_S / run.speed,
            "pages": len(evaluation.result.pages),
            "hosts": len({host_of(life.name) for life in collection.pages}),
            "freshness": evaluation.result.freshness,
            "age_days": evaluation.result.age_s / DAY_S,
            "caught": evaluation.result.caught,
            "revisits": evaluation.revisits,
            "revisits_per_day": evaluation.revisits / (days - options.warm_up_days),
            "lists": len(lists),
            "readings_per_day": readings / (days - options.warm_up_days),
            "new_pages": _discovery(evaluation.discovery),
            "new_pages_on_topic": _discovery(on_topic.discovery),
            "simulated": {
                name: _simulated(name, collection, mean_interval_s, list(lists.values()))
                for name in sorted({*runs, "uniform"})
            },
            "simulated_without_lists": {
                name: _simulated(name, collection, mean_interval_s)
                for name in sorted({*runs, "uniform"})
            },
            **_check(options.folder / policy, run),
        }
    return measured


def _relevant(options: argparse.Namespace) -> frozenset[str]:
    """Return the pages with a label of the topic."""
    good = load_topic(options.topic).training.good
    with RecordedWeb.open(options.web) as web:
        return select_relevant_urls(web.labels, good)


def _discovery(discovery: Discovery) -> dict[str, float | int | None]:
    return {
        "created": discovery.created,
        "found": discovery.found,
        "mean_days": _finite(discovery.mean_s / DAY_S),
        "median_days": _finite(discovery.median_s / DAY_S),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _simulated(
    policy: str, window: Window, mean_interval_s: float, lists: Sequence[SiteList] = ()
) -> dict[str, float]:
    # Without the minimal interval: all pages were fetched at the start of the window.
    result = simulate(find_revisit_policy(policy), window, mean_interval_s, lists=lists)
    return {"freshness": result.freshness, "age_days": result.age_s / DAY_S}


def _check(folder: Path, run: Run) -> dict[str, Any]:
    """Check that the kills lost nothing."""
    report = check_folder(folder / "crawl", _no_progress)
    problems = list(report.damaged)
    with StateStore.open_for_reading(folder / "crawl" / "state") as (store, _):
        problems += check_collection(store.tables)
        answered = list(read_requests(folder / "access.log"))
        requests = check_requests(
            answered,
            store.tables,
            kills=run.kills,
            min_interval_s=MIN_INTERVAL_HOURS * 3600,
            in_flight_s=IN_FLIGHT_S * run.speed,
        )
    if requests.unsettled > CONCURRENCY * (len(run.kills) + 2):  # two orderly stops
        problems.append(f"{requests.unsettled} answered requests have no outcome")
    problems += [f"{url} was requested twice within an hour" for url in requests.repeated]
    problems += [f"{url} has more responses than requests" for url in requests.unanswered]
    return {
        "kills": [_day(at) for at in run.kills],
        "days_lost_to_restarts": _days_lost(run.kills, sorted(at for _, at in answered)),
        "records": report.records,
        "requests": requests.requests,
        "unsettled_requests": requests.unsettled,
        "problems": problems,
    }


def _days_lost(kills: Sequence[float], requests: Sequence[float]) -> float:
    """Return the days between a kill and the next request, added up."""
    lost_s = 0.0
    for number, at in enumerate(kills):
        position = bisect_right(requests, at)
        again = requests[position] if position < len(requests) else at
        until = kills[number + 1] if number + 1 < len(kills) else math.inf
        lost_s += min(again, until) - at
    return lost_s / DAY_S


@contextmanager
def _no_progress(title: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, total: None


def _table(results: Mapping[str, Mapping[str, Any]]) -> str:
    rows: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("pages, hosts", lambda each: f"{each['pages']:,}, {each['hosts']}"),
        ("days, real minutes", lambda each: f"{each['days']:.0f}, {each['real_s'] / 60:.0f}"),
        ("revisits a day", lambda each: f"{each['revisits_per_day']:.0f}"),
        ("freshness", lambda each: f"{each['freshness']:.3f}"),
        ("age in days", lambda each: f"{each['age_days']:.2f}"),
        ("share of changes caught", lambda each: f"{each['caught']:.2f}"),
        ("simulated on the same pages", partial(_simulated_cell, "simulated")),
        ("simulated without lists", partial(_simulated_cell, "simulated_without_lists")),
        ("lists, readings a day", lambda each: f"{each['lists']}, {each['readings_per_day']:.1f}"),
        ("new pages found after (days)", lambda each: _discovery_cell(each["new_pages"])),
        ("those on topic", lambda each: _discovery_cell(each["new_pages_on_topic"])),
        ("kills, days lost to restarts", _kills_cell),
        ("requests, without outcome", _requests_cell),
        ("problems", lambda each: str(len(each["problems"]))),
    ]
    lines = [f"| | {' | '.join(results)} |", "|---|" + "---|" * len(results)]
    for name, cell in rows:
        lines.append(f"| {name} | {' | '.join(map(cell, results.values()))} |")
    return "\n".join(lines) + "\n"


def _simulated_cell(key: str, each: Mapping[str, Any]) -> str:
    return ", ".join(
        f"`{name}` {simulated['freshness']:.3f}" for name, simulated in each[key].items()
    )


def _discovery_cell(each: Mapping[str, Any]) -> str:
    if each["mean_days"] is None:
        return "no page was created"
    return (
        f"mean {each['mean_days']:.1f}, median {each['median_days']:.1f} "
        f"({each['found']} of {each['created']})"
    )


def _kills_cell(each: Mapping[str, Any]) -> str:
    return f"{len(each['kills'])}, {each['days_lost_to_restarts']:.0f}"


def _requests_cell(each: Mapping[str, Any]) -> str:
    return f"{each['requests']:,}, {each['unsettled_requests']}"


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options without the paths of this machine."""
    left_out = ("folder", "out", "histories", "web", "topic")
    settings = {name: value for name, value in vars(options).items() if name not in left_out}
    histories: Sequence[Path] = options.histories
    return settings | {"web": options.web.name, "histories": [path.name for path in histories]}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("web", type=Path, help="recorded web")
    parser.add_argument("histories", type=Path, nargs="+", help="change histories")
    parser.add_argument("--topic", type=Path, default=ROOT / "topics" / "parallel-computing.toml")
    parser.add_argument("--policies", type=_names, default=["hazard", "uniform"])
    parser.add_argument("--days", type=float, default=365.0)
    parser.add_argument("--warm-up-days", type=float, default=30.0)
    parser.add_argument("--speed", type=float, default=25_000.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--pages-per-day", type=int, default=180)
    parser.add_argument("--sitemaps", type=float, default=0.0, help="share of hosts with one")
    parser.add_argument("--feeds", type=float, default=0.0, help="share of hosts with one")
    parser.add_argument("--without-hosts", type=_names, default=[], help="hosts to leave out")
    parser.add_argument("--jobs", type=int, default=1, help="crawls at the same time")
    parser.add_argument("--folder", type=Path, default=ROOT / "crawls" / "living")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "living")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


if __name__ == "__main__":
    main()
