"""A generated site without end, on topic by its words, and none of its pages like another."""

import random
from dataclasses import replace

import pytest

from focused.spam.site_novelty import MIN_PAGES
from focused.spam.spam_training import generate_text
from focused.web.page import Outcome
from focused.web.urls import host_of
from tests.support.prose import prose_pages
from tests.support.simulated import page, site, topic

SEED, ENDLESS = "http://seed.test/", "http://endless.test/0"
SOURCES = 10
MOST_PAGES = 150
MANY_PAGES = 300


class EndlessWeb:
    """A seed that links to the site, whose pages link to the next two; on one host or on many."""

    def __init__(self, *, many_hosts: bool = False, sources: int = SOURCES) -> None:
        self._sources = [f"whale {each.text}" for each in prose_pages()[:sources]]
        self._seed = site(page(SEED, ENDLESS, text=self._sources[0]))
        self._many_hosts = many_hosts

    def get(self, url: str, default: Outcome) -> Outcome:
        number = url.rpartition("/")[2]
        if not host_of(url).endswith("endless.test") or not number.isdigit():
            return self._seed.get(url, default)
        return page(
            url,
            *(self._url(2 * int(number) + following) for following in (1, 2)),
            text=f"whale {generate_text(self._sources, 200, random.Random(url))}",
        )

    def _url(self, number: int) -> str:
        host = f"h{number}.endless.test" if self._many_hosts else "endless.test"
        return f"http://{host}/{number}"


def subject(folder, *seeds, **scope):
    mine = topic(folder, *(seeds or (SEED,)), delay_s=0.0)
    return replace(mine, scope=replace(mine.scope, **scope))


@pytest.mark.parametrize("many_hosts", [False, True], ids=["one-host", "many-hosts"])
def test_it_is_closed_when_it_brings_nothing_new(simulate, tmp_path, many_hosts):
    crawl = simulate(subject(tmp_path), EndlessWeb(many_hosts=many_hosts)).run(pages=MANY_PAGES)
    assert crawl.ended.startswith("frontier is empty; ")
    assert MIN_PAGES <= len([url for url in crawl.rows if "endless" in url]) <= MOST_PAGES
    lines = {line.kind: line for line in crawl.crawl.traps.stats.lines()}
    assert lines["trap: no new content"].site == "*.endless.test"


@pytest.mark.parametrize("action", ["report", "ignore"])
def test_it_is_not_closed_unless_spam_is_avoided(simulate, tmp_path, action):
    crawl = simulate(subject(tmp_path, spam=action), EndlessWeb()).run(pages=MANY_PAGES)
    assert not crawl.ended


def test_a_site_that_the_user_named_is_not_closed(simulate, tmp_path):
    as_seed = simulate(subject(tmp_path / "seed", SEED, ENDLESS), EndlessWeb())
    assert not as_seed.run(pages=MANY_PAGES).ended
    allowed = subject(tmp_path / "allowed", allow_hosts=("seed.test", "endless.test"))
    assert not simulate(allowed, EndlessWeb()).run(pages=MANY_PAGES).ended


def test_a_site_that_becomes_a_seed_is_open_again(simulate, tmp_path):
    crawl = simulate(subject(tmp_path), EndlessWeb()).run(pages=MANY_PAGES)
    assert crawl.crawl.traps.refusal_reason(ENDLESS) == "trap: no new content"
    crawl.crawl.seed(["http://endless.test/9"], crawl.now)
    assert crawl.crawl.traps.refusal_reason(ENDLESS) is None


def test_the_less_is_new_the_longer_its_links_wait(simulate, tmp_path):
    crawl = simulate(subject(tmp_path), EndlessWeb(sources=6 * SOURCES)).run(pages=MANY_PAGES)
    guiding = [each.new_relevance for each in crawl.settled if "endless" in each.link.url]
    assert guiding[-1] < guiding[MIN_PAGES - 1] / 2


def test_a_killed_crawl_knows_what_it_read(simulate, tmp_path):
    crawl = simulate(subject(tmp_path), EndlessWeb()).run(pages=MIN_PAGES + 5)
    crawl = crawl.restart().run(pages=MANY_PAGES)
    assert crawl.ended.startswith("frontier is empty; ")
    assert len([url for url in crawl.rows if "endless" in url]) <= MOST_PAGES
