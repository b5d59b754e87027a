"""A crawl of hosts with endless pages ends, with every good page."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from focused.cli import main
from tests.support.crawling import Finished, write_topic
from tests.support.recorded_web import Served, served
from tests.support.trap_server import SEED, TrapWeb
from tests.support.warm import crawl_warm

KINDS = (
    *("calendar", "dates", "segments", "facets", "session", "folder-session"),
    *("soft404", "loops", "chains", "hosts"),
)
"""All but those that cost a thousand pages: these the simulation crawls."""
MOST_REQUESTS_LOST = 1_600


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, TrapWeb, Served]:
    web = TrapWeb(*KINDS)
    topic = write_topic(tmp_path_factory.mktemp("traps"), SEED)
    with served(web) as site:
        finished = crawl_warm(topic, site.address)
    assert finished.status == 0, finished.output
    return finished, web, site


def test_it_ends_by_itself_with_every_good_page(crawled) -> None:
    finished, web, _ = crawled
    stats = json.loads((finished.folder / "stats.json").read_text())
    assert stats["end_reason"].startswith("frontier is empty; ")
    assert "refused (trap: " in stats["end_reason"]
    assert web.good <= set(finished.fetched())


def test_the_servers_log_shows_that_the_loss_was_bounded(crawled) -> None:
    _, web, site = crawled
    lost = [
        access
        for access in site.accesses
        if access.path != "/robots.txt" and f"http://{access.host}{access.path}" not in web.good
    ]
    assert len(KINDS) < len(lost) <= MOST_REQUESTS_LOST


def test_the_report_has_a_line_for_each_trap(crawled) -> None:
    finished, _, _ = crawled
    result = CliRunner().invoke(main, ["report", str(finished.folder)], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    table = result.output[result.output.index("Traps") :]
    for line in (
        *("calendar.test", "facets.test", "session.test", "soft404.test", "*.hosts.test"),
        *("repeated segments", "redirect loop", "session id", "endless hosts", "calendar"),
    ):
        assert line in table
    assert "pages lost to traps" in result.output
