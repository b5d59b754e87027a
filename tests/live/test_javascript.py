"""Crawls of sites that need JavaScript, over loopback with a real Chromium."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from focused.rendering.chromium import process_tree
from focused.reports.crawl_folder import read_crawl
from focused.reports.crawl_report import build_report
from tests.support.access_rules import ROBOTS, Rules, violations
from tests.support.browser_pages import SANDBOX, browser
from tests.support.crawling import Finished, crawl, finish, start, write_topic
from tests.support.forked import is_running, wait_until
from tests.support.hostile_hosts import Answer, Behaviour, HostileHosts, pages, serve_hosts
from tests.support.javascript_sites import FRAMEWORKS, SITES, SitePage, site_responses
from tests.support.name_server import at, serve_names

pytestmark = pytest.mark.long

ADDRESSES = {f"{kind}.test": f"127.0.0.{71 + n}" for n, kind in enumerate(SITES)}
PAGES = 12
WORDS = (
    "Whales of the genus {name} dive for squid in the {sea} sea and breathe at the surface. "
    "Their calves stay with them for {n} months, and learn the songs of the herd in that time."
)
SCRIPTED = {"FOCUSED_JAVASCRIPT_SANDBOX": SANDBOX}
SURE = {"FOCUSED_JAVASCRIPT_TIMEOUT_S": 60.0}
"""Settings with which each page that needs it is rendered, however busy the machine is."""

SURE_DELAY_S = 0.5
"""A delay by which rendering, whose price is counted in requests, is always worth it."""


def content(kind: str) -> dict[str, SitePage]:
    """A first page that leads to all others, by two levels; each site has words of its own."""
    found = {}
    paths = [f"/whales/{n}" for n in range(PAGES)]
    for n, path in enumerate(paths):
        text = WORDS.format(name=f"{kind} {n}", sea=f"{kind}-{n * 7}", n=n + 3)
        seen = f"The {kind} fleet of {1900 + n} saw {n * 11} of them near port {n}."
        links = [(f"/whales/{n + 6}", f"whale {n + 6}")] if n + 6 < PAGES else [("/", "whales")]
        found[path] = SitePage(f"Whale {n} of {kind}", [text, seen], links)
    first = [(path, f"whale {n}") for n, path in enumerate(paths[:6])]
    return {"/": SitePage(f"All whales of {kind}", [f"Whales of {kind}."], first), **found}


def behaviour(kind: str, robots: str = "") -> Behaviour:
    answers: dict[str, Answer] = {
        path: (each.status, each.body, {"Content_Type": each.content_type})
        for path, each in site_responses(kind, content(kind)).items()
    }
    if robots:
        answers[ROBOTS] = (200, robots, {"Content_Type": "text/plain"})
    return pages(answers)


@contextmanager
def serving(hosts: Mapping[str, Behaviour]) -> Iterator[tuple[HostileHosts, str]]:
    addresses = {host: at(ADDRESSES.get(host, "127.0.0.70")) for host in hosts}
    with serve_names(addresses) as names, serve_hosts(lambda port: hosts) as served:
        yield served, names.address


def run(folder: Path, served: HostileHosts, names: str, **given: Any) -> Finished:
    settings = {
        "FOCUSED_DNS_SERVERS": names,
        "FOCUSED_REPORT": True,
        **SCRIPTED,
        **given.pop("settings", {}),
    }
    topic = topic_of(folder, served, **given)
    return crawl(topic, "", **settings)


def topic_of(
    folder: Path,
    served: HostileHosts,
    *,
    javascript: str = "render",
    delay_s: float = 0.0,
    scope: str = "",
    **sections: Any,
) -> Path:
    return write_topic(
        folder,
        *(served.url(host) for host in served.hosts),
        delay_s=delay_s,
        timeout_s=20.0,
        scope=f'private_addresses = true\njavascript = "{javascript}"\n{scope}',
        **sections,
    )


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[HostileHosts, str]]:
    browser()
    with serving({f"{kind}.test": behaviour(kind) for kind in SITES}) as opened:
        yield opened


@pytest.fixture(scope="module")
def rendered(
    served: tuple[HostileHosts, str], tmp_path_factory: pytest.TempPathFactory
) -> Finished:
    folder = tmp_path_factory.mktemp("rendered")
    finished = run(folder, *served, delay_s=SURE_DELAY_S, settings=SURE)
    assert finished.status == 0, finished.output
    return finished


@pytest.fixture(scope="module")
def reported(
    served: tuple[HostileHosts, str], tmp_path_factory: pytest.TempPathFactory
) -> Finished:
    finished = run(tmp_path_factory.mktemp("reported"), *served, javascript="report")
    assert finished.status == 0, finished.output
    return finished


def on_topic(finished: Finished, kind: str) -> int:
    crawled = finished.pages
    return int(crawled[crawled["host"].str.startswith(f"{kind}.")]["on_topic"].sum())


@pytest.mark.parametrize("kind", SITES)
def test_every_page_of_every_site_is_found(rendered, kind):
    assert on_topic(rendered, kind) == PAGES + 1


@pytest.mark.parametrize("kind", FRAMEWORKS)
def test_without_rendering_the_sites_of_frameworks_show_nothing(reported, kind):
    assert on_topic(reported, kind) == 0


def test_only_pages_that_need_it_are_rendered(rendered):
    events, needed = rendered.stats["javascript"], len(FRAMEWORKS) * (PAGES + 1)
    assert events["gained"] == events["needing"] == needed
    assert events["rendered"] <= 1.2 * needed
    is_rendered = rendered.pages["rendered"].eq(True)
    assert set(rendered.pages[is_rendered]["host"].str.partition(".")[0]) == set(FRAMEWORKS)


def test_bundles_are_fetched_once_a_crawl(served, rendered):
    assets = [each.path for each in served[0].accesses if each.path.endswith(".js")]
    assert max(map(assets.count, set(assets))) <= 1


def test_the_report_names_the_hosts_that_show_nothing(reported):
    found = reported.stats
    assert found["javascript"] == {"needing": 3}
    assert sorted(host.split(".")[0] for host in found["javascript_hosts"]) == sorted(FRAMEWORKS)
    report = build_report(read_crawl(reported.folder))
    assert report["javascript"]["needing"] == 3
    assert 'scope.javascript = "render"' in reported.output


def test_subrequests_obey_robots_txt_delay_and_one_connection(tmp_path):
    browser()
    robots = "User-agent: *\nDisallow: /api/whales/3\n"
    delay_s = 0.3
    with serving({f"{kind}.test": behaviour(kind, robots) for kind in FRAMEWORKS}) as opened:
        finished = run(
            tmp_path,
            *opened,
            delay_s=delay_s,
            politeness="fetch_time_factor = 0",
            budget="pages = 15",
        )
        accesses = list(opened[0].accesses)
    assert finished.status == 0, finished.output
    assert any(each.path.startswith("/api/") for each in accesses)
    rules = Rules(delay_s, closed={f"{kind}.test": ["/api/whales/3"] for kind in FRAMEWORKS})
    assert violations(accesses, rules) == []
    assert all(each.host in opened[0].hosts for each in accesses)
    assert finished.stats["javascript"].get("refused/robots", 0) >= 0


def test_a_page_waits_longer_for_its_requests_than_its_scripts_may_run(tmp_path):
    browser()
    with serving({"vue.test": behaviour("vue")}) as opened:
        finished = run(
            tmp_path,
            *opened,
            delay_s=3.0,
            budget="pages = 2",
            settings={"FOCUSED_JAVASCRIPT_TIMEOUT_S": 8.0},
        )
    assert finished.stats["javascript"]["gained"] == 2
    assert finished.fetched()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"FOCUSED_JAVASCRIPT_BROWSER": "/nowhere/chromium"}, "/nowhere/chromium is no program"),
        pytest.param(
            {"FOCUSED_JAVASCRIPT_SANDBOX": True},
            "FOCUSED_JAVASCRIPT_SANDBOX = False",
            marks=pytest.mark.skipif(SANDBOX, reason="only as root"),
        ),
    ],
)
def test_without_a_browser_the_crawl_runs_and_says_what_it_missed(tmp_path, settings, reason):
    browser()
    with serving({f"{kind}.test": behaviour(kind) for kind in ("plain", "react")}) as opened:
        finished = run(tmp_path, *opened, settings=settings)
    assert finished.status == 0, finished.output
    assert on_topic(finished, "plain") == PAGES + 1
    assert finished.output.count("focused: pages are not rendered") == 1
    assert reason in finished.output
    events = finished.stats["javascript"]
    assert events["failed/no-browser"] == events["needing"] == 1
    assert "no-browser" in finished.output


def children(pid: int) -> list[int]:
    return [each for each in process_tree(pid)[1:] if is_running(each)]


def page_processes(pid: int) -> list[int]:
    found = []
    for each in children(pid):
        try:
            command = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if b"--headless" in command and b"--type=" not in command:
            found.append(each)
    return found


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Any, Path]]:
    browser()
    with serving({f"{kind}.test": behaviour(kind) for kind in FRAMEWORKS}) as opened:
        topic = topic_of(tmp_path, opened[0], delay_s=0.4)
        process = start(topic, "", FOCUSED_DNS_SERVERS=opened[1], **SCRIPTED)
        try:
            wait_until(lambda: page_processes(process.pid or 0))
            yield process, topic
        finally:
            process.kill()
            process.wait()


def test_the_crawl_survives_a_killed_browser(running):
    process, topic = running
    for pid in page_processes(process.pid):
        os.kill(pid, signal.SIGKILL)
    finished = finish(process, topic, 200)
    assert finished.status == 0, finished.output
    events = finished.stats["javascript"]
    found = sum(on_topic(finished, kind) for kind in FRAMEWORKS)
    # A page whose process dies may still send what it showed so far, which is no gain.
    lost = sum(count for event, count in events.items() if event.startswith("failed/"))
    lost += events["rendered"] - events["gained"]
    # The first pages lead to all others.
    assert found >= (len(FRAMEWORKS) - lost) * (PAGES + 1), (events, finished.output)
    assert found + lost >= len(FRAMEWORKS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_crawl(running, number):
    process, _ = running
    started = children(process.pid)
    os.kill(process.pid, number)
    process.wait(60)
    wait_until(lambda: not [pid for pid in started if is_running(pid)])


def test_a_stopped_crawl_renders_its_pages_when_it_continues(running):
    process, topic = running
    os.kill(process.pid, signal.SIGINT)
    crawled = finish(process, topic, 60).pages
    shells = crawled[(crawled["outcome"] == "fetched") & ~crawled["rendered"].eq(True)]
    assert shells.empty
