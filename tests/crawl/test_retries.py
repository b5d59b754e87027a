"""Failed fetches: retried, finally dropped, and never the crawl's end."""

from dataclasses import replace

import pytest

from focused.web.page import FailureKind, NotModified
from tests.support.simulated import failed, page, raw, site, topic
from tests.support.whale_models import WhaleClassifier, WhaleScorer

A = "http://a.test/"


def test_a_failed_page_is_tried_again_with_doubling_pauses_then_dead(simulate, tmp_path):
    web = {A: failed(A, FailureKind.SERVER_ERROR)}
    done = simulate(topic(tmp_path, A), web).run()
    first, second, third = done.times(A)
    assert second - first >= 1
    assert third - second >= 2
    assert done.rows[A]["failure"] == "http-5xx"
    assert done.crawl.counters.retries == 2
    assert done.crawl.counters.failures == {"http-5xx": 1}


def test_a_page_that_comes_at_last_is_an_ordinary_page(simulate, tmp_path):
    web = {A: [failed(A, FailureKind.RESET), page(A, text="whale")]}
    done = simulate(topic(tmp_path, A), web).run()
    assert done.rows[A]["on_topic"]
    assert done.crawl.counters.failures == {}


def test_retry_after_is_waited_for(simulate, tmp_path):
    web = {A: [failed(A, FailureKind.THROTTLED, retry_after_s=50), page(A)]}
    done = simulate(topic(tmp_path, A), web).run()
    first, second = done.times(A)
    assert second - first >= 50
    assert done.rows[A]["outcome"] == "fetched"


def test_a_day_of_retry_after_is_an_hour_to_us(simulate, tmp_path):
    web = {A: [failed(A, FailureKind.THROTTLED, retry_after_s=86_400), page(A)]}
    first, second = simulate(topic(tmp_path, A), web).run().times(A)
    assert 3_600 <= second - first < 3_700


@pytest.mark.parametrize(
    "kind", [FailureKind.GONE, FailureKind.CLIENT_ERROR, FailureKind.TLS, FailureKind.TOO_LARGE]
)
def test_what_will_not_change_is_not_tried_again(simulate, tmp_path, kind):
    done = simulate(topic(tmp_path, A), {A: failed(A, kind)}).run()
    assert done.times(A) == [1.1]
    assert done.rows[A]["failure"] == kind.value


def test_a_page_that_is_not_modified_is_a_failure_where_no_version_is_stored(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), {A: NotModified(A)}).run()
    assert done.times(A) == [1.1]
    assert (done.rows[A]["failure"], done.rows[A]["status"]) == ("bad-redirect", 304)


def test_tries_survive_a_restart(simulate, tmp_path):
    web = {A: failed(A, FailureKind.SERVER_ERROR)}
    crawl = simulate(topic(tmp_path, A), web)
    while len(crawl.times(A)) < 2:
        crawl.step()
    crawl.restart().run()
    assert len(crawl.times(A)) == 3


def test_one_slow_host_does_not_keep_another_waiting(simulate, tmp_path):
    b = "http://b.test/"
    web = {A: [failed(A, FailureKind.THROTTLED, retry_after_s=500), page(A)], b: page(b)}
    done = simulate(topic(tmp_path, A, b), web).run()
    assert done.times(b)[0] < 5


class Choking(WhaleClassifier):
    def classify(self, page):
        if "choke" in page.url:
            raise RuntimeError("what a page")
        return super().classify(page)


class ChokingScorer(WhaleScorer):
    def score(self, visit, links):
        if "choke" in visit.page.url:
            raise ValueError("what links")
        return super().score(visit, links)


@pytest.mark.parametrize(
    "broken", [{"classifier": Choking()}, {"scorer": ChokingScorer()}], ids=list
)
def test_a_page_that_cannot_be_digested_is_counted_and_nothing_stops(simulate, tmp_path, broken):
    web = site(
        page(A, "/choke", "/fine"),
        page("http://a.test/choke", "/lost", text="whale"),
        page("http://a.test/fine", text="whale"),
    )
    done = simulate(topic(tmp_path, A), web, **broken).run()
    assert done.rows["http://a.test/choke"]["failure"] == "internal-error"
    assert done.rows["http://a.test/fine"]["on_topic"]
    assert done.crawl.counters.failures == {"internal-error": 1}
    assert "http://a.test/lost" not in done.rows
    assert done.crawl.counters.fetched == 2


def test_content_that_is_no_page_is_distinguished(simulate, tmp_path):
    web = site(
        page(A, "/empty", "/binary", "/pdf", "/image", "/huge", "/english"),
        raw("http://a.test/empty", ""),
        raw("http://a.test/binary", bytes(range(256)) * 40),
        raw("http://a.test/pdf", "%PDF-1.4", "application/pdf"),
        raw("http://a.test/image", "GIF89a", "image/gif"),
        raw("http://a.test/huge", "<p>whale</p>" * 1_000),
        raw(
            "http://a.test/english",
            "<html lang=en><p>" + "The whale is a large animal that lives in the sea. " * 9,
        ),
    )
    mine = topic(tmp_path, A)
    mine = replace(mine, scope=replace(mine.scope, max_page_bytes=11_000, languages=("fi",)))
    done = simulate(mine, web).run()
    kinds = {url.rsplit("/", 1)[1]: row["failure"] for url, row in done.rows.items()}
    assert kinds == {
        "": "",
        "empty": "empty",
        "binary": "wrong-type",
        "pdf": "damaged",
        "image": "wrong-type",
        "huge": "too-large",
        "english": "wrong-language",
    }


def test_a_lease_that_is_put_back_is_offered_again(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), site(page(A)))
    first = done.crawl.next(done.now)
    done.crawl.put_back(first.lease, done.now)
    assert done.crawl.in_flight == 0
    assert done.run().rows[A]["outcome"] == "fetched"
