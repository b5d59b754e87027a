"""The pause after a slow response (Heydon and Najork 1999)."""

from dataclasses import replace

import pytest

from focused.web.page import Failed, FailureKind
from focused.web.urls import host_of
from tests.support.simulated import page, site, topic, with_politeness

A = "http://a.test/"


class TestFetchTime:
    """A host is spared ten times as long as its last answer took."""

    @staticmethod
    def web(elapsed_s: float) -> dict:
        return site(
            replace(page(A, "/1", "/2"), elapsed_s=elapsed_s),
            replace(page(f"{A}1"), elapsed_s=elapsed_s),
            replace(page(f"{A}2"), elapsed_s=elapsed_s),
        )

    def pauses(self, crawl) -> list[float]:
        times = [crawl.times(url)[0] for url in (A, f"{A}1", f"{A}2")]
        return [times[1] - times[0], times[2] - times[1]]

    @pytest.mark.parametrize(("elapsed_s", "pause"), [(0.05, 1.0), (3.0, 30.0), (9_999.0, 3_600.0)])
    def test_is_what_a_slow_host_is_spared_by(self, simulate, tmp_path, elapsed_s, pause):
        crawl = simulate(topic(tmp_path, A), self.web(elapsed_s)).run()
        assert self.pauses(crawl) == pytest.approx([pause + 0.1] * 2)

    @pytest.mark.parametrize(("factor", "pause"), [(0.0, 1.0), (2.0, 6.0)])
    def test_counts_as_often_as_the_topic_says(self, simulate, tmp_path, factor, pause):
        mine = with_politeness(topic(tmp_path, A), fetch_time_factor=factor)
        crawl = simulate(mine, self.web(3.0)).run()
        assert self.pauses(crawl) == pytest.approx([pause + 0.1] * 2)

    def test_of_a_robots_txt_counts_equal(self, simulate, tmp_path):
        rules = replace(page(f"{A}robots.txt"), elapsed_s=4.0)
        crawl = simulate(topic(tmp_path, A), site(rules, page(A))).run()
        assert crawl.times(A)[0] >= 40.0

    def test_counts_together_with_the_time_in_a_parser_process(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A), self.web(1.0))
        crawl.crawl.hosts.policy.charge_parsing(host_of(A), 2.0)
        crawl.crawl.hosts.policy.charge_parsing(host_of(A), 1.0)
        assert crawl.run().times(A)[0] >= 30.0
        assert self.pauses(crawl) == pytest.approx([10.1] * 2)

    def test_of_an_answer_that_was_a_failure_counts_equal(self, simulate, tmp_path):
        web = {A: Failed(A, FailureKind.SERVER_ERROR, 503, elapsed_s=4.0)}
        first, second, third = simulate(topic(tmp_path, A), web).run().times(A)
        assert second - first >= 40.0 <= third - second
