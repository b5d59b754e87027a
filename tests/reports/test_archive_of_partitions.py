"""The archive of a crawl of many partitions is reported as one crawl."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from focused.archive.parquet import VISITS_SCHEMA
from focused.errors import StateError
from focused.reports.crawl_folder import read_crawl, read_links_to
from focused.reports.why import explain_url
from focused.storage.arrow_columns import rows_as_table
from tests.support.command import focused
from tests.support.crawl_folders import good_page, page, write_crawl

SEED, DEEP, OTHER = "http://seed.example/", "http://seed.example/deep", "http://b.example/"


def visit(seq: int, url: str, at: float) -> dict[str, object]:
    return {"page": seq, "url": url, "at": at, "previous_at": 0.0, "result": "unchanged"}


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Partition 3 has the seed and a page below it, partition 7 the page between them in time."""
    parts = {
        3: [
            good_page(SEED, seq=0, fetched_at=1.0, depth=0, parent=None),
            page(DEEP, seq=1, fetched_at=3.0),
        ],
        7: [good_page(OTHER, seq=0, fetched_at=2.0, parent=SEED)],
    }
    folder = tmp_path / "shared/whales"
    for number, rows in parts.items():
        links = [{"source": SEED, "target": OTHER, "score": 0.5}] if number == 3 else []
        own = write_crawl(tmp_path / "own", rows, links=links)
        visits = [visit(row["seq"], row["url"], 10.0 - number) for row in rows[-1:]]
        pq.write_table(rows_as_table(visits, VISITS_SCHEMA), own / "visits.parquet")
        for table in ("pages", "links", "visits"):
            (folder / table).mkdir(parents=True, exist_ok=True)
            shutil.move(own / f"{table}.parquet", folder / table / f"partition-{number:04}.parquet")
    return folder


def test_pages_are_in_the_order_they_were_fetched_with_their_partition(whole):
    pages = read_crawl(whole).pages
    assert pages[["seq", "url", "partition"]].to_numpy().tolist() == [
        [0, SEED, "partition-0003"],
        [1, OTHER, "partition-0007"],
        [2, DEEP, "partition-0003"],
    ]


def test_visits_refer_to_the_pages_of_the_whole(whole):
    crawl = read_crawl(whole)
    assert list(crawl.visits["at"]) == [3.0, 7.0]
    assert list(crawl.visits["url"]) == [OTHER, DEEP]
    assert [crawl.pages["url"][page] for page in crawl.visits["page"]] == [OTHER, DEEP]


def test_the_report_covers_all_partitions(whole):
    result = focused("report", whole)
    assert "seed.example" in result.output and "b.example" in result.output


def test_a_path_through_several_partitions_is_explained(whole):
    assert [link["source"] for link in read_links_to(whole, OTHER)] == [SEED]
    assert explain_url(whole, OTHER).url == OTHER


def test_a_crawl_that_has_not_ended_has_no_tables(tmp_path):
    (tmp_path / "state/partition-0001").mkdir(parents=True)
    with pytest.raises(StateError, match="no partition of this crawl has ended"):
        read_crawl(tmp_path)
