"""A continuous crawl: it goes on after its harvest and visits its pages again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import xxhash

from focused.archive.page_history import VisitRow, page_history, visit_rows
from focused.crawl import Done
from focused.durations import HOUR_S
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.policies import Uniform
from focused.revisit.policy import RevisitInputs
from focused.revisit.source_trust import SourceTrust
from focused.topic import Budget, Revisit, Scope, Topic
from focused.web.page import Failed, FailureKind, Fetched, Outcome, Redirected
from tests.support.simulated import START, Simulation, page, topic
from tests.support.whale_models import TemperedWhaleClassifier, WhaleClassifier

Simulate = Callable[..., Simulation]
DAY_S = 86_400.0
HOME = "http://a.test/"
WHALES = " ".join(["whale blubber krill fluke"] * 10)


def revisited(
    simulate: Simulate, folder: Path, web: dict[str, Any], days: float = 20.0, **settings: Any
) -> Simulation:
    """A crawl of ``web`` from its home page that goes on for so many days."""
    revisit = Revisit(continuous=True, hours=days * 24, **{"pages_per_day": 4, **settings})
    return simulate(topic(folder, HOME, revisit=revisit), web).run(20_000)


def visits(simulation: Simulation, url: str = HOME) -> list[VisitRow]:
    return [visit for visit in visit_rows(simulation.store.tables) if visit.url == url]


def results(simulation: Simulation, url: str = HOME) -> list[str]:
    return [visit.result for visit in visits(simulation, url)]


def text_at(*versions: str, every_days: float = 5.0) -> Callable[[float], Outcome]:
    """A home page whose text is another version every few days; the last one stays."""

    def answer(now: float) -> Outcome:
        number = int((now - START) / (every_days * DAY_S))
        return page(HOME, text=versions[min(number, len(versions) - 1)])

    return answer


def after(days: float, before: Outcome, then: Outcome) -> Callable[[float], Outcome]:
    return lambda now: before if now < START + days * DAY_S else then


def test_a_crawl_visits_its_pages_again_until_its_hours_are_over(simulate, tmp_path):
    simulation = revisited(simulate, tmp_path, {HOME: page(HOME, text=WHALES)}, days=10)
    assert simulation.ended == "time budget spent"
    assert results(simulation).count("identical") > 20
    # A resumed crawl continues its clock there, also if the system's clock was set back.
    assert simulation.crawl.last_activity_at == visits(simulation)[-1].at


def test_revisits_keep_to_the_pages_per_day(simulate, tmp_path):
    simulation = revisited(
        simulate, tmp_path, {HOME: page(HOME, text=WHALES)}, days=10, pages_per_day=2
    )
    assert 18 <= len(results(simulation)) <= 22


def test_without_a_budget_a_page_is_visited_once_a_week_on_average(simulate, tmp_path):
    web = {HOME: page(HOME, text=WHALES)}
    simulation = revisited(
        simulate, tmp_path, web, days=70, pages_per_day=None, min_interval_hours=0.0
    )
    # With fewer than seven pages the least is one visit a day.
    assert 65 <= len(results(simulation)) <= 75


@pytest.mark.parametrize(("settings", "days"), [({}, 10), ({"share": 0.5}, 20)])
def test_the_mean_interval_follows_the_number_of_pages(
    simulate, tmp_path, use_revisit_policy, settings, days
):
    intervals: list[float] = []

    class Recording(Uniform):
        def __init__(self, inputs: RevisitInputs) -> None:
            intervals.append(inputs.mean_interval_s / DAY_S)
            super().__init__(inputs)

    use_revisit_policy(Recording)
    links = [f"http://a.test/{number}" for number in range(39)]
    web: dict[str, Any] = {url: page(url, text=f"{WHALES} {url}") for url in links}
    web[HOME] = page(HOME, *links, text=WHALES)
    revisit = Revisit(continuous=True, hours=240, pages_per_day=4, policy="uniform", **settings)
    subject = topic(tmp_path, HOME, revisit=revisit, scope=Scope(near_duplicates=False))
    simulate(subject, web).run(20_000)
    assert intervals[-1] == pytest.approx(days, rel=0.25), "four downloads a day of forty pages"
    assert len(intervals) < 25, "it is not computed for each page"


def test_a_changed_page_is_a_new_version_with_the_size_of_its_change(simulate, tmp_path):
    web = {HOME: text_at(WHALES, WHALES + " and the baleen of the calf in the ocean")}
    simulation = revisited(simulate, tmp_path, web)
    assert results(simulation).count("changed") == 1
    (changed,) = [visit for visit in visits(simulation) if visit.result == "changed"]
    assert changed.change is not None and 0 < changed.change < 0.5
    history = page_history(simulation.store.tables, 0)
    assert history is not None and history.versions == 2 and history.changed_at == changed.at


def test_new_links_of_a_changed_page_are_fetched(simulate, tmp_path):
    new = "http://a.test/new"
    then = page(HOME, new, text=WHALES + " new whale")
    web = {
        HOME: after(3, page(HOME, text=WHALES), then),
        new: page(new, text=WHALES + " baleen calf"),
    }
    simulation = revisited(simulate, tmp_path, web, days=10)
    assert simulation.urls.count(new) > 1  # fetched, and visited again
    assert simulation.rows[new]["on_topic"]
    assert [visit.new_links for visit in visits(simulation) if visit.result == "changed"] == [1]


def test_a_page_that_only_shows_another_date_has_not_changed(simulate, tmp_path):
    dates = [f"{WHALES} Today is 2026-11-{day:02}, 14:{day:02}" for day in range(1, 21)]
    simulation = revisited(simulate, tmp_path, {HOME: text_at(*dates, every_days=1.0)})
    assert set(results(simulation)) == {"identical", "cosmetic"}


def test_the_stored_row_is_that_of_the_latest_version(simulate, tmp_path):
    then = page(HOME, text="ships harbour engine cargo deck anchor mast", title="Ships")
    simulation = revisited(simulate, tmp_path, {HOME: after(3, page(HOME, text=WHALES), then)})
    row = simulation.rows[HOME]
    assert (row["title"], row["on_topic"]) == ("Ships", False)


def test_requests_are_conditional_and_304_confirms_the_version(simulate, tmp_path):
    simulation = revisited(simulate, tmp_path, {HOME: page(HOME, text=WHALES, etag='"one"')})
    # Some requests are probes, with an ETag of no version.
    assert set(results(simulation)) == {"not-modified", "identical"}
    assert results(simulation).count("not-modified") > results(simulation).count("identical")


@pytest.mark.parametrize(
    ("outcome", "result", "found_missing"),
    [
        (Failed(HOME, FailureKind.GONE, 404), "gone", 3),
        (Failed(HOME, FailureKind.GONE, 410), "gone", 0),
        (Redirected(HOME, 301, "http://a.test/moved"), "moved", 0),
        (Redirected(HOME, 308, "http://a.test/moved"), "moved", 0),
    ],
)
def test_a_page_that_left_is_found_gone(simulate, tmp_path, outcome, result, found_missing):
    web = {
        HOME: after(3, page(HOME, text=WHALES), outcome),
        "http://a.test/moved": page("http://a.test/moved", text=WHALES + " baleen"),
    }
    simulation = revisited(simulate, tmp_path, web, days=30)
    assert ("http://a.test/moved" in simulation.urls) == isinstance(outcome, Redirected)
    found = results(simulation)
    assert found.count("missing") == found_missing
    assert found[found.index(result) - found_missing :].count(result) >= 1
    history = page_history(simulation.store.tables, 0)
    assert history is not None and history.gone_at is not None


def test_a_page_that_stays_gone_is_visited_less_and_less_often(simulate, tmp_path):
    web = {HOME: after(3, page(HOME, text=WHALES), Failed(HOME, FailureKind.GONE, status=410))}
    found = results(revisited(simulate, tmp_path, web, days=120))
    assert 5 <= found.count("gone") <= 12


@pytest.mark.parametrize("status", [302, 303, 307])
def test_a_page_under_a_lasting_temporary_redirect_keeps_its_url(simulate, tmp_path, status):
    target = "http://a.test/moved"
    fine = page(HOME, text=WHALES)
    elsewhere = Redirected(HOME, status, target)
    web = {
        HOME: lambda now: elsewhere if 3 < (now - START) / DAY_S < 60 else fine,
        target: page(target, text=WHALES + " baleen"),
    }
    simulation = revisited(simulate, tmp_path, web, days=120)
    found = results(simulation)
    assert 3 <= found.count("redirected") <= 8, "it is asked less and less often"
    assert not {"moved", "missing", "gone", "reappeared", "changed"} & set(found)
    assert found[-1] == "identical"
    assert target in simulation.urls
    history = page_history(simulation.store.tables, 0)
    assert history is not None and history.gone_at is None


def test_a_page_that_reappears_is_found(simulate, tmp_path):
    gone = Failed(HOME, FailureKind.GONE, 410)
    fine = page(HOME, text=WHALES)
    web = {HOME: lambda now: gone if 3 < (now - START) / DAY_S < 6 else fine}
    simulation = revisited(simulate, tmp_path, web, days=60, max_interval_days=5.0)
    assert "reappeared" in results(simulation)
    history = page_history(simulation.store.tables, 0)
    assert history is not None and history.gone_at is None


SORRY = " ".join(f"sorry{word}" for word in "abcdefghijkl")


class SoftHost(dict[str, Any]):
    """A web whose only host answers requests for missing paths with a page."""

    def get(self, url: str, default: Any = None) -> Any:
        if url in self or url.endswith("robots.txt"):
            return super().get(url, default)
        return page(url, text=SORRY, title="Welcome")


def missing_paths(simulation: Simulation) -> list[float]:
    """When paths that cannot exist were requested, in days since the start."""
    return [(at - START) / DAY_S for at, url in simulation.asked if "/focused0" in url]


def test_a_page_like_the_answer_to_missing_paths_is_a_soft_404(simulate, tmp_path):
    later = "http://a.test/later"
    gone = page(HOME, text=SORRY, title="Welcome")
    web = SoftHost(
        {
            HOME: after(3, page(HOME, later, text=WHALES), gone),
            later: page(later, text=WHALES + " baleen"),
        }
    )
    simulation = revisited(simulate, tmp_path, web, days=30)
    assert "soft-404" in results(simulation)
    assert "changed" not in results(simulation)
    assert simulation.rows[HOME]["title"] == HOME, "the last version that was there is kept"


def test_a_redirect_to_where_missing_paths_lead_is_a_soft_404(simulate, tmp_path):
    target = "http://a.test/search"

    class Redirecting(SoftHost):
        def get(self, url: str, default: Any = None) -> Any:
            is_known = url in self or url.endswith("robots.txt")
            return super().get(url, default) if is_known else Redirected(url, 302, target)

    moved = Redirected(HOME, 302, target)
    web = Redirecting({HOME: after(3, page(HOME, text=WHALES), moved), target: page(target)})
    simulation = revisited(simulate, tmp_path, web, days=30)
    assert "soft-404" in results(simulation)
    assert target not in simulation.urls


def test_a_host_is_asked_for_a_missing_path_before_the_first_revisit_and_every_90_days(
    simulate, tmp_path
):
    web = SoftHost({HOME: page(HOME, text=WHALES)})
    simulation = revisited(simulate, tmp_path, web, days=200, pages_per_day=1)
    first, second, third = missing_paths(simulation)
    assert first < simulation.times(HOME)[1] / DAY_S, "before the first revisit"
    assert second - first == pytest.approx(90, abs=3) == third - second
    assert list(simulation.rows) == [HOME], "it has no row"
    assert simulation.crawl.counters.of_features["missing_pages_requested"] == 3
    assert len(simulation.urls) <= 202, "it counts as a download"


def test_a_missing_path_that_robots_txt_forbids_is_not_requested(simulate, tmp_path):
    robots = "http://a.test/robots.txt"
    rules = Fetched(robots, 200, {}, b"User-agent: *\nDisallow: /focused\n")
    web = SoftHost({HOME: page(HOME, text=WHALES), robots: rules})
    simulation = revisited(simulate, tmp_path, web, days=10)
    assert not missing_paths(simulation)
    assert "identical" in results(simulation)


def test_a_request_for_a_missing_path_is_repeated_after_a_crash(simulate, tmp_path):
    revisit = Revisit(continuous=True, hours=240, pages_per_day=4)
    web = SoftHost({HOME: page(HOME, text=WHALES)})
    simulation = simulate(topic(tmp_path, HOME, revisit=revisit), web)
    # A commit follows each step: of the page, its robots.txt, and the missing path.
    while not missing_paths(simulation):
        simulation.step()
    steps = len(simulation.asked) - 1
    simulation.close()
    again = simulate(topic(tmp_path / "again", HOME, revisit=revisit), web)
    while len(again.asked) < steps:
        again.step()
    again.crash_at_commit(2)
    assert len(missing_paths(again)) == 1, "its answer was lost"
    again.run(20_000)
    assert len(missing_paths(again)) == 2
    assert set(results(again)) == {"identical"}


def test_a_host_that_fails_for_missing_paths_is_visited_all_the_same(simulate, tmp_path):
    class Failing(SoftHost):
        def get(self, url: str, default: Any = None) -> Any:
            is_known = url in self or url.endswith("robots.txt")
            failed = Failed(url, FailureKind.SERVER_ERROR, 500)
            return super().get(url, default) if is_known else failed

    simulation = revisited(
        simulate, tmp_path, Failing({HOME: page(HOME, text=WHALES)}), days=20, pages_per_day=4
    )
    assert 10 <= len(missing_paths(simulation)) <= 21, "asked again after a day"
    assert results(simulation).count("identical") >= 40


def test_a_continuous_crawl_takes_up_the_pages_of_an_earlier_one(simulate, tmp_path):
    simulation = simulate(topic(tmp_path, HOME), {HOME: page(HOME, text=WHALES)}).run()
    revisit = Revisit(continuous=True, hours=240, pages_per_day=4)
    simulation.restart(DAY_S, revisit=revisit).run(20_000)
    assert results(simulation)[0] == "unknown"
    history = page_history(simulation.store.tables, 0)
    assert history is not None
    assert (history.versions, history.visits) == (1, len(results(simulation)) - 1)
    assert set(results(simulation)[1:]) == {"identical"}


def test_a_page_that_robots_txt_forbids_by_now_is_not_requested(simulate, tmp_path):
    robots = "http://a.test/robots.txt"
    allowed = Fetched(robots, 200, {}, b"")
    forbidden = Fetched(robots, 200, {}, b"User-agent: *\nDisallow: /\n")
    web = {HOME: page(HOME, text=WHALES), robots: after(3, allowed, forbidden)}
    simulation = revisited(simulate, tmp_path, web, days=15)
    assert max(simulation.times(HOME)) < 4.5 * DAY_S
    assert "excluded" in results(simulation)


def test_links_compete_with_revisits_for_the_downloads_after_the_harvest(simulate, tmp_path):
    links = [f"http://a.test/{number}" for number in range(30)]
    web: dict[str, Any] = {HOME: page(HOME, *links, text=WHALES)}
    web |= {url: page(url, text=f"{WHALES} {url[-2:]}") for url in links}
    revisit = Revisit(continuous=True, hours=240, pages_per_day=4)
    subject = topic(tmp_path, HOME, revisit=revisit, budget=Budget(pages=10))
    simulation = simulate(subject, web).run(20_000)
    fetched = [url for url in links if url in simulation.urls]
    assert len(fetched) > 10, "links are fetched after the harvest's budget is spent, too"
    assert len(simulation.urls) <= 10 + 42


def test_tempered_relevances_leave_the_order_of_visits_as_it_was(simulate, tmp_path):
    """Pages that change, of both kinds, compete with each other and with new links."""
    urls = [f"http://a.test/{number}" for number in range(12)]
    web: dict[str, Any] = {HOME: page(HOME, *urls, text=WHALES)}
    for number, url in enumerate(urls):
        kind = WHALES if number % 3 == 0 else "trade ledger freight " * 10
        versions = [page(url, text=f"{kind} {number} {version}" * 2) for version in range(20)]
        web[url] = lambda now, of=versions: of[min(int((now - START) / (2 * DAY_S)), 19)]
    revisit = Revisit(continuous=True, hours=20 * 24, pages_per_day=4)
    plain, tempered = (
        simulate(topic(tmp_path / name, HOME, revisit=revisit), web, classifier=classifier).run(
            20_000
        )
        for name, classifier in (
            ("plain", WhaleClassifier()),
            ("tempered", TemperedWhaleClassifier()),
        )
    )
    assert tempered.urls == plain.urls
    assert len(plain.urls) > 60
    assert {row["relevance"] for row in tempered.rows.values()} == {0.3, 0.6}


def test_the_bytes_of_new_pages_count_in_the_budget_after_the_harvest(simulate, tmp_path):
    links = [f"http://a.test/{number}" for number in range(60)]
    web: dict[str, Any] = {HOME: page(HOME, *links, text=WHALES)}
    web |= {url: page(url, text=f"{url} {WHALES * 10}") for url in links}
    size = len(web[links[0]].body)
    revisit = Revisit(continuous=True, hours=240, pages_per_day=1_000, bytes_per_day=2 * size)
    subject = topic(tmp_path, HOME, revisit=revisit, budget=Budget(pages=10))
    simulation = simulate(subject, web).run(20_000)
    assert len(simulation.urls) <= 10 + 10 * 2 + 2


def sitemap(url: str, lastmod: dict[str, str], **headers: str) -> Fetched:
    entries = "".join(
        f"<url><loc>{page}</loc><lastmod>{at}</lastmod></url>" for page, at in lastmod.items()
    )
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    return Fetched(url, 200, {"content-type": "application/xml", **headers}, body.encode())


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def lively_web(
    folder: Path,
    url: str,
    listed: Callable[[float], Outcome],
    pages: Sequence[str],
    lively: Sequence[str],
) -> tuple[Topic, dict[str, Any]]:
    """A topic and a web of pages in a list at ``url``; the lively ones change every four days."""

    def lively_page(page_url: str) -> Callable[[float], Outcome]:
        return lambda now: page(page_url, text=f"{WHALES} w{int(now / DAY_S / 4)} {page_url}")

    web: dict[str, Any] = {each: page(each, text=f"{WHALES} {each}") for each in pages}
    web |= {url: listed} | {each: lively_page(each) for each in lively}
    settings = Revisit(continuous=True, hours=150 * 24, pages_per_day=4, by_relevance=False)
    scope = Scope(near_duplicates=False, mirrors=False)
    return topic(folder, url, revisit=settings, scope=scope), web


def late_visits(simulation: Simulation, lively: Sequence[str]) -> list[bool]:
    """Whether each visit to a lively page after sixty days found a change."""
    return [
        visit.result == "changed"
        for visit in visit_rows(simulation.store.tables)
        if visit.at > START + 60 * DAY_S and visit.url in lively
    ]


@pytest.mark.parametrize(("is_right", "clock_s"), [(True, 0), (True, HOUR_S), (False, 0)])
def test_pages_are_visited_after_a_right_sitemap_announces_them(
    simulate, tmp_path, is_right, clock_s
):
    """Five of forty pages change every four days; a wrong sitemap says nothing of it.

    Where the host's clock is an hour ahead, its responses take up to two minutes.
    """
    url = "http://a.test/sitemap.xml"
    pages = [f"http://a.test/{number}" for number in range(40)]
    lively = pages[:5]

    def listed(now: float) -> Outcome:
        times = dict.fromkeys(pages, iso(START - DAY_S))
        if is_right:
            times |= dict.fromkeys(lively, iso(now - now % (4 * DAY_S) + clock_s))
        sent_at = now - 17 * (now // HOUR_S % 7) if clock_s else now
        return sitemap(url, times, date=http_date(sent_at + clock_s))

    subject, web = lively_web(tmp_path, url, listed, pages, lively)
    simulation = simulate(subject, web).run(20_000)
    late = late_visits(simulation, lively)
    assert sum(late) > 80  # 22 changes each
    assert (sum(late) / len(late) > 0.8) == is_right
    if is_right:
        source = xxhash.xxh32_intdigest(b"sitemap a.test")
        record = TableRecords(simulation.store.tables).get("trust", source)
        assert record is not None
        assert SourceTrust.unpack(record).unchanged < 1, "pages were announced without a change"


def test_files_are_visited_after_their_directory_listing_announces_them(simulate, tmp_path):
    """Five of forty files change every four days; the listing shows it by their dates alone."""
    url = "http://a.test/pub/"
    files = [f"{url}{number}.html" for number in range(40)]
    lively = files[:5]

    def listed(now: float) -> Outcome:
        rows = [
            f'<a href="{each.removeprefix(url)}">file</a>  '
            + datetime.fromtimestamp(
                now - now % (4 * DAY_S) if each in lively else START - DAY_S, UTC
            ).strftime("%d-%b-%Y %H:%M")
            for each in files
        ]
        body = "<title>Index of /pub/</title><h1>Index of /pub/</h1><pre>" + "\n".join(rows)
        return Fetched(url, 200, {"content-type": "text/html"}, body.encode())

    subject, web = lively_web(tmp_path, url, listed, files, lively)
    late = late_visits(simulate(subject, web).run(20_000), lively)
    assert sum(late) > 80  # 22 changes each
    assert sum(late) / len(late) > 0.8


def test_a_sitemap_writes_only_the_pages_whose_lastmod_changed(simulate, tmp_path, writes_to):
    url = "http://a.test/sitemap.xml"
    pages = [f"http://a.test/{number}" for number in range(100)]

    def listed(now: float) -> Outcome:
        times = {page_url: iso(START - DAY_S) for page_url in pages}
        times[pages[0]] = iso(now - now % DAY_S)  # changes daily
        return sitemap(url, times)

    web: dict[str, Any] = {each: page(each, text=f"{WHALES} {each}") for each in pages}
    web[pages[0]] = lambda now: page(pages[0], text=f"{WHALES} {'new ' * int(now / DAY_S % 50)}")
    web[url] = listed
    settings = Revisit(continuous=True, hours=30 * 24, pages_per_day=20)
    scope = Scope(near_duplicates=False)
    simulation = simulate(topic(tmp_path, url, revisit=settings, scope=scope), web)
    written = writes_to(simulation.store.tables)
    of_sitemap: list[int] = []
    """Pages written, by response."""
    while True:
        asked = len(simulation.asked)
        written.clear()
        if isinstance(simulation.step(), Done):
            break
        if simulation.asked[asked:] and simulation.asked[-1][1] == url:
            of_sitemap.append(sum(table == "page_histories" for table, _ in written))
    assert len(of_sitemap) > 10
    assert sorted(of_sitemap)[-2] <= 3, "all pages are written once"


def blog_page(url: str, feed: str, text: str = WHALES) -> Fetched:
    link = f'<link rel="alternate" type="application/rss+xml" href="{feed}">'
    body = f"<!doctype html><head><title>{url}</title>{link}</head><p>{text}".encode()
    return Fetched(url, 200, {"content-type": "text/html"}, body)


def rss(url: str, items: dict[str, str]) -> Fetched:
    entries = "".join(
        f"<item><title>whale</title><link>{page}</link><pubDate>{at}</pubDate></item>"
        for page, at in items.items()
    )
    body = f"<rss><channel><title>whales</title>{entries}</channel></rss>"
    return Fetched(url, 200, {"content-type": "application/rss+xml"}, body.encode())


def test_new_pages_are_found_by_the_feed_that_a_page_names(simulate, tmp_path):
    feed, new = "http://a.test/feed", "http://a.test/new"
    posted_at = START + 5 * DAY_S

    def listed(now: float) -> Outcome:
        items = {HOME: http_date(START)}
        return rss(feed, items | ({new: http_date(posted_at)} if now >= posted_at else {}))

    web = {HOME: blog_page(HOME, feed), feed: listed, new: page(new, text=WHALES + " calf")}
    simulation = revisited(simulate, tmp_path, web, days=15)
    assert simulation.rows[feed]["outcome"] == "feed"
    found_after_days = simulation.times(new)[0] / DAY_S - 5
    assert 0 < found_after_days < 2


def test_a_page_that_its_hosts_feed_says_changed_is_visited_first(simulate, tmp_path):
    feed = "http://a.test/feed"
    pages = [f"http://a.test/{number}" for number in range(60)]
    changed, change_at = pages[17], START + 12.5 * DAY_S
    web: dict[str, Any] = {url: page(url, text=f"{WHALES} {url}") for url in pages}
    web[HOME] = blog_page(HOME, feed)

    def listed(now: float) -> Outcome:
        items = {url: http_date(START - DAY_S) for url in pages}
        return rss(feed, items | ({changed: http_date(change_at)} if now >= change_at else {}))

    web[feed] = listed
    web[changed] = lambda now: page(
        changed, text=WHALES + (" krill" if now < change_at else " cod calf ocean")
    )
    simulation = revisited(simulate, tmp_path, web, days=30, pages_per_day=5)
    read_at = next(at for at in simulation.times(feed) if at > 12.5 * DAY_S)
    visited_at = next(at for at in simulation.times(changed) if at > read_at)
    # A visit of each page takes twelve days.
    assert (visited_at - read_at) / DAY_S < 1


def test_few_feeds_are_fetched_per_host(simulate, tmp_path):
    pages = [f"http://a.test/{number}" for number in range(10)]
    web: dict[str, Any] = {HOME: page(HOME, *pages, text=WHALES)}
    web |= {url: blog_page(url, f"{url}/feed", f"{WHALES} {url}") for url in pages}
    simulation = revisited(simulate, tmp_path, web, days=2)
    assert len({url for url in simulation.urls if url.endswith("/feed")}) == 3


@pytest.mark.parametrize(
    ("feed", "text"),
    [("http://other.test/feed", WHALES), ("http://a.test/feed", "ships harbour cargo anchor")],
    ids=["of another host", "of an irrelevant page"],
)
def test_a_feed_that_is_not_fetched(simulate, tmp_path, feed, text):
    simulation = revisited(simulate, tmp_path, {HOME: blog_page(HOME, feed, text)}, days=3)
    assert feed not in simulation.urls


def test_a_page_that_is_linked_to_before_it_exists_is_found_later(simulate, tmp_path):
    later = "http://a.test/whale"
    web: dict[str, Any] = {
        HOME: page(HOME, later, text=WHALES),
        later: after(5, Failed(later, FailureKind.GONE, 404), page(later, text=WHALES + " calf")),
    }
    simulation = revisited(simulate, tmp_path, web, days=40)
    assert "reappeared" in results(simulation, later)
    assert simulation.rows[later]["outcome"] == "fetched"


def test_a_page_is_visited_after_the_longest_interval_whatever_links_wait(simulate, tmp_path):
    links = [f"http://a.test/whale{number}" for number in range(400)]
    web: dict[str, Any] = {HOME: page(HOME, *links, text=WHALES)}
    own = ("".join(f" whale w{number}x{word}" for word in range(60)) for number in range(400))
    web |= {url: page(url, text=text) for url, text in zip(links, own, strict=True)}
    settings = {"pages_per_day": 10, "max_interval_days": 10.0, "host_weights": {"a.test": 0.01}}
    subject = topic(tmp_path, HOME, revisit=Revisit(continuous=True, hours=30 * 24, **settings))
    scope = Scope(traps=False, near_duplicates=False, mirrors=False)
    subject = replace(subject, budget=Budget(pages=1), scope=scope)
    simulation = simulate(subject, web).run(20_000)
    # Links are left for forty days.
    gaps = [after - before for before, after in pairwise(simulation.times(HOME))]
    assert len(gaps) == 2
    assert all(10 * DAY_S <= gap < 12 * DAY_S for gap in gaps)


def http_date(at: float) -> str:
    return formatdate(at, usegmt=True)


def test_a_host_with_wrong_validators_is_logged_and_its_changes_are_found(
    simulate, tmp_path, caplog
):
    """The page changes daily, and is visited four times a day."""
    caplog.set_level("INFO", "focused.crawl.revisits")

    def answer(now: float) -> Outcome:
        return page(HOME, text=f"{WHALES} krill{int((now - START) / DAY_S)}", etag='"one"')

    simulation = revisited(simulate, tmp_path, {HOME: answer}, days=30)
    assert results(simulation)[-20:].count("changed") >= 4
    assert caplog.messages == [
        "a.test sends a wrong etag header; it is not sent back for some months"
    ]


def test_304_to_every_request_is_found_out(simulate, tmp_path):
    def answer(now: float) -> Outcome:
        words = " ".join(f"krill{int((now - START) / DAY_S)}x{word}" for word in range(10))
        return page(HOME, text=f"{WHALES} {words}", etag=f'"{int((now - START) / DAY_S)}"')

    subject = topic(tmp_path, HOME, revisit=Revisit(continuous=True, hours=960, pages_per_day=2))
    simulation = simulate(subject, {HOME: answer}, confirms_everything=True).run(20_000)
    assert "failed" in results(simulation), "a probe is answered with 304"
    assert results(simulation)[-20:].count("changed") >= 8


ORIGINAL, COPY = "http://a.test/original", "http://a.test/copy"


def test_a_duplicate_that_becomes_a_page_of_its_own_is_harvested(simulate, tmp_path):
    own = page(COPY, "http://a.test/new", text=f"{WHALES} baleen calf of the copy")
    web = {
        HOME: page(HOME, ORIGINAL, COPY, text=WHALES),
        ORIGINAL: page(ORIGINAL, text=f"{WHALES} original", title="Whales"),
        COPY: after(3, page(COPY, text=f"{WHALES} original", title="Whales"), own),
        "http://a.test/new": page("http://a.test/new", text=f"{WHALES} new page"),
    }
    simulation = revisited(simulate, tmp_path, web, days=100)
    assert "changed" in results(simulation, COPY)
    row = simulation.rows[COPY]
    assert row["duplicate_of"] is None and row["on_topic"]
    assert simulation.rows["http://a.test/new"]["on_topic"], "its links are followed"
    counters = simulation.crawl.counters
    assert (counters.duplicates, counters.on_topic) == (0, len(web))


def test_a_duplicate_that_changes_with_its_original_stays_one(simulate, tmp_path):
    def both(url: str) -> Callable[[float], Outcome]:
        one, two = (page(url, text=f"{WHALES} {each}", title="Whales") for each in ("one", "two"))
        return after(3, one, two)

    web = {HOME: page(HOME, ORIGINAL, COPY, text=WHALES), ORIGINAL: both(ORIGINAL)}
    simulation = revisited(simulate, tmp_path, web | {COPY: both(COPY)}, days=100)
    assert "changed" in results(simulation, COPY)
    assert simulation.rows[COPY]["duplicate_of"] == ORIGINAL
    assert not simulation.rows[COPY]["on_topic"]


@pytest.mark.parametrize("headers", [{}, {"etag": '"one"'}], ids=["plain", "conditional"])
def test_a_duplicate_takes_the_place_of_an_original_that_vanished(simulate, tmp_path, headers):
    same = {"text": f"{WHALES} original", "title": "Whales", **headers}
    web = {
        HOME: page(HOME, ORIGINAL, COPY, text=WHALES),
        ORIGINAL: after(3, page(ORIGINAL, **same), Failed(ORIGINAL, FailureKind.GONE, 410)),
        COPY: page(COPY, "http://a.test/new", **same),
        "http://a.test/new": page("http://a.test/new", text=f"{WHALES} new page"),
    }
    simulation = revisited(simulate, tmp_path, web, days=100)
    row = simulation.rows[COPY]
    assert row["duplicate_of"] is None and row["on_topic"]
    assert simulation.rows["http://a.test/new"]["on_topic"], "its links are followed"
    assert simulation.crawl.counters.duplicates == 0
    assert "changed" not in results(simulation, COPY)
    history = page_history(simulation.store.tables, row["seq"])
    assert history is not None and history.versions == 1


def test_a_page_that_moved_counts_at_its_new_place(simulate, tmp_path):
    target = "http://a.test/moved"
    same = {"text": f"{WHALES} original", "title": "Whales"}
    web = {
        HOME: page(HOME, ORIGINAL, text=WHALES),
        ORIGINAL: after(3, page(ORIGINAL, **same), Redirected(ORIGINAL, 301, target)),
        target: page(target, **same),
    }
    simulation = revisited(simulate, tmp_path, web, days=100)
    assert simulation.rows[target]["duplicate_of"] is None
    assert simulation.rows[target]["on_topic"]


def test_an_original_that_came_back_keeps_its_place(simulate, tmp_path):
    late = "http://a.test/late"
    same = {"text": f"{WHALES} original", "title": "Whales"}
    fine, gone = page(ORIGINAL, **same), Failed(ORIGINAL, FailureKind.GONE, 410)
    links_to_late = page(HOME, ORIGINAL, late, text=f"{WHALES} and more of them")
    web = {
        HOME: after(60, page(HOME, ORIGINAL, text=WHALES), links_to_late),
        ORIGINAL: lambda now: gone if 3 < (now - START) / DAY_S < 20 else fine,
        late: page(late, **same),
    }
    simulation = revisited(simulate, tmp_path, web, days=100)
    assert {"gone", "reappeared"} <= set(results(simulation, ORIGINAL))
    assert simulation.rows[late]["duplicate_of"] == ORIGINAL


def test_many_duplicates_of_one_page_take_few_visits_from_others(simulate, tmp_path):
    """Of 210 pages two hundred are an error page with status 200."""
    copies = [f"http://a.test/copy/{number}" for number in range(200)]
    pages = [f"http://a.test/{number}" for number in range(9)]
    web: dict[str, Any] = {each: page(each, text=f"{WHALES} lost", title="Lost") for each in copies}
    web |= {each: page(each, text=f"{WHALES} {each}") for each in pages}
    web[HOME] = page(HOME, *pages, *copies, text=WHALES)
    revisit = Revisit(continuous=True, hours=200 * 24, pages_per_day=4, by_relevance=False)
    scope = Scope(traps=False, near_duplicates=False, mirrors=False)
    simulation = simulate(topic(tmp_path, HOME, revisit=revisit, scope=scope), web).run(20_000)
    made = visit_rows(simulation.store.tables)
    visited = [visit.url for visit in made]
    assert simulation.crawl.counters.duplicates == 199
    assert 0 < sum(url in copies[1:] for url in visited) < 0.02 * len(visited)
