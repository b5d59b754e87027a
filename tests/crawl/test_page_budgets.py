"""Page budgets of hosts and addresses: persistent and never exceeded."""

from dataclasses import replace

from focused.topic import Scope
from tests.support.simulated import page, site, topic

A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"


def fetched(crawl, prefix: str) -> int:
    return sum(
        row["outcome"] == "fetched" and url.startswith(prefix) for url, row in crawl.rows.items()
    )


def neighbours() -> dict:
    """Two hosts at one address, a third elsewhere."""
    links = [f"{host}{n}" for host in (A, B, C) for n in range(9)]
    pages = [page(A, *links), page(B), page(C), *map(page, links)]
    stand_at = {"a.test": "192.0.2.1", "b.test": "192.0.2.1", "c.test": "192.0.2.2"}
    return {each.url: replace(each, address=stand_at[each.url.split("/")[2]]) for each in pages}


class TestOfAHost:
    def web(self) -> dict:
        links = [f"{A}{n}" for n in range(30)]
        return site(page(A, *links), *map(page, links))

    def test_its_links_stay_queued_when_it_is_spent_and_the_end_says_so(self, simulate, tmp_path):
        mine = topic(tmp_path, A, scope=Scope(max_pages_per_host=4))
        crawl = simulate(mine, self.web()).run()
        assert fetched(crawl, A) == 4
        assert len(crawl.crawl.frontier) == 27
        assert crawl.ended == "only hosts are left whose budget is spent: 1 host, 27 links"
        assert crawl.crawl.is_finished(crawl.now)

    def test_a_larger_one_goes_on_with_them(self, simulate, tmp_path):
        mine = topic(tmp_path, A, scope=Scope(max_pages_per_host=4))
        crawl = simulate(mine, self.web()).run().restart(scope=Scope()).run()
        assert fetched(crawl, A) == 31
        assert crawl.ended == "frontier is empty"

    def test_links_found_when_it_is_spent_are_refused_at_the_door(self, simulate, tmp_path):
        mine = topic(tmp_path, A, scope=Scope(max_pages_per_host=4))
        crawl = simulate(mine, self.web()).run()
        assert not crawl.crawl.enqueue_url(f"{A}late", 1.0, crawl.now)
        assert crawl.crawl.counters.out_of_scope == {"host or address budget spent": 1}


class TestOfAnAddress:
    SCOPE = Scope(max_pages_per_address=6)

    def test_all_hosts_that_stand_there_share_it(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A, B, C, scope=self.SCOPE), neighbours()).run()
        assert fetched(crawl, A) + fetched(crawl, B) == fetched(crawl, C) == 6
        assert crawl.ended == "only hosts are left whose budget is spent: 3 hosts, 18 links"

    def test_is_kept_over_a_restart(self, simulate, tmp_path):
        mine = topic(tmp_path, A, B, C, scope=self.SCOPE)
        crawl = simulate(mine, neighbours()).run(pages=8).restart().run()
        assert fetched(crawl, A) + fetched(crawl, B) == fetched(crawl, C) == 6

    def test_is_none_where_no_address_is_known(self, simulate, tmp_path):
        web = {url: replace(each, address="") for url, each in neighbours().items()}
        crawl = simulate(topic(tmp_path, A, B, C, scope=self.SCOPE), web).run()
        assert crawl.crawl.counters.fetched == 30
