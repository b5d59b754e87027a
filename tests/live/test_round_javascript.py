"""Processes of one crawl render pages that need JavaScript, with a real Chromium each.

Once started by the command, and once by Ray, with their state in shared storage.
"""

import json

import pytest

from tests.live.test_javascript import (
    PAGES,
    SANDBOX,
    SURE,
    SURE_DELAY_S,
    behaviour,
    serving,
    topic_of,
)
from tests.support.browser_pages import browser
from tests.support.javascript_sites import FRAMEWORKS
from tests.support.ray_nodes import executor_options
from tests.support.round_crawls import round_crawl

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_every_page_of_every_site_is_rendered_and_found(tmp_path, executor):
    browser()
    kinds = sorted(FRAMEWORKS)
    with serving({f"{kind}.test": behaviour(kind) for kind in kinds}) as (served, names):
        settings = [
            f"FOCUSED_DNS_SERVERS={names}",
            f"FOCUSED_JAVASCRIPT_SANDBOX={SANDBOX}",
            "FOCUSED_MODELS=tests.support.whale_models.fixed_models",
            *(f"{name}={value}" for name, value in SURE.items()),
        ]
        topic = topic_of(tmp_path / "topic", served, delay_s=SURE_DELAY_S)
        with (
            executor_options(executor, tmp_path) as options,
            round_crawl(tmp_path, topic=topic, processes=2, settings=settings, **options) as crawl,
        ):
            assert crawl.run() == 0, crawl.log.read_text()
            fetched = crawl.fetched()
            happened = json.loads(crawl.storage.read("stats.json"))["of_features"]
    pages = len(kinds) * (PAGES + 1)
    assert happened["javascript"]["rendered"] == pages, happened
    # On a busy machine a page may be read before its scripts have ended.
    assert pages - 3 <= sum(".test" in url for url in fetched) <= pages, happened
