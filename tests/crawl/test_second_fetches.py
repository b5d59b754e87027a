"""Pages that are fetched a second time, and sites that answer another page then."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise

import pytest

from focused.crawl.second_fetches import MAX_SECOND_FETCHES_PER_SITE, PAGES_BETWEEN
from focused.topic import MAX_SECOND_FETCHES
from tests.support.prose import prose_pages
from tests.support.simulated import page, site, topic

SEED, SITE = "http://seed.test/", "http://site.test/"
PAGES = 100
MANY = 450
DELAY_S = 1.0


def prose(number):
    pages = prose_pages()
    one, other = pages[number % len(pages)], pages[number // len(pages)]
    # Word by word, so that no two pages have text in common.
    mixed = chain.from_iterable(zip(one.text.split(), other.text.split(), strict=False))
    return f"whale {number} {' '.join(mixed)}"


def shop(number):
    return f"cheap watches {number} " * 60


def web(second_text):
    """The seed's site of many pages, and another whose pages have this text the second time."""
    links = [f"{SEED}{number}" for number in range(MANY)]
    linked = [f"{SITE}{number}" for number in range(PAGES)]
    answers = site(
        page(SEED, *linked, *links, text=prose(0)),
        *(page(url, text=prose(number)) for number, url in enumerate(links)),
    )
    for number, url in enumerate(linked):
        first, second = prose(MANY + number), second_text(MANY + number)
        answers[url] = [page(url, text=first), page(url, text=second)]
    return answers


def subject(folder, share=MAX_SECOND_FETCHES, *, seeds=(SEED,)):
    mine = topic(folder, *seeds, delay_s=DELAY_S)
    return replace(mine, scope=replace(mine.scope, second_fetches=share))


def fetched_twice(crawl):
    urls = [url for _, url in crawl.asked]
    return {url for url in urls if urls.count(url) > 1}


@pytest.fixture
def cloaked(simulate, tmp_path):
    return simulate(subject(tmp_path), web(shop)).run()


def test_a_site_that_answers_other_pages_is_closed(cloaked):
    lines = {line.kind: line.site for line in cloaked.crawl.traps.stats.lines()}
    assert lines.get("trap: spam site") == "*.site.test"
    assert cloaked.crawl.counters.other_pages >= 2


def test_at_most_the_share_of_pages_is_fetched_twice_and_few_of_one_site(cloaked):
    counters = cloaked.crawl.counters
    assert counters.second_fetches == len(fetched_twice(cloaked))
    assert 0 < counters.second_fetches <= MAX_SECOND_FETCHES * counters.fetched
    assert counters.second_fetches <= MAX_SECOND_FETCHES_PER_SITE


def test_a_second_fetch_is_neither_archived_nor_harvested(cloaked):
    counters, rows = cloaked.crawl.counters, cloaked.rows.values()
    assert counters.fetched == len(cloaked.asked) - counters.second_fetches - len(
        [url for _, url in cloaked.asked if url.endswith("robots.txt")]
    )
    assert counters.on_topic == sum(row["on_topic"] for row in rows)
    for url in fetched_twice(cloaked):
        # Some texts are also on the seed's site, whose pages are the originals.
        assert cloaked.rows[url]["on_topic"] or cloaked.rows[url]["duplicate_of"].startswith(SEED)


def test_the_second_fetch_comes_later_and_waits_for_the_delay(cloaked):
    urls = [url for _, url in cloaked.asked]
    for url in fetched_twice(cloaked):
        first = urls.index(url)
        assert urls.index(url, first + 1) - first >= PAGES_BETWEEN
    times = [at for at, url in cloaked.asked if url.startswith(SITE)]
    assert min(b - a for a, b in pairwise(times)) >= DELAY_S


@pytest.mark.parametrize(
    "second_text", [prose, lambda n: f"{prose(n)} today", lambda n: prose(n + 50)],
    ids=["same", "a-new-word", "another-text-on-topic"],
)  # fmt: skip
def test_honest_changes_are_no_cloaking(simulate, tmp_path, second_text):
    crawl = simulate(subject(tmp_path), web(second_text)).run()
    assert crawl.crawl.counters.second_fetches > 0
    assert crawl.crawl.counters.other_pages == 0
    assert not crawl.crawl.traps.stats.lines()


def test_without_a_share_every_page_is_fetched_once(simulate, tmp_path):
    crawl = simulate(subject(tmp_path, 0.0), web(shop)).run()
    assert not fetched_twice(crawl)
    assert len(crawl.rows) == 1 + MANY + PAGES


def test_a_site_that_the_user_named_is_not_fetched_twice(simulate, tmp_path):
    crawl = simulate(subject(tmp_path, seeds=(SEED, f"{SITE}0")), web(shop)).run()
    assert not fetched_twice(crawl)


def test_pages_that_wait_survive_a_restart(simulate, tmp_path):
    crawl = simulate(subject(tmp_path), web(shop)).run(pages=PAGES_BETWEEN)
    assert not fetched_twice(crawl)
    again = crawl.restart().run()
    assert fetched_twice(again)
    assert again.crawl.counters.second_fetches == len(fetched_twice(again))
