"""Processes of one crawl log in, each for the hosts that it fetches from.

Once started by the command, and once by Ray, with their state in shared storage.
"""

import pytest

from tests.live.login_site import MEMBERS, OTHERS, PAGES, PASSWORD, LoginSite, serve
from tests.live.test_logins import FORM, everything_written, names, set_secrets, topic_of
from tests.support.ray_nodes import executor_options
from tests.support.round_crawls import round_crawl

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_processes_log_in_and_write_no_secret(tmp_path, monkeypatch, executor):
    set_secrets(monkeypatch)
    with serve(LoginSite()) as site, names() as server:
        topic = topic_of(tmp_path / "topic", site, FORM)
        settings = [f"FOCUSED_DNS_SERVERS={server}"]
        with (
            executor_options(executor, tmp_path) as options,
            round_crawl(tmp_path, topic=topic, processes=2, settings=settings, **options) as crawl,
        ):
            assert crawl.run() == 0, crawl.log.read_text()
            fetched = crawl.fetched()
            log = crawl.log.read_text()
    assert {site.url(MEMBERS, f"/{number}") for number in range(PAGES)} <= set(fetched)
    assert any(OTHERS in url for url in fetched)
    assert site.logins() == 1
    assert PASSWORD.encode() not in everything_written(tmp_path)
    assert PASSWORD not in log
