"""The benchmark of the frontier: links sampled from a crawl, and a frontier that is killed."""

import pickle

import pytest
from frontier import Job, measure_frontier
from frontier_links import PAGE_LINKS, LinkSource, Recorder, Recording, SampledPage, queued_links
from msgspec.structs import replace

from focused.crawl.policy import Policy
from focused.crawl.steps import ScoredLink, SettledFetch
from focused.frontier.queued_link import QueuedLink, link_key
from focused.web.page import Link, Page
from focused.web.urls import host_of, normalize_url
from tests.support.whale_models import WhaleScorer

pytestmark = pytest.mark.long


def settled(url: str, *targets: str) -> SettledFetch:
    """A page that was fetched, and its links; other pages link there and add more."""
    before = QueuedLink(key=b"", url="", host="", priority=0.0, score=0.0)
    scored = {
        target: ScoredLink(
            Link(target, anchor=f"to {target}"), 0.5, (0.25,), rank_score=1.0, before=before
        )
        for target in targets
    }
    link = QueuedLink(key=link_key(url), url=url, host=host_of(url), priority=0.0, score=1.0)
    page = Page(url, links=tuple(map(Link, targets)))
    return SettledFetch(link, "fetched", page=page, scored=scored)


def recording(*fetches: SettledFetch) -> Recording:
    recorder = Recorder()
    for fetch in fetches:
        recorder(fetch)
    return recorder.recording(Policy("test", WhaleScorer()))


def source(seed: int = 0) -> LinkSource:
    """Pages of a host, each with a link to another host and three to the next pages."""
    host = "https://www.whales.test"
    fetches = [
        settled(
            f"{host}/{number}.html",
            *(f"{host}/{number + step}.html" for step in (1, 2, 3)),
            "https://sea.test/",
        )
        for number in range(40)
    ]
    return LinkSource(recording(*fetches), hosts=50, links_per_host=20, seed=seed)


def urls(page: SampledPage) -> list[str]:
    return [link.url for link in page.links]


def test_a_recorded_link_was_queued_when_an_earlier_page_had_it():
    found = recording(
        settled("https://a.test/", "https://a.test/1", "https://b.test/"),
        settled("https://a.test/1", "https://a.test/2", "https://b.test/"),
    )
    assert [link.was_queued for link in found.links] == [False, False, False, True]


def test_the_hosts_of_a_recorded_page_are_numbered_from_its_own():
    found = recording(settled("https://a.test/", "https://b.test/", "https://a.test/1"))
    assert [link.host for link in found.links] == [1, 0]


def test_sampled_links_are_normalised_and_differ_on_a_page():
    page = source().page()
    assert len(set(urls(page))) == PAGE_LINKS
    for link in page.links:
        assert normalize_url(link.url) == link.url
        assert (link.key, link.host) == (link_key(link.url), host_of(link.url))


def test_the_same_seed_samples_the_same_pages():
    one, same, other = source(), source(), source(seed=1)
    pages = [urls(one.page()) for _ in range(20)]
    assert pages == [urls(same.page()) for _ in range(20)]
    assert pages != [urls(other.page()) for _ in range(20)]


def test_a_pickled_source_goes_on_where_it_was():
    one = source()
    one.page()
    same = pickle.loads(pickle.dumps(one))
    assert urls(one.page()) == urls(same.page())


def test_links_repeat_as_often_as_in_the_recording():
    sampled, found = source(), set()
    for _ in range(200):
        found.update(urls(sampled.page()))
    assert 0.5 < 1 - len(found) / (200 * PAGE_LINKS) < 0.8  # recorded: 0.74


def test_a_queued_link_keeps_its_anchor():
    page = source().page()
    first, second, *_ = queued_links(page, {}, now=0.0)
    waiting = {first.key: replace(first, anchor="before", parent="https://earlier.test/")}
    again, new, *_ = queued_links(page, waiting, now=9.0)
    assert (again.anchor, again.parent) == ("before", "https://earlier.test/")
    assert (new.anchor, new.parent) == (second.anchor, page.url)


def test_a_frontier_that_is_killed_has_all_that_was_committed(tmp_path):
    grown, reopened = measure_frontier(Job(tmp_path / "state", source(), 3_000))
    assert grown.figures["links"] >= 3_000
    assert grown.figures["turn us"] > 0
    assert reopened["lost links"] == 0
