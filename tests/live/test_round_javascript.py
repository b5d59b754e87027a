"""Processes of one crawl render pages that need JavaScript, with a real Chromium each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.test_javascript import PAGES, SANDBOX, behaviour, serving, topic_of
from tests.support.browser_pages import browser
from tests.support.javascript_sites import FRAMEWORKS
from tests.support.round_crawls import round_crawl


@pytest.mark.long
def test_every_page_of_every_site_is_rendered_and_found(tmp_path: Path) -> None:
    browser()
    kinds = sorted(FRAMEWORKS)
    with serving({f"{kind}.test": behaviour(kind) for kind in kinds}) as (served, names):
        settings = [
            f"FOCUSED_DNS_SERVERS={names}",
            f"FOCUSED_JAVASCRIPT_SANDBOX={SANDBOX}",
            "FOCUSED_MODELS=tests.support.keyword_guide.guide",
        ]
        topic = topic_of(tmp_path / "topic", served)
        with round_crawl(tmp_path, topic=topic, processes=4, settings=settings) as crawl:
            assert crawl.run() == 0, crawl.log.read_text()
            fetched = crawl.fetched()
    for kind in kinds:
        assert sum(f"//{kind}.test" in url for url in fetched) == PAGES + 1
