"""Crawls of sites that need JavaScript beside sites that do not: recall, rendered pages, cost.

    python benchmarks/javascript.py webs/docweb-small

Pages of a recorded web with labels, and their titles as anchors, become five sites with different
pages: built with React, Vue and Svelte (``tests/support/javascript_builds``), plain HTML, and HTML
with scripts that only decorate it. A classifier trained on other pages of the web guides the crawl;
labels tell which pages are on topic. Each sample of pages is crawled with ``scope.javascript =
"report"`` and ``"render"``, over HTTP and without delay. Prints the recall of on-topic pages whose
text was read, pages rendered beside pages that needed it (all, and those of the second half of the
crawl), and the cost of a rendered page; then the cost of the detector on pages of the web itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
from machine import cpu_s_of

from focused.rendering.chromium import process_tree
from focused.rendering.decision import javascript_need
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused_lab.recorded_web.recorded_web import RecordedResponse, RecordedWeb, page_reader
from tests.support.javascript_sites import FRAMEWORKS, SITES, SitePage, site_responses
from tests.support.recorded_web import MemoryWeb, served

CATEGORY = "Top/Computers/Databases"
MIN_WORDS = 120
MAX_CHARS = 4_000
FAN_OUT = 6

TOPIC = """
name = "javascript"
[seeds]
urls = {seeds}
[training]
directory = ["directory.tsv"]
good = ["{category}"]
[politeness]
user_agent = "FocusedBenchmark/0.1 (+https://example.org/bot)"
delay_s = 0.0
[scope]
javascript = "{javascript}"
[output]
folder = "{folder}"
"""


@dataclass(frozen=True)
class LabelledPage:
    """A page of the recorded web and whether it is on topic."""

    url: str
    page: Page
    category: str
    is_on_topic: bool


@dataclass(frozen=True)
class Run:
    """One crawl. Seconds are of the whole crawl, CPU of all its processes."""

    javascript: str
    recall: float
    recall_of_frameworks: float
    fetched: int
    needed: int
    rendered: int
    rendered_late: int
    needed_late: int
    seconds: float
    cpu_s: float
    render_s: float
    requests: int


def read_pages(web_folder: Path, category: str) -> tuple[list[LabelledPage], list[LabelledPage]]:
    """Return pages with text, on topic and off topic."""
    good: list[LabelledPage] = []
    others: list[LabelledPage] = []
    with RecordedWeb.open(web_folder) as web:
        read = page_reader(web)
        for url in web.page_urls:
            categories = sorted(web.categories(url))
            page = read(url) if categories else None
            if page is None or len(page.text.split()) < MIN_WORDS:
                continue
            on_topic = [each for each in categories if each.startswith(category)]
            found = LabelledPage(url, page, (on_topic or categories)[0], bool(on_topic))
            (good if on_topic else others).append(found)
    return good, others


def make_site(pages: Sequence[LabelledPage]) -> dict[str, SitePage]:
    """Return the pages of a site in a tree, each linked by its title."""
    paths = [f"/pages/{n}" for n in range(len(pages))]

    def links(numbers: range) -> list[tuple[str, str]]:
        inside = [n for n in numbers if n < len(pages)]
        return [(paths[n], pages[n].page.title or f"page {n}") for n in inside]

    site = {"/": SitePage("Start", ["All pages of this site."], links(range(FAN_OUT)))}
    for n, each in enumerate(pages):
        text = each.page.text[:MAX_CHARS]
        paragraphs = [text[i : i + 600] for i in range(0, len(text), 600)]
        below = links(range(FAN_OUT * (n + 1), FAN_OUT * (n + 2)))
        site[paths[n]] = SitePage(each.page.title, paragraphs, [*below, ("/", "Start")])
    return site


def make_web(sites: Mapping[str, Sequence[LabelledPage]]) -> MemoryWeb:
    """Return all sites as a web."""
    responses = []
    for kind, pages in sites.items():
        for path, each in site_responses(kind, make_site(pages)).items():
            headers = {"content-type": each.content_type}
            url = f"http://{kind}.test{path}"
            responses.append(RecordedResponse(url, each.status, headers, each.body))
    return MemoryWeb(*responses)


def crawl(
    folder: Path, address: str, web: Path, javascript: str, category: str
) -> tuple[float, float, Path]:
    """Run one crawl; return its seconds, its CPU seconds and its folder."""
    topic, crawled = folder / "topic.toml", folder / javascript
    seeds = json.dumps([f"http://{kind}.test/" for kind in SITES])
    topic.write_text(
        TOPIC.format(seeds=seeds, category=category, javascript=javascript, folder=crawled)
    )
    settings = {
        "FOCUSED_REPLAY": address,
        "FOCUSED_RECORDED_WEB": str(web),
        "FOCUSED_JAVASCRIPT_SANDBOX": str(os.geteuid() != 0),
    }
    options = [text for name, value in settings.items() for text in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "crawl", "topic", "-a", f"topic={topic}", *options]
    began, cpu_s = time.perf_counter(), dict[int, float]()
    with (folder / f"{javascript}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            for pid in process_tree(process.pid):
                with suppress(OSError):  # it has ended
                    cpu_s[pid] = max(cpu_s.get(pid, 0.0), cpu_s_of(pid))
            time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"the crawl failed: {(folder / f'{javascript}.log').read_text()[-2000:]}")
    return time.perf_counter() - began, sum(cpu_s.values()), crawled


def measure(
    crawled: Path,
    javascript: str,
    sites: Mapping[str, Sequence[LabelledPage]],
    seconds: float,
    cpu_s: float,
) -> Run:
    """Compare a crawl's pages with the labels."""
    rows = pd.read_parquet(crawled / "pages.parquet")
    rows = rows[rows["outcome"].isin(["fetched", "failed"])].sort_values("seq")
    # Without the feature there is no such column.
    rows = rows.assign(rendered=rows.get("rendered", pd.Series(False, rows.index)).eq(True))
    kinds = rows["host"].str.removesuffix(".test")
    needs = kinds.isin(FRAMEWORKS)
    is_read = (rows["outcome"] == "fetched") & (rows["rendered"] | ~needs)
    read = set(rows[is_read]["url"])
    on_topic = {
        (kind, f"http://{kind}.test/pages/{n}")
        for kind, pages in sites.items()
        for n, each in enumerate(pages)
        if each.is_on_topic
    }
    of_frameworks = [url for kind, url in on_topic if kind in FRAMEWORKS]
    events = json.loads((crawled / "stats.json").read_text()).get("javascript", {})
    late = rows.iloc[len(rows) // 2 :]
    rendered = events.get("rendered", 0)
    wasted_late = _wasted(crawled, set(late["url"]))
    needed_late = int(needs.loc[late.index].sum())
    return Run(
        javascript=javascript,
        recall=sum(url in read for _, url in on_topic) / len(on_topic),
        recall_of_frameworks=sum(url in read for url in of_frameworks) / len(of_frameworks),
        fetched=len(rows),
        needed=int(needs.sum()),
        rendered=rendered,
        rendered_late=int(late["rendered"].sum()) + wasted_late,
        needed_late=needed_late,
        seconds=seconds,
        cpu_s=cpu_s,
        render_s=events.get("milliseconds", 0) / 1_000 / max(rendered, 1),
        requests=events.get("requests", 0),
    )


def _wasted(crawled: Path, urls: set[str]) -> int:
    """Count the pages that were rendered without gain, by the log."""
    log = (crawled / "crawl.log").read_text(errors="replace")
    lines = (line for line in log.splitlines() if " was rendered without gain" in line)
    return sum(any(part in urls for part in line.split()) for line in lines)


def detector_costs(web_folder: Path, pages: int, seed: int) -> tuple[float, float, int]:
    """Return median microseconds of the detector and of the parser, and pages of the sample."""
    own, parsing = [], []
    with RecordedWeb.open(web_folder) as web:
        for url in random.Random(seed).sample(sorted(web.page_urls), pages):
            response = web.get(url)
            if response is None or response.status != 200:
                continue
            fetched = Fetched(url, 200, response.headers, response.body)
            began = time.perf_counter()
            page = parse_page(fetched)
            parsed_at = time.perf_counter()
            javascript_need(fetched, page)
            own.append(1e6 * (time.perf_counter() - parsed_at))
            parsing.append(1e6 * (parsed_at - began))
    return statistics.median(own), statistics.median(parsing), len(own)


def samples_of(
    good: Sequence[LabelledPage], others: Sequence[LabelledPage], pages: int, seed: int
) -> Iterator[tuple[dict[str, list[LabelledPage]], list[LabelledPage]]]:
    """Yield the pages of each site, and other pages to train with."""
    chance = random.Random(seed)
    on_topic = chance.sample(good, min(len(good), pages))
    off_topic = chance.sample(others, 2 * pages)
    half = len(on_topic) // 2
    shown = on_topic[: min(half, 2 * pages // 5)]
    shown = shown + off_topic[: pages - len(shown)]
    chance.shuffle(shown)
    sites = {kind: shown[n :: len(SITES)] for n, kind in enumerate(SITES)}
    yield sites, [*on_topic[half:], *off_topic[pages:]]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("web", type=Path)
    parser.add_argument("--pages", type=int, default=300, help="pages of all sites together")
    parser.add_argument("--samples", type=int, default=3, help="samples of pages")
    parser.add_argument("--category", default=CATEGORY)
    parser.add_argument("--detector-pages", type=int, default=2_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    web = options.web.absolute()
    good, others = read_pages(web, options.category)
    runs: list[Run] = []
    for seed in range(options.samples):
        for sites, training in samples_of(good, others, options.pages, seed):
            with tempfile.TemporaryDirectory() as name, served(make_web(sites)) as site:
                folder = Path(name)
                lines = (
                    f"{each.category}\t{each.url}\t{' '.join(each.page.title.split())}\t\n"
                    for each in training
                )
                (folder / "directory.tsv").write_text("".join(lines))
                for javascript in ("report", "render"):
                    seconds, cpu_s, crawled = crawl(
                        folder, site.address, web, javascript, options.category
                    )
                    run = measure(crawled, javascript, sites, seconds, cpu_s)
                    runs.append(run)
                    print(f"sample {seed}: {run}", flush=True)
    print_summary(runs)
    own_us, parsing_us, count = detector_costs(web, options.detector_pages, 0)
    print(f"detector: {own_us:.1f} us a page, parser: {parsing_us:.0f} us (medians, {count} pages)")
    if options.json:
        found = {
            "runs": [asdict(replace(each)) for each in runs],
            "detector_us": own_us,
            "parser_us": parsing_us,
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def print_summary(runs: Sequence[Run]) -> None:
    """Print means and ranges over the samples."""
    for javascript in ("report", "render"):
        same = [each for each in runs if each.javascript == javascript]
        print(javascript)
        _print("recall of on-topic pages", [each.recall for each in same])
        _print("  on sites of frameworks", [each.recall_of_frameworks for each in same])
        _print("seconds of the crawl", [each.seconds for each in same])
        _print("CPU seconds", [each.cpu_s for each in same])
        if javascript == "render":
            _print("rendered / needed", [each.rendered / each.needed for each in same])
            ratios = [each.rendered_late / each.needed_late for each in same]
            _print("  in the second half", ratios)
            _print("seconds a rendered page", [each.render_s for each in same])
            _print("requests a rendered page", [each.requests / each.rendered for each in same])
    pairs = zip(runs[::2], runs[1::2], strict=True)
    _print("CPU a rendered page", [(b.cpu_s - a.cpu_s) / b.rendered for a, b in pairs])


def _print(name: str, values: Sequence[float]) -> None:
    mean = statistics.mean(values)
    print(f"  {name:28} {mean:8.2f}  ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
