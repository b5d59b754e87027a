"""``kill -9`` during ``focused frontier export`` and the Parquet export."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from focused.archive import parquet
from focused.storage.state_store import StateStore
from tests.live.webs import SEED, wide_web
from tests.support.command import focused
from tests.support.crawling import ROOT, crawl, write_topic
from tests.support.recorded_web import served

KILLED_IN_AN_EXPORT = """
import os, signal, sys
from itertools import islice
from pathlib import Path
from focused.cli.frontier import view_frontier
from focused.frontier.import_export import export_links

def killed(links):
    yield from islice(links, 5)
    os.kill(os.getpid(), signal.SIGKILL)

with view_frontier(Path(sys.argv[1])) as (opened, _):
    frontier = opened.frontier
    links = (link for host in frontier.hosts for link in frontier.waiting(host))
    export_links(killed(links), Path(sys.argv[2]))
"""
KILLED_IN_THE_PARQUET_FILES = """
import os, signal, sys
from pathlib import Path
from focused.archive import parquet
from focused.storage.state_store import StateStore

def killed(tables):
    yield next(values(tables))
    os.kill(os.getpid(), signal.SIGKILL)

values, parquet.link_values = parquet.link_values, killed
folder = Path(sys.argv[1])
parquet.write_parquet_files(StateStore.reopen(folder / "state").tables, folder)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    topic = write_topic(tmp_path_factory.mktemp("crawled"), SEED, budget="pages = 30")
    with served(wide_web()) as site:
        assert crawl(topic, site.address).status == 0
    return topic.parent / "out"


def killed(script: str, *arguments: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], cwd=ROOT, check=False
    )
    assert done.returncode == -9


def assert_sound(folder: Path) -> None:
    focused("crawl", "--check", folder)


def test_an_export_that_is_killed_leaves_the_old_file_and_the_next_one_is_whole(folder, tmp_path):
    target = tmp_path / "links.parquet"
    target.write_text("old")
    killed(KILLED_IN_AN_EXPORT, folder, target)
    assert target.read_text() == "old"
    assert_sound(folder)
    focused("frontier", "export", folder, target)
    assert list(tmp_path.iterdir()) == [target]
    assert_sound(folder)


def test_parquet_files_that_are_killed_in_the_middle_are_the_old_ones(folder):
    pages, links = folder / "pages.parquet", folder / "links.parquet"
    before = links.read_bytes()
    killed(KILLED_IN_THE_PARQUET_FILES, folder)
    assert links.read_bytes() == before
    assert len(pq.read_table(pages)) == 30
    assert_sound(folder)
    store = StateStore.reopen(folder / "state")
    parquet.write_parquet_files(store.tables, folder)
    store.close()
    assert len(pq.read_table(links)) > 30
    assert not list(folder.glob(".*.part"))
