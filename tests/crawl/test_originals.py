"""Of two equal pages the one of the better site is the original, whichever came first."""

from __future__ import annotations

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


def on_topic(crawl, host):
    return [url for url, row in crawl.rows.items() if row["on_topic"] and url.startswith(host)]


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
    assert len(on_topic(crawl, OTHER)) >= len(replaced)


def test_each_content_counts_once(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), OTHER)
    counted = [url for url, row in crawl.rows.items() if row["on_topic"]]
    assert crawl.crawl.counters.on_topic == len(counted)


def test_links_of_the_original_are_followed(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), OTHER)
    assert any(url.endswith("/more") for url in on_topic(crawl, OTHER))


def test_between_sites_of_which_nothing_is_known_the_first_stays(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), "http://third.test/")
    assert len(on_topic(crawl, COPIES)) == PAGES


@pytest.mark.parametrize("spam", ["ignore", "report"])
def test_without_the_spam_filter_the_first_stays(simulate, tmp_path, spam):
    crawl = crawled(simulate, tmp_path, web(first=COPIES, then=OTHER), OTHER, spam)
    assert len(on_topic(crawl, COPIES)) == PAGES


def test_a_killed_crawl_knows_who_took_over(simulate, tmp_path):
    pages = web(first=COPIES, then=OTHER)
    crawl = crawled(simulate, tmp_path, pages, OTHER)
    rows = crawl.rows
    crawl.close()
    again = crawled(simulate, tmp_path, pages, OTHER)
    assert again.rows == rows


ADVERTISEMENTS = " ".join(f"buy{number} cheap{number}" for number in range(25))


def test_copies_with_advertisements_close_their_site(simulate, tmp_path):
    copied = [page(f"{COPIES}{i}", text=f"{ADVERTISEMENTS} {TEXTS[i]}") for i in range(PAGES)]
    own = [page(f"{OTHER}{i}", f"{COPIES}{i}", text=TEXTS[i]) for i in range(PAGES)]
    seed = page(SEED, *(each.url for each in own), text=TEXTS[30])
    crawl = crawled(simulate, tmp_path, site(seed, *own, *copied), OTHER)
    assert "trap: spam site" in {line.kind for line in crawl.crawl.traps.stats.lines()}
    assert len(on_topic(crawl, OTHER)) == PAGES


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
    assert len(on_topic(crawl, COPIES)) == PAGES
