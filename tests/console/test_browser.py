"""The console in a real browser, over a crawl that runs."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from focused.crawl.steering import ControlFolder
from tests.live.webs import LATENCIES, SEED, wait_for_answers, wide_web
from tests.support import label_pages
from tests.support.crawling import start, write_topic
from tests.support.forked import ForkedCommand
from tests.support.label_pages import screen, until
from tests.support.recorded_web import html, page, served

pytestmark = pytest.mark.long

PHONE = (360, 740)
window = label_pages.window
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"


@dataclass(frozen=True)
class RunningCrawl:
    """A crawl that runs slowly, and the console beside it."""

    folder: Path
    address: str
    process: ForkedCommand

    @property
    def control(self) -> ControlFolder:
        return ControlFolder(self.folder)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCrawl]:
    home = tmp_path_factory.mktemp("console")
    hostile = page("http://hostile.test/", html(HOSTILE, f"/?{HOSTILE}", text="whale"))
    topic = write_topic(home, SEED, "http://hostile.test/", delay_s=10.0)  # lasts for all tests
    with served(wide_web(hostile), LATENCIES) as site:
        process = start(topic, site.address)
        wait_for_answers(site, 20, process)
        console = subprocess.Popen(
            [sys.executable, "-m", "focused.cli", "ui", str(home), "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert console.stdout is not None
        address = console.stdout.readline().split()[-1]
        yield RunningCrawl(home / "out", address, process)
        console.terminate()
        console.wait(60)
        console.stdout.close()
        process.kill()
        process.wait()


@pytest.fixture
def console(window: Any, running: RunningCrawl) -> Any:
    """A window that shows the running crawl."""
    window.get("about:blank")
    window.get(running.address)
    until(window, lambda: value(window, "On topic") not in ("", "–"))
    return window


def value(window: Any, name: str) -> str:
    """A figure of the overview."""
    script = """
        const terms = [...document.querySelectorAll("#figures dt")];
        const found = terms.find((each) => each.textContent === arguments[0]);
        return found ? found.nextSibling.textContent : "";
    """
    found: str = window.execute_script(script, name)
    return found


def text(window: Any, selector: str) -> str:
    found: str = window.execute_script(
        "return document.querySelector(arguments[0]).textContent", selector
    )
    return found


def column(window: Any, table: str, index: int) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.textContent)"
    found: list[str] = window.execute_script(script, f"#{table} td:nth-child({index})")
    return found


def open_tab(window: Any, name: str) -> None:
    window.find_element("id", f"tab-{name}").click()


def search_pages(window: Any, words: str = "") -> None:
    """Search until pages are found: what is shown may be ten seconds older than the crawl."""
    open_tab(window, "pages")
    window.find_element("name", "text").send_keys(words)

    def are_found() -> bool:
        if window.find_element("id", "page-table").get_attribute("aria-busy") == "true":
            return False
        pages = column(window, "page-table", 1)
        if pages and all(words in each for each in pages):
            return True
        window.find_element("css selector", "#page-filter button").click()
        return False

    until(window, are_found)


def click_in(window: Any, table: str, index: int = 0) -> None:
    """Click a button of a table, which may be filled anew meanwhile."""

    def click() -> bool:
        window.find_elements("css selector", f"#{table} td button")[index].click()
        return True

    until(window, click)


def open_page(window: Any, table: str = "page-table", index: int = 0) -> None:
    click_in(window, table, index)
    until(window, lambda: window.find_element("id", "details").is_displayed())


def send_form(window: Any, action: str, **values: str) -> None:
    open_tab(window, "steer")
    form = window.find_element("css selector", f"form[data-action={action}]")
    for name, typed in values.items():
        field = form.find_element("name", name)
        field.clear()
        field.send_keys(typed)
    form.find_element("tag name", "button").click()


def errors(window: Any) -> list[str]:
    return [each["message"] for each in window.get_log("browser") if each["level"] == "SEVERE"]


def test_figures_and_curves_follow_the_crawl(console):
    first = int(value(console, "On topic"))
    until(console, lambda: int(value(console, "On topic")) > first)
    assert value(console, "Harvest rate").endswith("%")
    harvest = console.find_element("id", "harvest-chart")
    until(console, lambda: "pages on topic" in harvest.get_attribute("aria-label"))
    until(console, lambda: console.find_elements("css selector", "#speed-chart canvas"))
    assert errors(console) == []


def test_titles_and_anchors_of_hostile_pages_stay_text(console):
    search_pages(console, "hostile.test")
    assert "<script>" in text(console, "#page-table")
    open_page(console, index=-1)
    assert "<img" in text(console, "#details-title")
    console.find_element("id", "close").click()
    for name in ("hosts", "frontier"):
        open_tab(console, name)
    assert console.title != "owned"
    assert not console.find_elements("css selector", "main img, dialog img, main script")
    assert errors(console) == []


def test_pages_can_be_filtered_and_a_page_shows_its_path(console):
    search_pages(console, "h3.test/0")
    assert text(console, "#page-count").endswith("of 1")
    open_page(console)
    path = text(console, "#details-path")
    assert path.index(SEED) < path.index("http://h3.test/0")


def test_the_link_graph_of_a_running_crawl_leads_from_page_to_page(console):
    search_pages(console, "h3.test/0")
    assert text(console, "#page-count").endswith("of 1")
    open_page(console)
    until(console, lambda: console.find_elements("css selector", "#graph svg path"))
    assert "http://h2.test/0" in text(console, "#details-in-links")
    assert "pages link here" in text(console, "#graph-text")
    first = text(console, "#details-url")
    click_in(console, "details-in-links")
    until(console, lambda: text(console, "#details-url") != first)
    with screen(console, *PHONE):
        click_in(console, "details-links")
        until(console, lambda: console.find_elements("css selector", "#graph svg path"))
        script = "return [arguments[0].scrollWidth, arguments[0].clientWidth]"
        dialog = console.find_element("id", "details")
        wide, shown = console.execute_script(script, dialog)
        assert wide <= shown <= PHONE[0]
    assert errors(console) == []


def test_the_bandwidth_is_shown(console):
    until(console, lambda: value(console, "Bandwidth").endswith(" Mbit/s"))


def test_texts_are_searched(console):
    open_tab(console, "search")
    console.find_element("id", "update-index").click()
    until(console, lambda: "pages indexed." in text(console, "#search-state"))
    console.find_element("css selector", "#search-form input[name=on_topic]").click()
    console.find_element("css selector", "#search-form input[name=text]").send_keys("whale\n")
    until(console, lambda: console.find_elements("css selector", "#hits li"))
    assert console.find_elements("css selector", "#hits mark, #hits small")
    assert errors(console) == []


def test_the_link_graph_is_built_and_shows_hubs_and_authorities(console):
    open_tab(console, "links")
    until(console, lambda: "No link graph yet" in text(console, "#graph-state"))
    console.find_element("id", "build-graph").click()
    until(console, lambda: "pages and" in text(console, "#graph-state"))
    until(console, lambda: "Building" not in text(console, "#graph-state"))
    assert console.find_elements("css selector", "#authorities td button")
    assert text(console, "#graph-failure") == ""
    open_page(console, "hubs")
    assert errors(console) == []


def test_the_label_page_opens_from_the_console(console):
    search_pages(console)  # there are some to label
    open_tab(console, "model")
    console.find_element("id", "label").click()
    link = console.find_element("id", "label-page")
    until(console, lambda: link.is_displayed())
    console.get(link.get_attribute("href"))
    until(console, lambda: console.title.startswith("Label: "))


def test_retraining_shows_its_output(console):
    open_tab(console, "model")
    console.find_element("id", "retrain").click()
    until(console, lambda: "Failed" in text(console, "#retraining"))
    assert "focused:" in text(console, "#retraining")


def test_hosts_and_frontier_show_what_waits(console):
    open_tab(console, "hosts")
    until(console, lambda: "h3.test" in text(console, "#host-table"))
    open_tab(console, "frontier")
    until(console, lambda: "links on" in text(console, "#frontier-totals"))
    assert "http://h" in text(console, "#link-table")


def test_a_crawl_is_paused_and_resumed(console, running):
    button = console.find_element("id", "pause")
    button.click()
    until(console, lambda: text(console, "#state") == "Paused" and button.text == "Resume")
    button.click()
    until(console, lambda: len(running.control.read_actions(3)) == 2 and button.text == "Pause")
    assert [each.error for each in running.control.read_actions(3)] == ["", ""]


def test_a_boost_is_logged_and_undone(console):
    send_form(console, "move-links", host="h5.test", by="3")
    until(console, lambda: "by +3" in text(console, "#action-table"))
    click_in(console, "action-table")
    until(console, lambda: "by -3" in text(console, "#action-table"))
    until(console, lambda: "undone" in text(console, "#action-table"))


def test_a_refused_command_says_why(console):
    send_form(console, "move-links", host="nowhere.test")
    until(console, lambda: "does not know a host" in text(console, "#action-table"))


def test_links_are_dropped_after_a_question(console):
    send_form(console, "drop-links", host="h7.test")
    console.switch_to.alert.accept()
    until(console, lambda: "dropped" in text(console, "#action-table"))


def test_seeds_budget_and_delay_are_changed(console):
    send_form(console, "add-seeds", urls="http://new.test/1 http://new.test/2")
    until(console, lambda: "added 2 links" in text(console, "#action-table"))
    send_form(console, "change-budget", pages="150000")
    until(console, lambda: "the budget is 150,000 pages" in text(console, "#action-table"))
    send_form(console, "change-delay", delay_s="60")  # the crawl lasts longer, too
    until(console, lambda: "the delay is 60 s" in text(console, "#action-table"))
    open_tab(console, "overview")
    until(console, lambda: value(console, "Fetched").endswith("of 150,000"))


def test_an_empty_field_of_the_budget_keeps_its_limit(console):
    send_form(console, "change-budget", pages="160000", hours="7")
    until(console, lambda: "160,000 pages or 7.0 hours" in text(console, "#action-table"))
    hours = console.find_element("css selector", "form[data-action=change-budget] [name=hours]")
    until(console, lambda: hours.get_property("value") == "7")
    send_form(console, "change-budget", pages="170000", hours="")
    until(console, lambda: "170,000 pages or 7.0 hours" in text(console, "#action-table"))
    pages = console.find_element("css selector", "form[data-action=change-budget] [name=pages]")
    until(console, lambda: pages.get_property("value") == "170000")
    send_form(console, "change-budget", pages="", hours="0")
    until(
        console,
        lambda: text(console, "#action-table td + td + td") == "the budget is 170,000 pages",
    )


def test_a_click_on_a_heading_sorts_its_column_and_another_reverses_it(console):
    open_tab(console, "hosts")
    until(console, lambda: column(console, "host-table", 1))
    heading = console.find_element("css selector", "#host-table th:nth-child(1)")
    heading.find_element("tag name", "button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    hosts = column(console, "host-table", 1)
    assert hosts == sorted(hosts)
    heading.find_element("tag name", "button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    hosts = column(console, "host-table", 1)
    assert len(hosts) > 1 and hosts == sorted(hosts, reverse=True)


def test_numbers_are_sorted_as_numbers(console):
    open_tab(console, "hosts")
    until(console, lambda: column(console, "host-table", 2))
    console.find_element("css selector", "#host-table th:nth-child(2) button").click()
    pages = [int(each.replace(",", "")) for each in column(console, "host-table", 2)]
    assert pages == sorted(pages)


def test_charts_have_legends(console):
    assert [text(console, f"#{name} + .key") for name in ("harvest-chart", "speed-chart")] == [
        "Pages on topic (left) Harvest rate of the last 100 pages (right)",
        "Pages a second (left) Kilobytes a second (right)",
    ]


def test_tabs_are_one_row_on_a_phone_and_titles_keep_words_whole(console):
    search_pages(console)
    with screen(console, *PHONE):
        open_tab(console, "pages")
        tops = console.execute_script(
            "return [...document.querySelectorAll('#tabs button')].map((tab) => tab.offsetTop)"
        )
        assert len(set(tops)) == 1
        title = console.execute_script(
            "return document.querySelector('#page-table td').getBoundingClientRect().width"
        )
        assert title >= 200


def test_tabs_are_moved_by_arrow_keys(console):
    from selenium.webdriver.common.keys import Keys

    console.find_element("id", "tab-overview").send_keys(Keys.ARROW_RIGHT)
    assert console.switch_to.active_element.get_attribute("id") == "tab-pages"
    assert console.find_element("id", "pages").is_displayed()


@pytest.mark.parametrize(
    "name", ["overview", "pages", "search", "hosts", "frontier", "steer", "model"]
)
def test_each_view_fits_a_phone(console, name):
    with screen(console, *PHONE):
        open_tab(console, name)
        width = console.execute_script("return document.documentElement.scrollWidth")
        assert width <= PHONE[0]


def test_another_window_without_the_token_sees_nothing(window, running):
    window.execute_script("sessionStorage.clear()")
    window.get("about:blank")
    window.get(running.address.partition("#")[0])
    until(window, lambda: "token" in text(window, "#notice"))
    assert text(window, "#figures") == ""


def test_a_stopped_crawl_takes_no_more_commands(console, running):
    stop = console.find_element("id", "stop")
    until(console, stop.is_displayed)
    stop.click()
    console.switch_to.alert.accept()
    until(console, lambda: "Ended: stopped by its operator" in text(console, "#state"))
    open_tab(console, "steer")
    assert console.find_element("id", "steer-off").is_displayed()
    assert not console.find_element("id", "forms").is_displayed()
