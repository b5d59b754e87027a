"""The crawl loop: order of fetches, archive, and the end."""

from dataclasses import replace

import pytest

from focused.crawl import Done, Fetch, Wait
from focused.topic import Budget, Scope
from tests.support.archived_links import link_rows
from tests.support.simulated import moved, page, raw, site, topic, with_politeness

A, B = "http://a.test/", "http://b.test/"


def at(*paths: str) -> list[str]:
    return [f"http://a.test/{path}" for path in paths]


def chain_of_pages(count: int) -> dict:
    return site(*(page(f"http://h{n}.test/", f"http://h{n + 1}.test/") for n in range(count)))


class TestOrder:
    def test_the_best_link_of_a_host_comes_first(self, simulate, tmp_path):
        web = site(page(A, "/trade", "/whales"), page(A + "trade"), page(A + "whales"))
        done = simulate(topic(tmp_path, A), web).run()
        assert done.urls == at("", "whales", "trade")
        assert done.rows[A + "whales"]["score"] > done.rows[A + "trade"]["score"]

    def test_breadth_first_takes_them_as_they_were_found(self, simulate, tmp_path):
        web = site(page(A, "/trade", "/whales"), page(A + "trade"), page(A + "whales"))
        assert simulate(topic(tmp_path, A), web, policy="bfs").run().urls == at(
            "", "trade", "whales"
        )

    def test_a_page_is_fetched_once_however_often_it_is_linked(self, simulate, tmp_path):
        web = site(page(A, "/x", B), page(A + "x", "/", "/x#part"), page(B, A, A + "x"))
        done = simulate(topic(tmp_path, A, A), web).run()
        assert sorted(done.urls) == sorted([A, A + "x", B])

    def test_links_settled_already_are_scored_no_more_and_waiting_ones_are(
        self, simulate, tmp_path
    ):
        web = site(page(A, "/1", "/2"), page(A + "1", "/", "/2"), page(A + "2", "/", "/1"))
        done = simulate(topic(tmp_path, A), web).run()
        assert [list(each.scored) for each in done.settled] == [at("1", "2"), at("2"), []]
        scores = {(x["source"], x["target"]): x["score"] for x in link_rows(done.store.tables)}
        assert scores[A + "1", A] is None and scores[A + "1", A + "2"] is not None

    def test_while_a_host_is_asked_another_may_be(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A, B), {}).crawl
        first, second = crawl.next(0.0), crawl.next(0.0)
        assert isinstance(first, Fetch) and isinstance(second, Fetch)
        assert {first.url, second.url} == {A + "robots.txt", B + "robots.txt"}
        assert crawl.next(0.0) == Wait(None)


class TestRows:
    def test_a_row_tells_who_led_there_and_what_was_expected(self, simulate, tmp_path):
        web = site(page(A, "/whales"), page(A + "whales", text="whale"))
        row = simulate(topic(tmp_path, A), web).run().rows[A + "whales"]
        assert (row["parent"], row["anchor"], row["depth"]) == (A, "/whales", 1)
        assert row["features"] == {"anchor": 1.0, "parent": 0.9}
        assert row["score"] == pytest.approx(0.6 + 0.3 * 0.9)
        assert (row["relevance"], row["on_topic"]) == (0.9, True)

    def test_a_seed_has_no_parent(self, simulate, tmp_path):
        row = simulate(topic(tmp_path, A), site(page(A))).run().rows[A]
        assert (row["parent"], row["depth"], row["score"]) == (None, 0, 1.0)

    def test_a_redirect_hands_on_score_anchor_features_and_depth(self, simulate, tmp_path):
        web = site(page(A, "/whales"), moved(A + "whales", B), page(B, text="whale"))
        rows = simulate(topic(tmp_path, A), web).run().rows
        old, new = rows[A + "whales"], rows[B]
        assert (old["outcome"], new["outcome"]) == ("redirected", "fetched")
        for field in ("score", "anchor", "features", "depth"):
            assert old[field] == new[field], field
        assert new["parent"] == A + "whales"

    def test_same_content_is_archived_as_a_duplicate_and_its_links_are_not_followed(
        self, simulate, tmp_path
    ):
        same = {"text": "whale", "title": "The same"}
        web = site(page(A, "/1", "/2"), page(A + "1", "x/", **same), page(A + "2", "x/", **same))
        done = simulate(topic(tmp_path, A), web, policy="bfs").run()
        row = done.rows[A + "2"]
        assert (row["outcome"], row["duplicate_of"]) == ("fetched", A + "1")
        assert not row["on_topic"]
        assert done.crawl.counters.duplicates == 1
        assert done.crawl.counters.on_topic == 1

    def test_training_pages_are_flagged_and_never_harvest(self, simulate, tmp_path):
        web = site(page(A, "/t", text="whale"), page(A + "t", "/u", text="whale whale"))
        done = simulate(topic(tmp_path, A), web, training_urls=frozenset({A + "t"})).run()
        assert [row["training"] for row in done.rows.values()] == [False, True, False]
        counters = done.crawl.counters
        assert (counters.fetched, counters.classified, counters.on_topic, counters.training) == (
            2, 1, 1, 1,
        )  # fmt: skip


class TestRedirects:
    def test_a_chain_without_end_ends(self, simulate, tmp_path):
        web = site(*(moved(f"{A}{n}", f"{A}{n + 1}") for n in range(50)))
        done = simulate(topic(tmp_path, A + "0"), web).run()
        assert len(done.urls) == 11
        assert done.rows[A + "10"]["failure"] == "bad-redirect"

    def test_a_loop_ends(self, simulate, tmp_path):
        web = site(moved(A, A + "1"), moved(A + "1", A))
        assert simulate(topic(tmp_path, A), web).run().urls == at("", "1")

    def test_pages_that_refresh_to_ever_new_pages_end(self, simulate, tmp_path):
        web = site(
            *(
                raw(f"{A}{n}", f'<meta http-equiv=refresh content="0;url=/{n + 1}"><p>Page {n}')
                for n in range(50)
            )
        )
        assert len(simulate(topic(tmp_path, A + "0"), web).run().urls) == 11

    def test_stubs_of_the_same_words_refresh_each_to_its_own_page(self, simulate, tmp_path):
        stub = '<meta http-equiv=refresh content="0;url=/to-{}"><p>This page has moved.'
        web = site(page(A, "/1", "/2"), *(raw(f"{A}{n}", stub.format(n)) for n in (1, 2)))
        web |= site(*(page(f"{A}to-{n}", text="whale") for n in (1, 2)))
        done = simulate(topic(tmp_path, A), web).run()
        assert {A + "to-1", A + "to-2"} < set(done.urls)

    def test_a_target_out_of_scope_is_not_followed(self, simulate, tmp_path):
        mine = topic(tmp_path, A, scope=Scope(allow_hosts=("a.test",)))
        done = simulate(mine, site(moved(A, B), page(B))).run()
        assert done.urls == [A]
        assert done.crawl.counters.out_of_scope == {"host not allowed": 1}


class TestNofollow:
    @pytest.mark.parametrize(
        "body",
        [
            '<meta name="robots" content="nofollow"><p>x<a href="/no">no</a>',
            '<p>x<a href="/no" rel="nofollow">no</a>',
        ],
    )
    def test_links_not_to_be_followed_are_counted_and_stay_unrequested(
        self, body, simulate, tmp_path
    ):
        done = simulate(topic(tmp_path, A), site(raw(A, body), page(A + "no"))).run()
        assert done.urls == [A]
        assert done.crawl.counters.nofollow == 1

    def test_links_that_a_page_asks_not_to_follow_are_listed_as_such(self, simulate, tmp_path):
        body = '<meta name="focusedtest" content="nofollow"><p>x<a href="/no">no</a>'
        done = simulate(topic(tmp_path, A), site(raw(A, body))).run()
        assert [row["nofollow"] for row in link_rows(done.store.tables)] == [True]

    def test_a_user_may_follow_them_all_the_same(self, simulate, tmp_path):
        body = '<meta name="robots" content="nofollow"><p>x<a href="/a" rel="nofollow">a</a>'
        moved_on = (
            '<meta name="robots" content="none"><meta http-equiv=refresh content="0;url=/b">y'
        )
        web = site(raw(A, body), raw(A + "a", moved_on), page(A + "b"))
        mine = with_politeness(topic(tmp_path, A), nofollow=False)
        done = simulate(mine, web).run()
        assert [url for _, url in done.asked][1:] == at("", "a", "b")
        assert done.crawl.counters.nofollow == 0

    def test_another_pages_plain_link_still_leads_there(self, simulate, tmp_path):
        no = '<p>x<a href="/no" rel="nofollow">no</a><a href="/b">b</a>'
        web = site(raw(A, no), page(A + "b", "/no"), page(A + "no"))
        assert simulate(topic(tmp_path, A), web).run().urls == at("", "b", "no")


class TestScope:
    @pytest.mark.parametrize(
        ("scope", "reason", "left_out"),
        [
            (Scope(max_depth=1), "too deep", {B + "x"}),
            (Scope(deny_hosts=("b.test",)), "host denied", {B, B + "x"}),
            (Scope(allow_hosts=("a.test",)), "host not allowed", {B, B + "x"}),
            (Scope(deny_paths=("x$",)), "path denied", {B + "x", A + "x"}),
            (Scope(allow_paths=("^/$",)), "path not allowed", {B + "x", A + "x"}),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_links_out_of_scope_are_counted_and_stay_unrequested(
        self, scope, reason, left_out, simulate, tmp_path
    ):
        web = site(page(A, B, "/x"), page(A + "x"), page(B, "/x"), page(B + "x"))
        done = simulate(topic(tmp_path, A, scope=scope), web).run()
        assert set(done.urls) == {A, A + "x", B, B + "x"} - left_out
        assert set(done.crawl.counters.out_of_scope) == {reason}

    def test_failures_do_not_use_up_a_hosts_limit(self, simulate, tmp_path):
        web = site(page(A, "/gone", "/x"), page(A + "x"))
        done = simulate(topic(tmp_path, A, scope=Scope(max_pages_per_host=2)), web).run()
        assert done.rows[A + "x"]["outcome"] == "fetched"


class TestFeedsAsSeeds:
    SITEMAP = f"<urlset><url><loc>{A}1</loc></url><url><loc>{B}</loc></url></urlset>"

    def test_what_a_sitemap_lists_is_as_near_as_a_seed(self, simulate, tmp_path):
        web = site(
            raw(A + "map.xml", self.SITEMAP, "application/xml"), page(A + "1", "/2"), page(B)
        )
        done = simulate(topic(tmp_path, A + "map.xml"), web).run()
        assert {url: row["depth"] for url, row in done.rows.items()} == {
            A + "map.xml": 0,
            A + "1": 0,
            B: 0,
            A + "2": 1,
        }

    def test_a_feed_is_no_harvest(self, simulate, tmp_path):
        web = site(raw(A + "map.xml", self.SITEMAP + "<!-- whale -->", "application/xml"))
        done = simulate(topic(tmp_path, A + "map.xml"), web).run()
        row = done.rows[A + "map.xml"]
        assert (row["outcome"], row["relevance"], row["on_topic"]) == ("feed", None, False)
        assert done.crawl.counters.classified == 0

    def test_a_feed_that_is_no_seed_is_of_the_wrong_type(self, simulate, tmp_path):
        web = site(page(A, "/map.xml"), raw(A + "map.xml", self.SITEMAP, "application/xml"))
        done = simulate(topic(tmp_path, A), web).run()
        assert done.rows[A + "map.xml"]["failure"] == "wrong-type"


class TestBudget:
    @pytest.mark.parametrize("pages", [1, 4])
    def test_pages_are_counted_exactly(self, pages, simulate, tmp_path):
        mine = topic(tmp_path, "http://h0.test/", budget=Budget(pages=pages))
        done = simulate(mine, chain_of_pages(10)).run()
        assert len(done.urls) == done.crawl.counters.fetched == pages
        assert done.ended == "page budget spent"

    def test_fetches_in_flight_count_so_that_none_is_too_many(self, simulate, tmp_path):
        seeds = [f"http://h{n}.test/" for n in range(5)]
        crawl = simulate(topic(tmp_path, *seeds, budget=Budget(pages=2)), {}).crawl
        asked = [crawl.next(0.0) for _ in range(5)]
        for n, step in enumerate(asked):
            crawl.settle(step.lease, raw(step.url, "", "text/plain"), 10.0 + n)
        pages = [crawl.next(100.0) for _ in range(3)]
        assert [type(step) for step in pages] == [Fetch, Fetch, Wait]
        crawl.settle(pages[0].lease, raw(pages[0].url, ""), 101.0)
        assert isinstance(crawl.next(200.0), Fetch)

    def test_bytes_end_it_after_the_page_that_passes_them(self, simulate, tmp_path):
        web = chain_of_pages(10)
        limit = len(web["http://h0.test/"].body) + 1
        mine = topic(tmp_path, "http://h0.test/", budget=Budget(bytes=limit))
        done = simulate(mine, web).run()
        assert len(done.urls) == 2
        assert done.ended == "byte budget spent"

    @pytest.mark.parametrize(
        ("on_topic", "ended", "fetched"),
        [
            ("...........", "0 of the last 4 pages on topic, below budget.min_harvest", 4),
            ("++...+.....", "1 of the last 4 pages on topic, below budget.min_harvest", 5),
            ("++..++..++.", "frontier is empty", 11),
        ],
    )
    def test_it_ends_when_too_few_of_the_last_pages_are_on_topic(
        self, on_topic, ended, fetched, simulate, tmp_path
    ):
        urls = [f"http://h{n}.test/" for n in range(len(on_topic))]
        words = {"+": "whale", ".": "toaster"}
        web = site(
            *(
                page(url, *urls[n + 1 : n + 2], text=words[mark])
                for n, (url, mark) in enumerate(zip(urls, on_topic, strict=True))
            )
        )
        budget = Budget(min_harvest=0.5, min_harvest_pages=4)
        done = simulate(topic(tmp_path, urls[0], budget=budget), web).run()
        assert (done.ended, done.crawl.counters.classified) == (ended, fetched)

    def test_the_last_pages_are_counted_over_a_restart(self, simulate, tmp_path):
        budget = Budget(min_harvest=0.5, min_harvest_pages=300)
        links = [f"/{n}" for n in range(400)]
        web = site(page(A, *links), *(page(f"{A}{n}", text=f"toaster {n}") for n in range(400)))
        crawl = simulate(topic(tmp_path, A, budget=budget), web).run(pages=200).restart().run()
        assert crawl.crawl.counters.classified == 300

    def test_hours_count_while_it_runs_and_not_between_its_sessions(self, simulate, tmp_path):
        mine = topic(tmp_path, "http://h0.test/", budget=Budget(hours=0.5), delay_s=60.0)
        mine = replace(mine, politeness=replace(mine.politeness, patience=0.0))
        many = site(page("http://h0.test/", *(f"/{n}" for n in range(99))))
        many |= site(*(page(f"http://h0.test/{n}") for n in range(99)))
        crawl = simulate(mine, many).run(pages=10)
        spent = crawl.now
        crawl.restart(later_s=50_000.0).run()
        assert crawl.ended == "time budget spent"
        assert 29 <= len(crawl.urls) <= 30
        assert crawl.crawl.active_s(crawl.now) == pytest.approx(1_800, abs=61)
        assert crawl.now > spent + 50_000

    def test_a_larger_budget_goes_on_where_the_smaller_ended(self, simulate, tmp_path):
        mine = topic(tmp_path, "http://h0.test/", budget=Budget(pages=3))
        crawl = simulate(mine, chain_of_pages(10)).run()
        crawl.restart(budget=Budget(pages=5)).run()
        assert crawl.urls == [f"http://h{n}.test/" for n in range(5)]

    def test_a_spent_crawl_that_is_started_again_asks_for_nothing(self, simulate, tmp_path):
        mine = topic(tmp_path, "http://h0.test/", budget=Budget(pages=3))
        crawl = simulate(mine, chain_of_pages(10)).run()
        asked = len(crawl.asked)
        assert crawl.restart().run().ended == "page budget spent"
        assert len(crawl.asked) == asked


class TestRestart:
    def wide_web(self) -> dict:
        pages = [page(f"{A}{n}", f"/{n * 2}", f"/{n * 2 + 1}", B + str(n)) for n in range(1, 30)]
        return site(*pages, *(page(f"{B}{n}", text="whale") for n in range(1, 30)))

    def test_counters_go_on_where_they_were(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A + "1"), self.wide_web()).run(pages=7)
        before = crawl.crawl.counters.to_state()
        crawl.restart()
        assert crawl.crawl.counters.to_state() == before

    @pytest.mark.parametrize("stops", [[3], [1, 2, 3], [5, 5, 20]])
    def test_a_stopped_crawl_fetches_in_the_end_what_an_unstopped_one_does(
        self, stops, simulate, tmp_path
    ):
        whole = simulate(topic(tmp_path / "whole", A + "1"), self.wide_web()).run()
        crawl = simulate(topic(tmp_path / "parts", A + "1"), self.wide_web())
        for pages in stops:
            crawl.run(pages=pages)
            crawl.restart(later_s=10.0)
        crawl.run()
        assert sorted(crawl.urls) == sorted(whole.urls)
        assert crawl.rows.keys() == whole.rows.keys()

    def test_a_lease_that_died_with_its_process_is_given_out_again(self, simulate, tmp_path):
        crawl = simulate(topic(tmp_path, A), site(page(A)))
        crawl.step()
        while not isinstance(lease := crawl.crawl.next(crawl.now), Fetch):
            crawl.now = lease.until
        crawl.store.commit()
        crawl.restart().run()
        assert crawl.urls == [A]


def test_an_empty_frontier_is_the_end(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), site(page(A)))
    assert done.run().ended == "frontier is empty"
    assert done.crawl.is_finished(done.now)
    assert done.crawl.next(done.now) == Done("frontier is empty")


def test_seeds_are_new_once(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A), {})
    assert crawl.crawl.seed([A, B, B + "#x"], crawl.now) == 1


class TestLongPages:
    def test_links_past_the_most_of_a_page_are_counted_and_not_followed(self, simulate, tmp_path):
        web = site(page(A, "/1", "/2", "/3", "/4"), page(A + "1", "/5", "/6"))
        mine = topic(tmp_path, A, scope=Scope(max_links_per_page=2))
        done = simulate(mine, web).run()
        assert sorted(done.urls) == at("", "1", "2", "5", "6")
        assert done.crawl.counters.links_over_limit == 2
        assert done.restart().crawl.counters.links_over_limit == 2
