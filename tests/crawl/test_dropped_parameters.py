"""``scope.drop_parameters``: URLs that differ only in them are fetched once."""

from focused.topic import Scope
from tests.support.simulated import moved, page, site, topic

A = "http://a.test/"
SCOPE = Scope(drop_parameters=("sort", "view_*"))


def test_links_that_differ_by_dropped_parameters_are_one(simulate, tmp_path):
    links = [f"{A}list?sort={way}&page={number}" for way in "ud" for number in (1, 2)]
    web = site(page(A, *links), page(f"{A}list?page=1"), page(f"{A}list?page=2"))
    crawl = simulate(topic(tmp_path, A, scope=SCOPE), web).run()
    assert sorted(crawl.urls) == [A, f"{A}list?page=1", f"{A}list?page=2"]


def test_redirects_are_followed_without_them_unless_they_lead_back(simulate, tmp_path):
    web = site(
        page(A, f"{A}old", f"{A}cookie"),
        moved(f"{A}old", f"{A}new?view_all=1"),
        page(f"{A}new"),
        moved(f"{A}cookie", f"{A}cookie?sort=1"),
        page(f"{A}cookie?sort=1", text="behind the cookie"),
    )
    crawl = simulate(topic(tmp_path, A, scope=SCOPE), web).run()
    assert sorted(crawl.urls) == [A, f"{A}cookie", f"{A}cookie?sort=1", f"{A}new", f"{A}old"]


def test_a_seed_stays_as_it_was_given(simulate, tmp_path):
    seed = f"{A}?sort=1"
    crawl = simulate(topic(tmp_path, seed, scope=SCOPE), site(page(seed))).run()
    assert sorted(crawl.urls) == [seed]
