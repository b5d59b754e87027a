"""Workers over a Redis Cluster: killed, asleep and cut off, they miss and repeat nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cluster_faults import TOPIC, crawl_alone, crawl_under_faults

from focused.recorded_web.recorded_web import RecordedWebWriter
from tests.support.engines import needs_redis
from tests.support.made_up_topic import trained, web, write_directory
from tests.support.recorded_web import html

HOSTS, PAGES = 8, 60
DELAY_S = 0.1


def write_web(folder: Path) -> list[str]:
    """Chains of pages on some hosts, each of which links to the next host, too."""
    writer = RecordedWebWriter(folder, "chains", "test")
    for host in range(HOSTS):
        for number in range(PAGES):
            onward = f"http://h{host}.test/{number + 1}"
            across = f"http://h{(host + 1) % HOSTS}.test/{number}"
            text = f"page {number} of host {host} is about cheese and gardens"
            body = html(f"{host} {number}", onward, across, text=text)
            writer.add(f"http://h{host}.test/{number}", 200, {"content-type": "text/html"}, body)
    writer.finish([])
    return [f"http://h{host}.test/0" for host in range(HOSTS)]


def write_topic(folder: Path, seeds: list[str]) -> Path:
    trained(folder)
    path = folder / "faults.toml"
    path.write_text(
        TOPIC.format(
            seeds=json.dumps(seeds),
            directory=json.dumps([str(write_directory(folder / "directory.tsv", web()))]),
            good=json.dumps(["Top/Food"]),
            model=folder / "models" / "cheese.joblib",
            hosts=json.dumps([f"h{host}.test" for host in range(HOSTS)]),
            delay_s=DELAY_S,
        )
    )
    return path


@pytest.mark.long
@pytest.mark.timeout(900)
@needs_redis
def test_under_faults_every_page_is_archived_once_and_every_host_has_its_delay(
    tmp_path: Path,
) -> None:
    recorded = tmp_path / "web"
    topic = write_topic(tmp_path, write_web(recorded))
    alone = crawl_alone(topic, recorded, tmp_path / "alone")
    assert len(alone) == HOSTS * PAGES
    found = crawl_under_faults(
        topic,
        recorded,
        tmp_path / "cluster",
        alone,
        workers=3,
        delay_s=DELAY_S,
        seed=1,
        max_faults=4,
    )
    assert found.missing == found.archived_twice == []
    assert (found.overlapping, found.too_soon) == (0, 0), found.shortest_pause_s
