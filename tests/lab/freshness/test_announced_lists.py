"""The lists of a changing web in the simulator state what the web's server states."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.crawl.revisits.announcements import read_change_signals
from focused.durations import DAY_S
from focused.web.page import Fetched
from focused_lab.change_history import Change, ChangeKind, PageChanges, SiteChanges
from focused_lab.changing_web.change_options import ChangeOptions
from focused_lab.changing_web.changed_content import MAX_ENTRIES
from focused_lab.changing_web.changing_web import FEED_PATH, SITEMAP_PATH, ChangingWeb
from focused_lab.freshness.announced_lists import announced_lists
from focused_lab.freshness.crawl_evaluation import restrict_window, true_window
from focused_lab.freshness.sitemaps import SiteList
from focused_lab.freshness.windows import Window
from focused_lab.recorded_web.recorded_web import RecordedWeb
from tests.support.recorded_web import html, page, recorded

HOST = "food.example"
SITE = f"https://{HOST}"
URLS = [f"{SITE}/{name}.html" for name in ("bread", "cheese", "milk", "wine")]
START, END = ChangeOptions().start, ChangeOptions().period.end
PATHS = {"sitemap": SITEMAP_PATH, "feed": FEED_PATH}
EVENTS = [(10, "changed"), (40, "deleted"), (70, "created"), (90, "changed"), (360, "changed")]


def options(announced: float = 1.0, seed: int = 0) -> ChangeOptions:
    return ChangeOptions(seed, sitemaps=1.0, feeds=1.0, noise=0.0, announced=announced)


def history(*days_and_kinds: tuple[float, str]) -> tuple[Change, ...]:
    created = Change(ChangeKind.CREATED, START - 99 * DAY_S, 50)
    later = (Change(ChangeKind(kind), START + day * DAY_S, 9, 9) for day, kind in days_and_kinds)
    return (created, *later)


def serve(web: RecordedWeb, chosen: ChangeOptions) -> ChangingWeb:
    """Four pages that change; three of them vanish and come back."""
    pages = [PageChanges("a", history((20, "changed"), (363, "changed")))]
    pages += [
        PageChanges(name, history(*((day + late, kind) for day, kind in EVENTS)))
        for late, name in enumerate("bcd")
    ]
    return ChangingWeb(web, [SiteChanges("food", tuple(pages))], chosen)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[RecordedWeb]:
    body = html("food", *URLS, text="Some words about food. " * 9)
    with recorded(tmp_path, *(page(url, body) for url in (f"{SITE}/", *URLS))) as found:
        yield found


def lists_of(changing: ChangingWeb) -> tuple[Window, dict[tuple[str, str], SiteList]]:
    truth = changing.true_changes()
    window = true_window(truth, START, END)
    return window, announced_lists(window, truth, changing.options)


def stated_by(found: SiteList, window: Window, until: float) -> dict[str, int]:
    """The pages that a list names at a time, with the whole second of the last change."""
    named: dict[str, int] = {}
    for at, number, changed_at in found.statements:
        if at <= until - START:
            name = window.pages[number].name
            named.pop(name, None)
            if changed_at is not None:
                named[name] = int(START + changed_at)
    return named


def served(changing: ChangingWeb, kind: str, at: float) -> dict[str, int]:
    response = changing.response_at(SITE + PATHS[kind], at)
    assert response is not None
    fetched = Fetched(response.url, 200, response.headers, response.body, received_at=at)
    _, signals = read_change_signals(fetched, lambda _: 0.0)
    return {url: int(max(stated_at or 0.0, START)) for url, stated_at in signals.items()}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", PATHS)
def test_a_list_names_the_pages_and_times_that_the_server_names(web, kind, seed):
    changing = serve(web, options(announced=0.5, seed=seed))
    window, lists = lists_of(changing)
    for day in range(0, 365, 5):
        at = START + (day + 0.5) * DAY_S
        assert stated_by(lists[HOST, kind], window, at) == served(changing, kind, at)


def test_the_silence_of_a_sitemap_may_be_news_and_that_of_a_feed_not(web):
    _, lists = lists_of(serve(web, options()))
    assert lists[HOST, "sitemap"].is_complete
    assert not lists[HOST, "feed"].is_complete


def test_lists_name_only_the_pages_of_the_window(web):
    changing = serve(web, options())
    truth = changing.true_changes()
    window = restrict_window(true_window(truth, START, END), URLS[:1])
    found = announced_lists(window, truth, changing.options)[HOST, "sitemap"]
    assert stated_by(found, window, END).keys() <= {URLS[0]}


def test_a_host_without_a_list_has_none(web):
    silent = ChangeOptions(sitemaps=0.0, feeds=0.0)
    assert lists_of(serve(web, silent))[1] == {}


def test_a_feed_forgets_the_oldest_entry(tmp_path):
    urls = [f"{SITE}/{number}.html" for number in range(MAX_ENTRIES + 2)]
    changes = [
        (Change(ChangeKind.CREATED, START), Change(ChangeKind.CHANGED, START + (day + 1) * DAY_S))
        for day in range(len(urls))
    ]
    truth = [SiteChanges(HOST, tuple(map(PageChanges, urls, changes)))]
    window = true_window(truth, START, END)
    feed = announced_lists(window, truth, options())[HOST, "feed"]
    assert list(stated_by(feed, window, END)) == urls[2:]
