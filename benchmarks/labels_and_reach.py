"""What labels change of a crawl, and what they don't: pages accepted, found and within reach.

``python benchmarks/labels_and_reach.py`` begins the topic software testing from keywords and two
seeds on the small documentation web, crawls 500 pages with the first model and with the one after
40 labels, and counts the pages on topic that were found and those that links lead to from the
seeds. The steps are those of ``topic_from_keywords.py``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pandas as pd
from harvest import ROOT
from topic_from_keywords import Open, Route, Wanted

from focused.recorded_web.recorded_web import RecordedWeb
from focused.scrapy_addon.crawl_models import training_urls
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import SimulatedRun

WANTED = Wanted(
    "docweb-small",
    ("Top/Computers/Software_Testing",),
    (
        *("unit test*", "unittest", "doctest", "mock*"),
        *("test case*", "fixture*", "test suite*", "pytest"),
    ),
)
LABELS = 40
PAGES = 500


def main() -> int:
    """Run and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=3, help="pairs of seeds")
    options = parser.parse_args()
    os.chdir(ROOT)
    rows = []
    with RecordedWeb.open(Path("webs") / WANTED.web) as web, ParsedWeb(web) as parsed:
        opened = Open(WANTED.web, web, parsed)
        for draw in range(options.draws):
            with tempfile.TemporaryDirectory(prefix="focused-topic-") as folder:
                rows.append(_measure(opened, draw, Path(folder)))
    print(pd.DataFrame(rows).to_string(index=False))
    return 0


def _measure(opened: Open, draw: int, folder: Path) -> dict[str, int]:
    good = opened.on_topic(WANTED)
    route = Route("software-testing", WANTED, opened, good, {}, draw, folder, (0, LABELS), False)
    with redirect_stdout(StringIO()):
        first = route.begin()
        before = _crawl(route)
        route.label(first, LABELS)
        after = _crawl(route)
    reachable = good & _reachable(opened, route.topic.seeds.urls)
    return {
        "draw": draw,
        "on topic": len(good),
        "reachable": len(reachable),
        "accepted before": int(before.pages["on_topic"].sum()),
        "found before": len(good & _fetched(before)),
        "accepted after": int(after.pages["on_topic"].sum()),
        "found after": len(good & _fetched(after)),
    }


def _crawl(route: Route) -> SimulatedRun:
    model = route.model()
    assert model is not None, "the first training succeeds with these keywords"
    return route.crawl(model, PAGES, training_urls(route.topic))


def _fetched(run: SimulatedRun) -> frozenset[str]:
    return frozenset(run.pages.loc[run.pages["outcome"] == "fetched", "url"])


def _reachable(opened: Open, seeds: Iterable[str]) -> frozenset[str]:
    """The URLs of the web to which links lead from the seeds."""
    waiting = list(seeds)
    seen = set(waiting)
    while waiting:
        page = opened.page(waiting.pop())
        targets = () if page is None else (opened.web.find(link.url) for link in page.links)
        new = {url for url in targets if url is not None} - seen
        seen |= new
        waiting += new
    return frozenset(seen)


if __name__ == "__main__":
    raise SystemExit(main())
