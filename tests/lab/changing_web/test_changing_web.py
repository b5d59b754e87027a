"""Specification of changing webs: pages that change, appear and vanish by change histories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.durations import DAY_S, WEEK_S, YEAR_S
from focused.errors import ConfigurationError
from focused.web.feeds import parse_feed
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from focused_lab.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    exists_at,
    read_change_history,
)
from focused_lab.changing_web.assigned_changes import assign_histories, directory_pages
from focused_lab.changing_web.change_options import ChangeOptions
from focused_lab.changing_web.changing_replay import write_truth
from focused_lab.changing_web.changing_web import ChangingWeb
from focused_lab.recorded_web.recorded_web import RecordedResponse, RecordedWeb
from tests.support.recorded_web import html, page, record_web, redirect

HOST = "https://food.example"
HOME = f"{HOST}/"
NAMES = ("bread", "cheese", "milk", "wine")
START = ChangeOptions().start
END = ChangeOptions().period.end
QUIET = ChangeOptions(sitemaps=0.0, feeds=0.0, noise=0.0)
LOUD = ChangeOptions(sitemaps=1.0, feeds=1.0, noise=0.0, announced=1.0)


def at_day(day: float) -> float:
    return START + day * DAY_S


def record(folder: Path) -> RecordedWeb:
    """A home page that links to all pages, and each page to the others."""
    text = "Some words about food that people like to eat every day. " * 3
    links = [f"/{name}.html" for name in NAMES]
    pages = [page(HOME, html("home", *links, text=text))]
    for name in NAMES:
        body = html(name, "/", *links, text=f"{name} {text}")
        pages.append(page(f"{HOST}/{name}.html", body))
    return RecordedWeb.open(record_web(folder, *pages, redirect(f"{HOST}/old", "/")))


CREATED = Change(ChangeKind.CREATED, -2 * YEAR_S, 100)


def histories(*changes: Change) -> list[SiteChanges]:
    """The page ``m`` changes; four others exist all the time. The last event is at the end."""
    last = Change(ChangeKind.CHANGED, END - START, 1, 1)
    others = [PageChanges(name, (CREATED, last)) for name in ("a", "b", "c", "d")]
    return [SiteChanges("food", (*others, PageChanges("m", changes)))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path / "web").close()
    return tmp_path / "web"


@pytest.fixture
def recorded(folder: Path) -> Iterator[RecordedWeb]:
    with RecordedWeb.open(folder) as web:
        yield web


def page_of(changing: ChangingWeb, kind: ChangeKind) -> tuple[str, float]:
    """The first page with an event of its own of this kind, and the event's time."""
    for url in changing.page_urls:
        for change in changing.changes_of(url):
            if change.kind is kind and url != HOME:
                return url, change.at
    raise AssertionError(f"nothing is {kind}")


def read(response: RecordedResponse | None) -> Page:
    assert response is not None
    page = parse_page(Fetched(response.url, 200, response.headers, response.body))
    assert isinstance(page, Page)
    return page


def linked_from(changing: ChangingWeb, url: str, time: float) -> set[str]:
    return {
        source
        for source in changing.page_urls
        if changing.exists_at(source, time)
        and url in {link.url for link in read(changing.response_at(source, time)).links}
    }


def test_before_its_first_change_a_page_is_as_it_was_recorded(recorded):
    changing = ChangingWeb(recorded, histories(CREATED), QUIET)
    for url in changing.page_urls:
        response, original = changing.response_at(url, START), recorded.get(url)
        assert response is not None
        assert original is not None
        assert response.body == original.body


def test_a_page_changes_at_the_times_of_its_history(recorded):
    changes = (CREATED, *(Change(ChangeKind.CHANGED, day * DAY_S, 30, 10) for day in (50, 90)))
    changing = ChangingWeb(recorded, histories(*changes), QUIET)
    url = next(url for url in changing.page_urls if len(changing.changes_of(url)) == 2)
    first, second = (change.at for change in changing.changes_of(url))
    assert second - first == 40 * DAY_S
    bodies = [changing.content_at(url, time) for time in (START, first - 1, first, second, END)]
    assert bodies[0] == bodies[1] != bodies[2] != bodies[3] == bodies[4]
    assert len(set(bodies)) == 3


def test_equal_arguments_give_equal_responses(folder):
    def responses() -> list[RecordedResponse | None]:
        with RecordedWeb.open(folder) as web:
            changing = ChangingWeb(web, histories(CREATED, Change(ChangeKind.CHANGED, 9.0)), LOUD)
            return [changing.response_at(url, at_day(200)) for url in changing.page_urls]

    assert responses() == responses()


def test_a_created_page_is_missing_before_and_linked_from_hubs_after(recorded):
    changing = ChangingWeb(recorded, histories(Change(ChangeKind.CREATED, 100 * DAY_S, 50)), QUIET)
    url, created_at = page_of(changing, ChangeKind.CREATED)
    before, after = (changing.response_at(url, created_at + s) for s in (-1.0, 0.0))
    assert before is not None
    assert before.status in (404, 410)
    assert after is not None
    assert after.status == 200
    assert linked_from(changing, url, created_at - 1) == set()
    hubs = linked_from(changing, url, created_at)
    assert HOME in hubs
    assert len(hubs) == 2


def test_a_link_to_a_redirect_to_a_new_page_appears_with_the_page(tmp_path):
    pages = (
        page(HOME, html("home", "/moved", text="Some words about food")),
        redirect(f"{HOST}/moved", "/new.html"),
        page(f"{HOST}/new.html", html("new", text="New food")),
    )
    created = Change(ChangeKind.CREATED, END - START, 50)
    history = SiteChanges("x", (PageChanges("a", (CREATED,)), PageChanges("m", (created,))))
    with RecordedWeb.open(record_web(tmp_path / "web", *pages)) as web:
        changing = ChangingWeb(web, [history], QUIET)
        url, created_at = page_of(changing, ChangeKind.CREATED)
        assert url == f"{HOST}/new.html"
        assert linked_from(changing, f"{HOST}/moved", created_at - 1) == set()
        assert linked_from(changing, f"{HOST}/moved", created_at) == {HOME}


def test_a_new_link_is_a_change_of_the_hub(recorded):
    changing = ChangingWeb(recorded, histories(Change(ChangeKind.CREATED, 100 * DAY_S, 50)), QUIET)
    url, created_at = page_of(changing, ChangeKind.CREATED)
    assert Change(ChangeKind.CHANGED, created_at, 1, 0) in changing.changes_of(HOME)
    assert changing.version_at(HOME, created_at) == changing.version_at(HOME, created_at - 1) + 1
    assert url.rpartition("/")[2] not in read(changing.response_at(HOME, created_at - 1)).text


def test_a_deleted_page_is_gone(recorded):
    gone = (CREATED, Change(ChangeKind.DELETED, 100 * DAY_S, 0, 50))
    changing = ChangingWeb(recorded, histories(*gone), QUIET)
    url, deleted_at = page_of(changing, ChangeKind.DELETED)
    statuses = [changing.response_at(url, deleted_at + s).status for s in (-1.0, 0.0, DAY_S)]  # type: ignore[union-attr]
    assert statuses[0] == 200
    assert statuses[1] == statuses[2] == changing.behaviour("food.example").gone_status


def test_home_pages_and_directories_always_exist(recorded):
    short = (Change(ChangeKind.CREATED, 10 * DAY_S, 9), Change(ChangeKind.DELETED, 20 * DAY_S))
    pages = tuple(PageChanges(str(number), short) for number in range(5))
    end = PageChanges("z", (CREATED, Change(ChangeKind.CHANGED, END - START)))
    changing = ChangingWeb(recorded, [SiteChanges("food", (*pages, end))], QUIET)
    assert all(changing.exists_at(HOME, at_day(day)) for day in range(0, 366, 5))
    urls = ["http://a/", "http://a/b/", "http://a/b/c.html", "http://a/d/", "http://a/e/index.html"]
    assert directory_pages(urls) == {"http://a/", "http://a/b/"}


def test_other_responses_stay_as_recorded(recorded):
    changing = ChangingWeb(recorded, histories(CREATED), QUIET)
    assert changing.response_at(f"{HOST}/old", START) == recorded.get(f"{HOST}/old")
    assert changing.response_at(f"{HOST}/nowhere", START) is None
    assert changing.response_at("https://other.example/", START) is None


@pytest.mark.parametrize("seed", range(12))
def test_validators_change_with_the_version_and_only_then(recorded, seed):
    options = ChangeOptions(seed=seed, sitemaps=0.0, feeds=0.0, noise=0.5)
    changes = (CREATED, Change(ChangeKind.CHANGED, 100 * DAY_S, 30, 10))
    changing = ChangingWeb(recorded, histories(*changes), options)
    url = next(url for url in changing.page_urls if changing.version_at(url, at_day(150)) == 1)
    changed_at = changing.changes_of(url)[0].at
    first, same, other = (
        {k: v for k, v in changing.response_at(url, time).headers.items() if k != "content-type"}  # type: ignore[union-attr]
        for time in (START, changed_at - 1, changed_at)
    )
    assert first == same
    kind = changing.behaviour("food.example").validators
    assert (
        set(first)
        == {
            "strong": {"etag", "last-modified"},
            "weak": {"etag", "last-modified"},
            "date": {"last-modified"},
            "none": set(),
        }[kind]
    )
    assert all(first[name] != other[name] for name in first)
    assert kind != "strong" or not changing.behaviour("food.example").has_noise


def test_noise_changes_the_bytes_but_not_the_version(recorded):
    changing = ChangingWeb(recorded, histories(CREATED), ChangeOptions(noise=1.0))
    one, other = (changing.response_at(HOME, at_day(day)) for day in (10, 11))
    assert one is not None
    assert other is not None
    assert one.body != other.body
    assert changing.version_at(HOME, at_day(10)) == changing.version_at(HOME, at_day(11))


def test_sitemap_and_feed_announce_existing_pages_and_their_changes(recorded):
    changing = ChangingWeb(recorded, histories(Change(ChangeKind.CREATED, 100 * DAY_S, 50)), LOUD)
    url, created_at = page_of(changing, ChangeKind.CREATED)

    def entries(path: str, time: float) -> set[str]:
        response = changing.response_at(HOST + path, time)
        assert response is not None
        page = parse_feed(Fetched(response.url, 200, response.headers, response.body))
        assert page is not None
        return {link.url for link in page.links}

    assert url not in entries("/sitemap.xml", created_at - 1)
    assert entries("/sitemap.xml", END) == set(changing.page_urls)
    assert url not in entries("/changes.atom", created_at - 1)
    assert url in entries("/changes.atom", created_at)
    robots = changing.response_at(f"{HOST}/robots.txt", START)
    assert robots is not None
    assert f"Sitemap: {HOST}/sitemap.xml".encode() in robots.body
    home = changing.response_at(HOME, START)
    assert home is not None
    assert b'type="application/atom+xml" href="/changes.atom"' in home.body


def test_a_host_that_announces_nothing_lists_only_the_pages_of_the_start(recorded):
    seed = next(seed for seed in range(99) if _announces_nothing(seed))
    options = ChangeOptions(seed=seed, sitemaps=1.0, feeds=0.0, announced=0.0)
    changing = ChangingWeb(recorded, histories(Change(ChangeKind.CREATED, 99 * DAY_S, 50)), options)
    url, _ = page_of(changing, ChangeKind.CREATED)
    response = changing.response_at(f"{HOST}/sitemap.xml", END)
    assert response is not None
    assert url.encode() not in response.body
    assert HOME.encode() in response.body


def _announces_nothing(seed: int) -> bool:
    from focused_lab.changing_web.change_options import host_behaviour

    return host_behaviour("food.example", ChangeOptions(seed, announced=0.0)).announced == 0.0


def test_histories_are_moved_by_weeks_and_each_page_is_used_once():
    urls = [f"{HOST}/{number}" for number in range(6)] + ["https://b.example/"]
    pages = tuple(
        PageChanges(str(number), (CREATED, Change(ChangeKind.CHANGED, 5.0 * number)))
        for number in range(9)
    )
    period = QUIET.period
    assigned = assign_histories(urls, [SiteChanges("x", pages)], period, 0)
    assert set(assigned) == set(urls)
    assert len({page.page for page in assigned.values()}) == len(urls)
    shifts = {page.changes[1].at - 5.0 * int(page.page) for page in assigned.values()}
    assert len(shifts) == 1
    assert shifts.pop() % WEEK_S == 0


def test_pages_without_a_history_never_change(recorded):
    only = SiteChanges("x", (PageChanges("a", (CREATED, Change(ChangeKind.CHANGED, 0.0))),))
    changing = ChangingWeb(recorded, [only, SiteChanges("empty", ())], QUIET)
    assert sum(len(changing.changes_of(url)) for url in changing.page_urls) == 1
    assert all(changing.exists_at(url, START) for url in changing.page_urls)


def test_the_truth_is_a_history_of_each_host(recorded, tmp_path):
    changing = ChangingWeb(recorded, histories(Change(ChangeKind.CREATED, 100 * DAY_S, 50)), QUIET)
    write_truth(tmp_path / "truth", changing)
    history = read_change_history(tmp_path / "truth" / "food.example.tsv.gz")
    assert [history] == changing.true_changes()
    url, created_at = page_of(changing, ChangeKind.CREATED)
    page = next(page for page in history.pages if page.page == url)
    assert [exists_at(page, created_at + s) for s in (-1.0, 0.0)] == [False, True]


@pytest.mark.parametrize("wrong", [{"noise": 1.5}, {"years": 0.0}, {"feeds": float("nan")}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigurationError):
        ChangeOptions(**wrong)  # type: ignore[arg-type]
