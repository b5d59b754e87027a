"""Workers of one crawl log in, each for the hosts that it fetches from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from focused.cluster.local_redis import LocalRedis
from tests.live.test_logins import FORM, everything_written, names, set_secrets, topic_of
from tests.support.engines import needs_redis
from tests.support.forked import HANGS_AFTER_S
from tests.support.login_site import MEMBERS, OTHERS, PAGES, PASSWORD, LoginSite, serve
from tests.support.warm import start_warm

WORKERS = 2


@pytest.mark.long
@needs_redis
def test_workers_log_in_and_write_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_secrets(monkeypatch)
    with serve(LoginSite()) as site, LocalRedis(tmp_path / "redis") as redis, names() as server:
        settings: dict[str, Any] = {
            "FOCUSED_DNS_SERVERS": server,
            "FOCUSED_CLUSTER": " ".join(redis.urls),
            "FOCUSED_CLUSTER_STORAGE": f"file://{tmp_path}/shared",
        }
        topics = [topic_of(tmp_path / f"worker{each}", site, FORM) for each in range(WORKERS)]
        workers = [start_warm(each, "", **settings) for each in topics]
        for worker in workers:
            worker.join(HANGS_AFTER_S)
        output = "\n".join((each.parent / "output").read_text() for each in topics)
        assert [worker.exitcode for worker in workers] == [0] * WORKERS, output
    pages = pd.read_parquet(tmp_path / "shared" / "whales" / "pages")
    fetched = pages.loc[pages["outcome"] == "fetched", "url"]
    assert {site.url(MEMBERS, f"/{number}") for number in range(PAGES)} <= set(fetched)
    assert any(OTHERS in url for url in fetched)
    assert 1 <= site.logins() <= WORKERS
    assert PASSWORD.encode() not in everything_written(tmp_path / "shared")
    assert PASSWORD not in output
