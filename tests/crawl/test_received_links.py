"""Links that other crawls found are merged and scored as those of the crawl's own pages."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from focused.crawl import Crawl
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.apprentice import Apprentice
from tests.support.simulated import START, Simulation, page, site, topic
from tests.support.whale_models import WhaleClassifier

HUB, OTHER = "http://a.test/", "http://b.test/"
TARGETS = [f"http://c.test/{name}" for name in ("whale", "trade")]


def crawl_of(folder: Path, *seeds: str) -> Simulation:
    """A crawl that fetches its seeds, and of c.test nothing."""
    web = site(
        page(HUB, *TARGETS, text="whales"), page(OTHER, *TARGETS, text="trade and more trade")
    )
    made = Simulation(topic(folder, *seeds), web, scorer=Apprentice(WhaleClassifier()))
    return made.run(pages=len(seeds))


def links_to_targets(crawl: Crawl) -> list[QueuedLink]:
    known = crawl.frontier.lookup_links([("c.test", link_key(url)) for url in TARGETS])
    return [known.waiting[link_key(url)] for url in TARGETS]


def sent(links: Sequence[QueuedLink]) -> list[QueuedLink]:
    """The links without what their finder doesn't send."""
    return [replace(link, priority=0.0, found_at=START) for link in links]


def closed(*crawls: Simulation) -> None:
    for each in crawls:
        each.close()


def test_a_received_link_has_the_priority_that_its_finder_gave_it(tmp_path):
    finder = crawl_of(tmp_path / "finder", HUB)
    receiver = Simulation(topic(tmp_path / "receiver"), {}, scorer=finder.scorer)
    found = links_to_targets(finder.crawl)
    assert receiver.crawl.receive(sent(found), START) == 2
    received = links_to_targets(receiver.crawl)
    # The scorer has learned since the links were found.
    expected = finder.scorer.rescore(found)
    assert [link.features for link in received] == [each.features for each in expected]
    assert [link.priority for link in received] == pytest.approx(
        [each.rank_score for each in expected], abs=1e-4
    )
    closed(finder, receiver)


def test_links_of_two_finders_are_merged_as_two_links_of_one_crawl(tmp_path):
    one, other = crawl_of(tmp_path / "1", HUB), crawl_of(tmp_path / "2", OTHER)
    both = crawl_of(tmp_path / "both", HUB, OTHER)
    receiver = Simulation(topic(tmp_path / "receiver"), {}, scorer=Apprentice(WhaleClassifier()))
    links = sent(links_to_targets(one.crawl) + links_to_targets(other.crawl))
    receiver.crawl.receive(links, START)  # in one batch
    merged, expected = links_to_targets(receiver.crawl), links_to_targets(both.crawl)
    index = receiver.scorer.feature_names.index
    for name in ("parent", "parents", "in_links", "anchor", "url"):
        assert [link.features[index(name)] for link in merged] == [
            link.features[index(name)] for link in expected
        ], name
    assert [link.parent for link in merged] == [link.parent for link in expected] == [HUB, HUB]
    closed(one, other, both, receiver)


def test_a_received_link_that_was_fetched_already_is_dropped(tmp_path):
    finder = crawl_of(tmp_path / "finder", HUB)
    web = site(page(TARGETS[0], text="whale"))
    receiver = Simulation(topic(tmp_path / "receiver", TARGETS[0]), web).run()
    receiver.crawl.receive(sent(links_to_targets(finder.crawl)[:1]), receiver.now)
    assert len(receiver.crawl.frontier) == 0
    closed(finder, receiver)
