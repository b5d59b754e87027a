"""``focused frontier ...`` on the folder of a finished crawl."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import Result

from focused.cli.frontier import open_frontier
from focused.crawl.hosts.failures import DeadHosts
from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.storage.state_store import StateStore
from focused.web.page import FailureKind
from tests.cli.test_bad_input import Ran, run
from tests.frontier.steps import drop_host
from tests.live.webs import SEED, wide_web
from tests.support.command import focused
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import served

Frontier = Callable[..., Result]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A crawl of twenty pages of three hundred; deny_hosts holds for what is added, too."""
    topic = write_topic(
        tmp_path_factory.mktemp("crawl"),
        SEED,
        scope='deny_hosts = ["denied.test"]',
        budget="pages = 20",
    )
    with served(wide_web()) as site:
        done = crawl(topic, site.address)
    assert done.status == 0, done.output
    return done.folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stopped, tmp_path / "crawl")


@pytest.fixture
def frontier(folder: Path) -> Frontier:
    """Run ``focused frontier`` on the folder, its place marked by ``...``."""

    def call(*arguments: object, status: int = 0) -> Result:
        texts = [str(folder) if each is ... else str(each) for each in arguments]
        return focused("frontier", *texts, status=status)

    return call


def shown(frontier: Frontier, *options: object) -> dict[str, Any]:
    return json.loads(frontier(..., "--json", *options).stdout)


def queued(frontier: Frontier) -> int:
    return shown(frontier)["totals"]["links"]


def best(frontier: Frontier) -> dict[str, Any]:
    return shown(frontier, "--best", "1")["links"][0]


# Looked at


def test_the_real_command_tells_what_waits(folder):
    done = run("focused.cli", "frontier", folder, "--hosts", 3, "--best", 2)
    assert done.status == 0, done.output
    lines = done.out.splitlines()
    assert re.fullmatch(r"\d+ links are queued on \d+ of 10 hosts", lines[0])
    assert re.match(r"\d+ of those are due, 0 back off", lines[1])
    head, *rows = lines[lines.index("hosts") + 1 :][:4]
    assert head.split()[:3] == ["queued", "worth", "best"]
    assert head.split()[-2:] == ["crawl-delay", "host"]
    worth = [float(row.split()[1]) for row in rows]
    assert len(worth) == 3
    assert worth == sorted(worth, reverse=True)
    assert "links, best first" in lines
    assert len(re.findall(r"^ +[\d.]+ .* http://h\d\.test/\d+$", done.out, re.M)) == 2
    assert len(re.findall(r'"/?.+" on http://h\d\.test/\d+$', done.out, re.M)) == 2


def test_machines_are_reported_the_same(frontier):
    report = shown(frontier, "--hosts", 4)
    assert set(report) == {"now", "late", "totals", "hosts", "hosts_backing_off", "in_flight"}
    assert not report["late"]
    assert len(report["hosts"]) == 4
    assert report["totals"]["hosts"] == 10
    whole = shown(frontier, "--hosts", 99)["hosts"]
    assert sum(host["queued"] for host in whole) == report["totals"]["links"]


def test_one_host_is_reported_with_its_best_links(frontier):
    report = shown(frontier, "--host", "h1.test", "--links", 3)
    (host,) = report["hosts"]
    assert host["name"] == "h1.test"
    assert len(report["links"]) == min(3, host["queued"]) > 0
    assert report["links"][0]["priority"] == host["best"]
    assert all(link["url"].startswith("http://h1.test/") for link in report["links"])


def test_the_frontier_of_a_running_crawl_is_shown_as_it_was_and_cannot_be_changed(frontier, folder):
    before = queued(frontier)
    running = StateStore.reopen(folder / "state")
    try:
        output = run("focused.cli", "frontier", folder, "--json")
        printed = run("focused.cli", "frontier", folder)
        refused = run("focused.cli", "frontier", "drop", folder, "--matching", ".")
    finally:
        running.close()
    assert json.loads(output.out)["late"]
    assert json.loads(output.out)["totals"]["links"] == before
    assert printed.out.startswith("a crawl is running: ")
    refused.complains("is in use by another crawl")
    assert queued(frontier) == before


def test_hosts_in_trouble_are_reported_with_what_ails_them_and_when_they_are_asked_again(
    frontier, folder
):
    store = StateStore.reopen(folder / "state")
    queue, now = DiskFrontier(store.tables), time.time()
    offer = queue.offer(now + 60.0)
    assert isinstance(offer, Offer)
    resting, hopeless = [host.name for host in queue.hosts if host is not offer.host][:2]
    host = queue.hosts.known(resting)
    host.pace = HostPace(now + 9_030.0, failures=8, crawl_delay_s=5.0, suspensions=1)
    queue.hosts.assign_address(host, "192.0.2.7")
    queue.hosts.refresh(host, now)
    DeadHosts(store.tables).add(hopeless, FailureKind.TIMEOUT)
    queue.save()
    store.close()
    output = frontier(...).stdout
    assert "1 back off; the next is due in 2 h 30 min\n" in output
    resting_row = rf" 8 +1  in 2 h 30 min +5.0 s +{resting} at 192\.0\.2\.7$"
    assert len(re.findall(resting_row, output, re.M)) == 2  # also among those that back off
    assert re.search(rf" never: timeout +- +{hopeless}$", output, re.M)
    asked = rf"hosts with a request when the crawl ended\n  {offer.host.name}, sent .+ ago\n"
    assert re.search(asked, output)


# Added


def test_an_added_url_waits_before_all_others(frontier):
    before = queued(frontier)
    done = frontier("add", ..., "HTTP://h3.test:80/added#here", "http://new.test/")
    assert done.stdout == "added 2 links\n"
    assert queued(frontier) == before + 2
    assert best(frontier)["url"] == "http://h3.test/added"


def test_what_cannot_be_added_is_reported_one_by_one_and_the_rest_is_added(frontier):
    waits = best(frontier)["url"]
    urls = ["http://a.denied.test/", "nowhere", SEED, waits, "http://new.test/"]
    done = frontier("add", ..., *urls, status=1)
    assert done.stdout == "added 1 link\n"
    assert done.stderr.splitlines() == [
        "focused: http://a.denied.test/: out of the topic's scope (host denied)",
        "focused: nowhere: no URL that can be crawled",
        f"focused: {SEED}: fetched, failed or dropped before; --again queues it",
        f"focused: {waits}: waits already",
    ]


def test_what_was_fetched_is_added_once_more_on_demand(frontier):
    assert frontier("add", ..., SEED, "--again").stdout == "added 1 link\n"
    assert best(frontier)["url"] == SEED


def test_urls_are_read_from_a_file_with_comments(frontier, tmp_path):
    urls = tmp_path / "urls.txt"
    urls.write_text("# mine\nhttp://new.test/1 # one\n\nhttp://new.test/2#there\n")
    done = frontier("add", ..., "--file", urls, "--score", 0.25)
    assert done.stdout == "added 2 links\n"
    links = shown(frontier, "--host", "new.test")["links"]
    assert [(link["url"], link["score"]) for link in links] == [
        ("http://new.test/1", 0.25),
        ("http://new.test/2", 0.25),
    ]


def test_of_many_complaints_the_first_are_reported_and_how_many_there_were(frontier):
    done = frontier("add", ..., *(f"nowhere-{number}" for number in range(23)), status=1)
    assert len(done.stderr.splitlines()) == 21
    assert done.stderr.endswith("focused: and 3 more\n")


# Dropped


def test_a_host_is_dropped_and_no_other(frontier):
    host = shown(frontier, "--hosts", 1)["hosts"][0]
    before = queued(frontier)
    done = frontier("drop", ..., "--host", host["name"])
    left = before - host["queued"]
    links = "1 link" if host["queued"] == 1 else f"{host['queued']} links"
    assert done.stdout == f"dropped {links}; {left} are left\n"
    assert queued(frontier) == left
    assert shown(frontier, "--host", host["name"])["hosts"][0]["queued"] == 0


def test_links_are_dropped_by_a_pattern_and_on_one_host_if_so_asked(frontier):
    everywhere = shown(frontier, "--best", 500)["links"]
    even = [link["url"] for link in everywhere if re.search("[02468]$", link["url"])]
    here = [url for url in even if "//h1.test" in url]
    done = frontier("drop", ..., "--matching", "[02468]$", "--host", "h1.test")
    assert done.stdout.startswith(f"dropped {len(here)} link")
    done = frontier("drop", ..., "--matching", "[02468]$")
    assert done.stdout.startswith(f"dropped {len(even) - len(here)} link")
    assert queued(frontier) == len(everywhere) - len(even)


def test_a_dropped_url_stays_seen(frontier):
    url = best(frontier)["url"]
    assert frontier("drop", ..., url).stdout.startswith("dropped 1 link; ")
    assert "dropped before" in frontier("add", ..., url, status=1).stderr
    done = frontier("drop", ..., url, status=1)
    assert done.stderr == f"focused: {url}: is not queued\n"


# Moved


def test_links_are_moved_to_where_a_score_puts_a_link(frontier):
    worst = shown(frontier, "--best", 500)["links"][-1]
    assert frontier("move", ..., worst["url"], "--to", 1).stdout == "moved 1 link\n"
    link = best(frontier)
    assert (link["url"], link["priority"]) == (worst["url"], 1.0)
    assert link["score"] == worst["score"] < 1.0


def test_links_are_moved_up_and_down(frontier):
    before = {link["url"]: link["priority"] for link in shown(frontier, "--best", 500)["links"]}
    frontier("move", ..., "--host", "h1.test", "--by", "-2.5")
    after = shown(frontier, "--best", 500)["links"]
    for link in after:
        change = -2.5 if "//h1.test/" in link["url"] else 0.0
        assert link["priority"] == pytest.approx(before[link["url"]] + change)
    assert [link["priority"] for link in after] == sorted(
        (link["priority"] for link in after), reverse=True
    )


# Broken off


def test_what_is_broken_off_before_it_was_kept_is_not_done(frontier, folder):
    def break_off() -> None:
        with open_frontier(folder) as crawl:
            (host, *_) = crawl.frontier.hosts
            assert drop_host(crawl.frontier, host.name, 0.0) > 0
            raise KeyboardInterrupt

    before = queued(frontier)
    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert queued(frontier) == before


# Exported and imported


def test_what_is_exported_and_dropped_does_not_come_back_for_it_was_seen(frontier, tmp_path):
    path = tmp_path / "links.parquet"
    count = queued(frontier)
    assert frontier("export", ..., path).stdout == f"{path}: {count} links\n"
    table = pd.read_parquet(path)
    assert len(table) == count
    frontier("drop", ..., "--matching", ".")
    done = frontier("import", ..., path)
    assert done.stdout == f"added 0 links; {count} were known, 0 refused, 0 no links\n"


def test_bad_rows_are_reported_by_number_and_the_others_are_imported(frontier, tmp_path):
    path = tmp_path / "links.parquet"
    urls = ["http://new.test/1", "http://new.test/2", "http://denied.test/"]
    pd.DataFrame({"url": urls, "score": [0.5, 7.0, 0.5]}).to_parquet(path)
    done = frontier("import", ..., path, status=1)
    assert done.stdout == "added 1 link; 0 were known, 1 refused, 1 no links\n"
    assert done.stderr.splitlines() == [
        f"focused: {path}, row 2: Expected `float` <= 1.0, in column `score`",
        "focused: 1 refused: out of the topic's scope (host denied)",
    ]


# Mistakes


def complaint(frontier: Frontier, *arguments: object) -> str:
    done = frontier(*arguments, status=2)
    Ran(done.exit_code, done.stdout, done.stderr).complains()
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((..., "--host", "unknown.test"), "the crawl does not know a host 'unknown.test'"),
        (("add", ...), "name URLs, or a --file of them"),
        (("add", ..., "--file", "/nowhere/urls"), "/nowhere/urls: cannot be read"),
        (("drop", ...), "name URLs, or choose links by --host, --matching or both"),
        (("drop", ..., SEED, "--host", "h1.test"), "name URLs, or choose links by --host"),
        (("drop", ..., "--host", "unknown.test"), "the crawl does not know a host"),
        (("move", ..., SEED), "give either --to SCORE or --by DELTA"),
        (("move", ..., SEED, "--to", 1, "--by", 1), "give either --to SCORE or --by DELTA"),
        (("export", ..., "links.csv"), "name a .parquet file"),
        (("import", ..., "/nowhere/links.parquet"), "/nowhere/links.parquet cannot be read"),
        (("show", "/nowhere"), "/nowhere/state: there is no crawl's state"),
    ],
)
def test_a_mistake_is_one_clear_line(frontier, arguments, message):
    assert message in complaint(frontier, *arguments)


@pytest.mark.parametrize("option", ["--to", "--by"])
def test_no_number_is_refused_as_a_place(frontier, option):
    assert "nan" in frontier("move", ..., SEED, option, "nan", status=2).stderr


def test_a_pattern_that_is_none_is_refused(frontier):
    refused = frontier("drop", ..., "--matching", "(", status=2)
    assert "'--matching': ( is no regular expression: missing )" in refused.stderr


@pytest.mark.parametrize("content", ["{", "[" * 100_000])
def test_settings_that_cannot_be_read_are_reported_for_they_hold_the_scope(
    frontier, folder, content
):
    (folder / "settings.json").write_text(content)
    assert "settings.json: is damaged" in complaint(frontier, "add", ..., "http://new.test/")


def test_without_settings_the_scope_is_not_known_and_that_is_said(frontier, folder):
    (folder / "settings.json").unlink()
    done = frontier("add", ..., "http://denied.test/")
    assert done.stdout == "added 1 link\n"
    assert (
        "there is no settings.json; URLs are not checked against the topic's scope" in done.stderr
    )
