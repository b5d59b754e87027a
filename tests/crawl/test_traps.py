"""Traps: the bound of each kind, and that good pages are fetched."""

import json
from dataclasses import replace

import pytest

from focused.crawl.traps.trap_detector import (
    MAX_UNPRODUCTIVE_HOSTS,
    PAGES_PER_GOOD_PAGE,
    PATTERN_BUDGETS,
)
from focused.crawl.traps.trap_filter import DOUBTFUL_RELEVANCE
from focused.topic import Scope
from focused.web.page import Classification, FailureKind
from focused.web.url_patterns import UrlPatternKind
from tests.crawl.trap_web import GOOD_PAGES, KINDS, SEED, TrapWeb
from tests.support.simulated import Simulation, failed, page, site, topic
from tests.support.whale_models import WhaleClassifier

OF_GOOD_PAGES = PAGES_PER_GOOD_PAGE * GOOD_PAGES
MOST_PAGES_LOST = {
    "calendar": PATTERN_BUDGETS[UrlPatternKind.CALENDAR].unproductive,
    "dates": 20,
    "paths": PATTERN_BUDGETS[UrlPatternKind.HOST].unproductive + OF_GOOD_PAGES,
    "segments": 60,
    "facets": PATTERN_BUDGETS[UrlPatternKind.SCRIPT].unproductive + OF_GOOD_PAGES,
    "session": 30,
    "folder-session": 30,
    "soft404": PATTERN_BUDGETS[UrlPatternKind.HOST].copies + OF_GOOD_PAGES + 40,
    "loops": 8,
    "chains": PATTERN_BUDGETS[UrlPatternKind.QUERY].unproductive + 1,
    "everything": PATTERN_BUDGETS[UrlPatternKind.DIRECTORY].unproductive,
    "noise": PATTERN_BUDGETS[UrlPatternKind.HOST].unproductive + OF_GOOD_PAGES,
    "hosts": MAX_UNPRODUCTIVE_HOSTS + 20,
}
REPORTED = {
    "calendar": "trap: calendar",
    "dates": "trap: ignorable parameter",
    "paths": "trap: endless host",
    "segments": "trap: repeated segments",
    "facets": "trap: endless parameters",
    "session": "trap: session id",
    "folder-session": "trap: session id",
    "soft404": "trap: repeated page",
    "loops": "trap: redirect loop",
    "chains": "trap: endless parameters",
    "everything": "trap: endless directory",
    "noise": "trap: endless host",
    "hosts": "trap: endless hosts",
}


def lost(crawl: Simulation, web: TrapWeb) -> list[str]:
    return [url for url in crawl.urls if url not in web.good and url != SEED]


def fetched(crawl: Simulation) -> set[str]:
    return {url for url, row in crawl.rows.items() if row["outcome"] == "fetched"}


@pytest.fixture(scope="module", params=KINDS)
def trapped(request, tmp_path_factory):
    """A crawl to its end among one kind of traps, and that web."""
    web = TrapWeb(request.param)
    mine = topic(tmp_path_factory.mktemp(request.param), SEED, delay_s=0.0)
    crawl = Simulation(mine, web).run(most_steps=8_000)
    yield crawl, web
    crawl.close()


def test_a_crawl_among_traps_ends_with_every_good_page(trapped):
    crawl, web = trapped
    assert crawl.ended.startswith("frontier is empty")
    assert web.good <= fetched(crawl)


def test_the_reason_for_the_end_names_the_trap_with_most_refused_links(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, SEED, delay_s=0.0), TrapWeb("calendar")).run()
    (refused,) = [line.links for line in crawl.crawl.traps.stats.lines()]
    assert crawl.ended == (
        f"frontier is empty; {refused} links to calendar.test refused (trap: calendar)"
    )


class DoubtfulClassifier(WhaleClassifier):
    """Every page is off topic, but not surely."""

    def classify(self, page):
        return Classification(DOUBTFUL_RELEVANCE, on_topic=False)


@pytest.mark.parametrize("kind", ["paths", "everything"])
def test_a_host_of_doubtful_pages_is_not_closed(kind, simulate, tmp_path):
    mine = topic(tmp_path, SEED, delay_s=0.0)
    crawl = simulate(mine, TrapWeb(kind), classifier=DoubtfulClassifier())
    crawl.run(most_steps=4_000, pages=1_200)
    assert not crawl.ended
    assert len(fetched(crawl)) > PATTERN_BUDGETS[UrlPatternKind.HOST].unproductive + OF_GOOD_PAGES


def test_each_kind_costs_no_more_pages_than_its_bound(trapped):
    crawl, web = trapped
    (kind,) = web.kinds
    assert 2 < len(lost(crawl, web)) <= MOST_PAGES_LOST[kind]


def test_each_kind_is_reported_by_its_name_with_the_links_refused(trapped):
    crawl, web = trapped
    (kind,) = web.kinds
    lines = {line.kind: line for line in crawl.crawl.traps.stats.lines()}
    trap_line = lines[REPORTED[kind]]
    assert trap_line.site in (f"{kind}.test", f"*.{kind}.test")
    counters = crawl.crawl.counters
    dropped = counters.failures.get("trap", 0)
    at_the_door = sum(n for why, n in counters.out_of_scope.items() if why.startswith("trap: "))
    assert dropped + at_the_door == sum(line.links for line in lines.values())


def test_without_the_defence_they_have_no_end(simulate, tmp_path):
    web = TrapWeb("facets")
    mine = topic(tmp_path, SEED, delay_s=0.0, scope=Scope(traps=False))
    crawl = simulate(mine, web).run(pages=700)
    assert not crawl.ended
    assert len(lost(crawl, web)) > MOST_PAGES_LOST["facets"]


def test_what_was_learned_survives_a_restart(simulate, tmp_path):
    web = TrapWeb("calendar", "session", "soft404")
    mine = topic(tmp_path, SEED, delay_s=0.0)
    crawl = simulate(mine, web).run(pages=80).restart().run(pages=120).restart().run()
    most = sum(MOST_PAGES_LOST[kind] for kind in web.kinds)
    assert web.good <= fetched(crawl)
    assert len(lost(crawl, web)) <= most
    trap_lines = crawl.crawl.traps.stats.as_json()
    assert crawl.restart().crawl.traps.stats.as_json() == trap_lines
    late = "http://calendar.test/calendar/2026/12/24/"
    assert not crawl.crawl.enqueue_url(late, 1.0, crawl.now, parent=crawl.settled[0])


def test_a_trap_on_a_good_host_takes_its_good_pages_with_it_only_where_they_look_equal(
    simulate, tmp_path
):
    crawl = simulate(topic(tmp_path, SEED, delay_s=0.0), TrapWeb("calendar")).run()
    assert crawl.crawl.traps.refusal_reason("http://calendar.test/calendar/2031/01/01/") is not None
    assert crawl.crawl.traps.refusal_reason("http://calendar.test/whales/late") is None


A = "http://a.test/"
ENDLESS = [f"{A}{'x/' * n}page" for n in range(3, 11)]


def test_links_into_traps_have_the_first_of_each_host_and_kind_as_examples(simulate, tmp_path):
    web = site(page(A, *ENDLESS, "/fine"), page(A + "fine"))
    crawl = simulate(topic(tmp_path, A), web).run(pages=1).restart().run()
    (line,) = json.loads(json.dumps(crawl.crawl.traps.stats.as_json()))
    assert line["kind"] == "trap: repeated segments"
    assert line["links"] == len(ENDLESS)
    assert line["examples"] == ENDLESS[:3]


def pages(n: int, text: str, path: str = "item/") -> dict:
    urls = [f"{A}{path}{number}" for number in range(n)]
    texts = [text.format(chr(97 + number % 26) * (3 + number // 26)) for number in range(n)]
    bodies = [page(url, text=each, title="t") for url, each in zip(urls, texts, strict=True)]
    return site(page(A, *urls), *bodies)


def test_each_page_on_topic_allows_its_pattern_more_pages(simulate, tmp_path):
    web = pages(700, "Nothing {} here")
    for number in (100, 250, 550):
        web[f"{A}item/{number}"] = page(f"{A}item/{number}", text=f"whale {number}")
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web, policy="bfs").run(most_steps=4_000)
    assert len(fetched(crawl)) == 701


def test_a_numbered_pattern_without_any_is_closed(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), pages(700, "Nothing {} here")).run()
    assert len(fetched(crawl)) == 1 + PATTERN_BUDGETS[UrlPatternKind.NUMBERED].unproductive


def test_pages_on_topic_without_end_are_no_trap(simulate, tmp_path):
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), pages(400, "The whale {} is blue"))
    assert len(fetched(crawl.run())) == 401


def test_seeds_are_requested_wherever_they_stand(simulate, tmp_path):
    web = pages(400, "Nothing {} here")
    late = f"{A}item/399"
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web).run()
    assert late not in fetched(crawl)
    crawl.restart()
    crawl.crawl.seed([f"{A}item/1000"], crawl.now)
    crawl.run()
    assert f"{A}item/1000" in crawl.urls


def test_a_pattern_with_a_seed_gets_ten_times_the_budget(simulate, tmp_path):
    web = pages(400, "Nothing {} here")
    crawl = simulate(topic(tmp_path, A, f"{A}item/0", delay_s=0.0), web).run()
    assert len(fetched(crawl)) == 401


def test_server_failure_says_nothing_of_a_pattern(simulate, tmp_path):
    web = pages(400, "Nothing {} here")
    for number in range(150):
        url = f"{A}item/{number}"
        web[url] = [failed(url, FailureKind.SERVER_ERROR), web[url]]
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web).run(most_steps=4_000)
    assert len(fetched(crawl)) == 1 + PATTERN_BUDGETS[UrlPatternKind.NUMBERED].unproductive


def test_a_parameter_that_changes_pages_is_never_taken_for_a_session(simulate, tmp_path):
    """An item's number: most items are missing and look the same, some are there."""
    urls = [f"{A}item?id={n}&lang=en" for n in range(60)]
    found = [
        page(url, text="whale " + "abcdefghij"[n // 7] * 5 if n % 7 == 0 else "No such item")
        for n, url in enumerate(urls)
    ]
    found = [replace(each, body=each.body.replace(each.url.encode(), b"t")) for each in found]
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), site(page(A, *urls), *found)).run()
    assert all(url in crawl.urls for n, url in enumerate(urls) if n % 7 == 0)
    assert not any(line.kind == "trap: session id" for line in crawl.crawl.traps.stats.lines())
