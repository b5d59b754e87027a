"""A process that dies with fetches in flight: the next one keeps their hosts' delays."""

import pytest

from focused.crawl import Fetch, Wait
from tests.support.simulated import page, raw, site, topic

A = "http://a.test/"


@pytest.mark.parametrize("delay_s", [5.0, 30.0])
def test_a_host_that_was_being_requested_is_not_requested_again_before_its_delay(
    simulate, tmp_path, delay_s
):
    crawl = simulate(topic(tmp_path, A, delay_s=delay_s), site(page(A)))
    asked_at = crawl.now
    assert isinstance(crawl.crawl.next(asked_at), Fetch)
    crawl.die()
    step = crawl.crawl.next(asked_at + 1.0)
    assert step == Wait(asked_at + delay_s)
    assert isinstance(crawl.crawl.next(asked_at + delay_s), Fetch)


def test_its_own_crawl_delay_is_kept_as_well(simulate, tmp_path):
    rules = raw(f"{A}robots.txt", "User-agent: *\nCrawl-delay: 20\n", "text/plain")
    crawl = simulate(topic(tmp_path, A), site(page(A), rules))
    crawl.step()
    crawl.now += 60.0
    asked_at = crawl.now
    assert crawl.crawl.next(asked_at).url == A
    crawl.die()
    assert crawl.crawl.next(asked_at + 5.0).until == asked_at + 20.0
