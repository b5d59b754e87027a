"""Four workers over a Redis Cluster: killed, asleep and cut off, they miss and repeat nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_faults import crawl_alone, crawl_under_faults, write_topic

from tests.support.engines import needs_redis

ROOT = Path(__file__).parent.parent.parent
TOPIC, WEB = ROOT / "topics" / "parallel-computing.toml", ROOT / "webs" / "docweb-small"
DELAY_S = 0.1


@pytest.mark.long
@pytest.mark.timeout(900)
@needs_redis
def test_under_faults_every_page_is_archived_once_and_every_host_has_its_delay(
    tmp_path: Path,
) -> None:
    if not WEB.is_dir():
        pytest.skip("make web builds the recorded web")
    topic = write_topic(TOPIC, WEB, tmp_path, range(40, 80), DELAY_S)
    alone = crawl_alone(topic, WEB, tmp_path / "alone")
    found = crawl_under_faults(
        topic, WEB, tmp_path / "cluster", alone, workers=3, delay_s=DELAY_S, seed=1, max_faults=4
    )
    assert found.missing == found.archived_twice == []
    assert (found.overlapping, found.too_soon) == (0, 0)
