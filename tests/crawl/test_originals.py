"""Of two equal pages the one of the better site is the original, whichever came first."""

from dataclasses import replace

import pytest

from tests.support.prose import prose_pages
from tests.support.simulated import page, site, topic

SEED, COPIES, OTHER = "http://seed.test/", "http://copies.test/", "http://other.test/"
PAGES = 8
TEXTS = [f"whale {each.text}" for each in prose_pages()[:40]]


def web(*, first: str, then: str):
    """A seed that leads to pages of the site ``first``; each leads to its copy on ``then``."""
    early = [page(f"{first}{i}", f"{then}{i}", text=TEXTS[i]) for i in range(PAGES)]
    late = [page(f"{then}{i}", f"{then}{i}/more", text=TEXTS[i]) for i in range(PAGES)]
    more = [page(f"{then}{i}/more", text=TEXTS[10 + i]) for i in range(PAGES)]
    links = [each.url for each in early]
    return site(page(SEED, *links, text=TEXTS[30]), *early, *late, *more)


def crawled(simulate, folder, pages, trusted, spam="avoid", **options):
    subject = topic(folder, SEED)
    subject = replace(subject, scope=replace(subject.scope, spam=spam))
    training = frozenset({f"{trusted}sample"})
    return simulate(subject, pages, training_urls=training, **options).run()


def test_the_page_of_a_trusted_site_takes_over_from_a_copy_that_came_first(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), OTHER)
    copied = [crawl.rows[f"{COPIES}{i}"] for i in range(PAGES) if f"{COPIES}{i}" in crawl.rows]
    replaced = [row for row in copied if row["duplicate_of"]]
    assert replaced
    assert not any(row["on_topic"] for row in replaced)
    assert all(row["duplicate_of"].startswith(OTHER) for row in replaced)
    assert len(crawl.on_topic(OTHER)) >= len(replaced)
    assert any(url.endswith("/more") for url in crawl.on_topic(OTHER)), "its links are followed"
    counted = [url for url, row in crawl.rows.items() if row["on_topic"]]
    assert crawl.crawl.counters.on_topic == len(counted), "each content counts once"


def test_between_sites_of_which_nothing_is_known_the_first_stays(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), "http://third.test/")
    assert len(crawl.on_topic(COPIES)) == PAGES


@pytest.mark.parametrize("spam", ["ignore", "report"])
def test_without_the_spam_filter_the_first_stays(simulate, tmp_path, spam):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), OTHER, spam)
    assert len(crawl.on_topic(COPIES)) == PAGES


def test_a_killed_crawl_knows_who_took_over(simulate, tmp_path):
    pages = web(first=COPIES, then=OTHER)
    crawl = crawled(simulate, tmp_path, pages, OTHER)
    rows = crawl.rows
    crawl.close()
    again = crawled(simulate, tmp_path, pages, OTHER)
    assert again.rows == rows


ADVERTISEMENTS = " ".join(f"buy{number} cheap{number}" for number in range(25))


ORIGINS = [f"http://origin{number}.test/" for number in range(3)]


def scraped(make):
    """Three trusted sites, each page of which leads to a copy of it that ``make`` makes."""
    own = [
        page(f"{ORIGINS[i % 3]}{i}", f"{COPIES}{i}", text=f"{TEXTS[i]} {TEXTS[10 + i]}")
        for i in range(PAGES)
    ]
    copied = [make(f"{COPIES}{i}", TEXTS[i], TEXTS[10 + i]) for i in range(PAGES)]
    return site(page(SEED, *(each.url for each in own), text=TEXTS[30]), *own, *copied)


def closed(simulate, folder, pages, *, trusted=ORIGINS):
    crawl = simulate(topic(folder, SEED), pages, training_urls=frozenset(trusted)).run()
    return {line.site for line in crawl.crawl.traps.stats.lines() if "spam" in line.kind}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda url, one, other: page(url, text=f"{ADVERTISEMENTS} {one} {other}"),
            id="with advertisements",
        ),
        pytest.param(
            lambda url, one, other: page(url, text=f"{one} {ADVERTISEMENTS} {ADVERTISEMENTS}"),
            id="half of them",
        ),
        pytest.param(
            lambda url, one, other: page(url, text=f"{TEXTS[35]} {one} {other} {TEXTS[36]}"),
            id="beside other texts",
        ),
    ],
)
def test_copies_of_several_sites_close_their_site(simulate, tmp_path, make):
    assert closed(simulate, tmp_path, scraped(make)) == {"*.copies.test"}


def test_copies_that_link_to_their_originals_close_their_site(simulate, tmp_path):
    pages = scraped(lambda url, one, other: page(url, *ORIGINS, text=f"{ADVERTISEMENTS} {one}"))
    assert closed(simulate, tmp_path, pages, trusted=()) == {"*.copies.test"}


@pytest.fixture
def reinstated(simulate, tmp_path):
    """Copies of an unknown site come first; later ones tell that their site is a scraper."""
    pages = scraped(lambda url, one, other: page(url, text=f"{ADVERTISEMENTS} {one}"))
    texts = TEXTS[20:24]
    first = [page(f"{COPIES}first{i}", text=text) for i, text in enumerate(texts)]
    then = [page(f"{OTHER}{i}", text=text) for i, text in enumerate(texts)]
    origins = [url for url in pages if url.startswith("http://origin")]
    links = [*(each.url for each in (*first, *then)), *origins]
    pages |= site(page(SEED, *links, text=TEXTS[30]), *first, *then)
    training = frozenset(ORIGINS)
    return simulate(topic(tmp_path, SEED), pages, training_urls=training).run()


def test_pages_refused_for_those_of_a_scraper_count_once_it_is_closed(reinstated):
    rows = reinstated.rows
    assert len(reinstated.on_topic(OTHER)) == 4
    assert all(rows[f"{COPIES}first{i}"]["duplicate_of"] == f"{OTHER}{i}" for i in range(4))
    counted = [url for url, row in rows.items() if row["on_topic"]]
    assert reinstated.crawl.counters.on_topic == len(counted)
    duplicates = [url for url, row in rows.items() if row["duplicate_of"]]
    assert reinstated.crawl.counters.duplicates == len(duplicates)


def test_links_without_a_vote_credit_nobody(simulate, tmp_path):
    """Originals in whose comments spam links to its copies."""
    copied = [page(f"{COPIES}{i}", text=f"{ADVERTISEMENTS} {TEXTS[i]}") for i in range(PAGES)]
    own = [page(f"{ORIGINS[i % 3]}{i}", COPIES, text=TEXTS[i]) for i in range(PAGES)]
    own = [replace(each, body=each.body.replace(b"<a ", b"<a rel='nofollow ugc' ")) for each in own]
    seed = page(SEED, *(each.url for each in (*copied, *own)), text=TEXTS[30])
    assert closed(simulate, tmp_path, site(seed, *copied, *own), trusted=()) == set()


def words(text, first, last):
    return " ".join(text.split()[first:last])


def test_short_pages_that_quote_the_same_text_close_no_site(simulate, tmp_path):
    quotes = [words(TEXTS[i], 0, 50) for i in range(PAGES)]
    own = [
        page(f"{OTHER}{i}", f"{COPIES}{i}", text=f"{quotes[i]} {words(TEXTS[10 + i], 0, 15)}")
        for i in range(PAGES)
    ]
    other = [
        page(f"{COPIES}{i}", text=f"{quotes[i]} {words(TEXTS[20 + i], 0, 15)}")
        for i in range(PAGES)
    ]
    seed = page(SEED, *(each.url for each in own), text=TEXTS[30])
    crawl = crawled(simulate, tmp_path, site(seed, *own, *other), OTHER)
    assert len(crawl.on_topic(COPIES)) == PAGES
