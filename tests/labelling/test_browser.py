"""The label page in a real browser: keys, clicks, reloads, and hostile pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from focused.labelling.labelling_task import TopicCategory
from focused.labelling.page_renderer import PageRenderer, RenderedPage
from focused.labels.label_file import LabelFile, evaluation_hash, read_labels
from focused.local_server import TOKEN_IDLE_S
from tests.labelling.labelled_crawls import CATEGORIES, first_shown_url, session, write_crawl
from tests.support import label_pages
from tests.support.label_pages import PAGES, Outside, Served, outside, screen, served, until

pytestmark = pytest.mark.long

window = label_pages.window


def text(window: Any, name: str) -> str:
    found: str = window.find_element("id", name).text
    return found


def ready(window: Any) -> bool:
    busy = window.find_element("id", "main").get_attribute("aria-busy")
    return busy == "false" and bool(text(window, "title") or text(window, "message-title"))


def visit(window: Any, address: str) -> None:
    window.get("about:blank")
    window.get(address)
    until(window, lambda: ready(window))


def press(window: Any, key: str) -> str:
    """Press a key and wait for its effect; return the URL of the page shown before."""
    from selenium.webdriver.common.action_chains import ActionChains

    before, labelled = text(window, "url"), text(window, "last")
    ActionChains(window).send_keys(key).perform()
    until(window, lambda: text(window, "last") != labelled and ready(window))
    return before


def click(window: Any, name: str) -> str:
    before, labelled = text(window, "url"), text(window, "last")
    window.find_element("id", name).click()
    until(window, lambda: text(window, "last") != labelled and ready(window))
    return before


def test_keys_label_and_show_the_next_page(window, page, labels):
    visit(window, page.address)
    labelled = [(press(window, key), key) for key in "ynxs"]
    verdicts = {"y": "yes", "n": "no", "x": "spam", "s": "skip"}
    kept = [(one.url, one.verdict) for one in read_labels(labels)]
    assert kept == [(url, verdicts[key]) for url, key in labelled]
    assert text(window, "count") == "4"
    assert text(window, "counts") == "1 yes, 1 no, 1 spam, 1 skipped"


def test_buttons_do_what_keys_do(window, page, labels):
    visit(window, page.address)
    labelled = [(click(window, name), name) for name in ("yes", "no", "spam", "skip")]
    assert [(one.url, one.verdict) for one in read_labels(labels)] == labelled


def test_digits_and_their_buttons_put_a_page_into_a_category(window, page, labels):
    visit(window, page.address)
    press(window, "1")
    window.find_elements("css selector", "#categories button")[1].click()
    until(window, lambda: text(window, "count") == "2")
    kept = [(one.verdict, one.category) for one in read_labels(labels)]
    assert kept == [("yes", CATEGORIES[0].name), ("no", CATEGORIES[1].name)]


def test_undo_brings_the_page_back_by_key_and_by_button(window, page, labels):
    visit(window, page.address)
    assert not window.find_element("id", "undo").is_enabled()
    first = press(window, "y")
    second = press(window, "n")
    press(window, "u")
    assert text(window, "url") == second
    click(window, "undo")
    assert text(window, "url") == first
    assert read_labels(labels) == ()


def test_keys_with_control_or_of_no_meaning_label_nothing(window, page, labels):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    visit(window, page.address)
    chain = ActionChains(window)
    chain.key_down(Keys.CONTROL).send_keys("y").key_up(Keys.CONTROL).send_keys("z9").perform()
    press(window, "s")
    assert [one.verdict for one in read_labels(labels)] == ["skip"]


def test_a_click_into_the_original_leaves_the_keys_at_work(window, page, labels):
    from selenium.webdriver.common.action_chains import ActionChains

    visit(window, page.address)
    frame = window.find_element("id", "original")
    ActionChains(window).move_to_element(frame).click().perform()
    until(window, lambda: window.execute_script("return document.activeElement.id") == "main")
    press(window, "y")
    assert len(read_labels(labels)) == 1


def test_the_token_leaves_the_address_and_a_reload_goes_on(window, page, labels):
    visit(window, page.address)
    assert window.current_url == f"{page.origin}/"
    press(window, "y")
    shown = text(window, "url")
    window.refresh()
    until(window, lambda: ready(window))
    assert (text(window, "url"), text(window, "count")) == (shown, "1")


def test_a_second_window_goes_on_with_the_same_session(window, page, labels):
    visit(window, page.address)
    first = window.current_window_handle
    press(window, "y")
    stale = text(window, "url")
    window.switch_to.new_window("tab")
    visit(window, page.address)
    assert text(window, "url") == stale
    press(window, "n")
    window.close()
    window.switch_to.window(first)
    until(window, lambda: ready(window))
    press(window, "y")
    kept = read_labels(labels)
    assert len(kept) == len({one.url for one in kept})
    assert len(kept) in (2, 3)  # the first window was notified, or labelled the same page again


@pytest.mark.parametrize("ending", ["", "#wrong"])
def test_without_the_right_token_no_page_is_shown(window, page, ending):
    window.switch_to.new_window("tab")  # with a store of its own
    try:
        visit(window, f"{page.origin}/{ending}")
        assert text(window, "message-title") == "This window has no valid address"
        assert text(window, "url") == ""
        assert not window.find_element("id", "yes").is_enabled()
    finally:
        window.close()
        window.switch_to.window(window.window_handles[0])


def test_an_expired_address_is_reported(window, page, labels):
    visit(window, page.address)
    page.clock.now += TOKEN_IDLE_S + 1
    window.find_element("id", "yes").click()
    until(window, lambda: "expired" in text(window, "message-text"))
    assert read_labels(labels) == ()


def test_the_relevance_of_a_random_page_is_shown_after_the_label(window, page):
    visit(window, page.address)
    assert "hidden until you answer" in text(window, "reason")
    press(window, "y")
    assert "The classifier gave it" in text(window, "last")
    assert "relevance" in text(window, "reason")


def test_at_the_end_it_says_so_and_undo_still_works(window, page, labels):
    visit(window, page.address)
    for _ in range(PAGES):
        press(window, "y")
    until(window, lambda: text(window, "message-title") == "All done")
    click(window, "undo")
    assert len(read_labels(labels)) == PAGES - 1
    assert text(window, "title").startswith("Page")


def test_a_narrow_window_has_no_sideways_scrolling(window, page):
    size = window.get_window_size()
    window.set_window_size(500, 900)
    try:
        visit(window, page.address)
        width = "return document.documentElement.scrollWidth - window.innerWidth"
        assert window.execute_script(width) <= 0
    finally:
        window.set_window_size(size["width"], size["height"])


@pytest.fixture
def crowded(tmp_path: Path, labels: Path) -> Iterator[Served]:
    """A label page with nine categories, and a first page with a long URL and wide content."""
    names = ("Parallel_Computing", "Message_Passing_Interface", "Beowulf", *"ABCDEF")
    categories = tuple(
        TopicCategory(f"Top/Computers/{name}", n < 5) for n, name in enumerate(names)
    )
    urls = (f"https://long.example/{'path/' * 20}{n}?{'q' * 80}={n}" for n in range(10_000))
    url = next(url for url in urls if evaluation_hash(url) < 0.001)
    wide = f"<p>{'krill ' * 2_000}</p><pre>{'x' * 900}</pre><table>{'<td>cell</td>' * 60}</table>"
    write_crawl(tmp_path, pages=12, bodies={url: f"<title>{'Whale' * 30}</title>{wide}"})
    with LabelFile(labels) as file, served(session(tmp_path, file, categories)) as at:
        yield at


_COVERED = """
const one = arguments[0];
const isTall = one.getBoundingClientRect().height > innerHeight / 4;
one.scrollIntoView({block: isTall ? "start" : "center"});
const box = one.getBoundingClientRect();
const y = isTall ? box.top + 20 : (box.top + box.bottom) / 2;
const isAt = (x) => one.contains(document.elementFromPoint(x, y));
const fits = box.left >= 0 && box.right <= innerWidth && box.width > 0 && box.height >= 24;
return !(fits && isAt(box.left + 3) && isAt((box.left + box.right) / 2) && isAt(box.right - 3));
"""


@pytest.mark.parametrize(
    ("width", "height"), [(360, 640), (600, 900), (740, 360), (960, 700), (1400, 900)]
)
def test_on_every_screen_each_control_can_be_seen_and_pressed(
    window, crowded, labels, width, height
):
    with screen(window, width, height):
        visit(window, crowded.address)
        assert window.execute_script("return innerWidth") == width
        press(window, "s")
        click(window, "undo")  # the long page again
        for name in ("text", "original"):
            switch = window.find_element("id", f"show-{name}")
            if width <= 960:
                switch.click()
            shown = window.find_element("id", "text" if name == "text" else "original")
            assert not window.execute_script(_COVERED, shown)
        found = window.find_elements("css selector", "button, #url")
        controls = [one for one in found if one.is_displayed()]
        assert len(controls) == 5 + 9 + 1 + 1 + (2 if width <= 960 else 0)
        assert [one.text for one in controls if window.execute_script(_COVERED, one)] == []
        boxes = [one.rect for one in window.find_elements("css selector", "footer button")]
        assert not any(overlap(one, other) for n, one in enumerate(boxes) for other in boxes[:n])
        for scroller in ("document.documentElement", "document.getElementById('scroll')"):
            wider = f"return {scroller}.scrollWidth - {scroller}.clientWidth"
            assert window.execute_script(wider) <= 0
        click(window, "yes")
    assert read_labels(labels)[-1].verdict == "yes"


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


def test_on_a_phone_a_third_of_the_screen_is_left_for_the_page(window, crowded):
    with screen(window, 360, 640):
        visit(window, crowded.address)
        press(window, "s")
        above = window.find_element("tag name", "footer").rect["y"]
        assert above >= 640 / 3
        top = window.find_element("id", "reason").rect["y"]
        assert 0 <= top < above / 4  # the question is scrolled away, the next page is in sight


def test_a_new_page_and_the_last_answer_are_announced_to_screen_readers(window, page):
    visit(window, page.address)
    live = window.find_elements("css selector", "[aria-live=polite]")
    assert {one.get_attribute("id") for one in live} == {"title", "last"}


def test_everything_that_can_be_pressed_has_a_name_and_can_be_reached_by_tab(window, page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    visit(window, page.address)
    press(window, "y")  # so that undo has a label
    wanted = {
        one.get_attribute("id") or one.text
        for one in window.find_elements("css selector", "button")
        if one.is_displayed()
    }
    assert all(
        one.accessible_name
        for one in window.find_elements("css selector", "button, a, iframe")
        if one.is_displayed()
    )
    reached = set()
    for _ in range(25):
        ActionChains(window).send_keys(Keys.TAB).perform()
        focused = window.switch_to.active_element
        reached.add(focused.get_attribute("id") or focused.text)
    assert wanted <= reached


HOSTILE = """
<script>fetch("OUT/fetch"); new Image().src = "OUT/script"; parent.document.title = "taken";
 top.location = "OUT/top"; parent.postMessage("hello", "*"); window.open("OUT/popup");</script>
<base href="OUT/"><link rel=stylesheet href="OUT/css"><link rel=prefetch href="OUT/prefetch">
<link rel=preload as=image href="OUT/preload"><meta http-equiv=refresh content="0;url=OUT/refresh">
<style>@import "OUT/import"; body { background: url(OUT/background) }
@font-face { font-family: f; src: url(OUT/font) } p { font-family: f }</style>
<img src="OUT/img" onerror="new Image().src='OUT/onerror'"><svg onload="fetch('OUT/svg')">
<image href="OUT/svgimage"/></svg><iframe src="OUT/iframe"></iframe>
<object data="OUT/object"></object>
<embed src="OUT/embed"><video src="OUT/video" poster="OUT/poster" autoplay></video>
<audio src="OUT/audio" autoplay></audio><input type=image src="OUT/input">
<form action="OUT/form" id=f><button id=send autofocus onfocus="this.click()">send</button></form>
<div style="background-image:url(OUT/inline)">x</div>
<a href="OUT/link" target=_top id=leave>leave</a>
<p>Whales.</p><script>document.getElementById("f").submit()</script>
<frameset onload="fetch('OUT/frameset')">
"""


@pytest.fixture
def elsewhere() -> Iterator[Outside]:
    with outside() as requests:
        yield requests


def test_frame_and_headers_alone_keep_a_hostile_page_from_scripts_and_requests(
    window, elsewhere, tmp_path, labels
):
    """It isn't sanitised; sanitised ones: test_hostile_originals.py."""
    html = HOSTILE.replace("OUT", elsewhere.origin)
    write_crawl(tmp_path, pages=12, bodies={first_shown_url("bad.example"): html})

    class Unsanitised(PageRenderer):
        def original(self, *_: object) -> RenderedPage:
            return RenderedPage(html)

    with LabelFile(labels) as file, served(session(tmp_path, file), Unsanitised()) as at:
        visit(window, at.address)
        assert "bad.example" in text(window, "url")
        window.switch_to.frame("original")
        until(window, lambda: "Whales." in window.page_source)
        window.find_element("id", "leave").click()
        window.find_element("id", "send").click()
        window.switch_to.default_content()
        press(window, "n")
        assert window.current_url == f"{at.origin}/"
        assert len(window.window_handles) == 1
        assert window.title == "Label: whales"
    assert elsewhere.asked == []
    assert [one.verdict for one in read_labels(labels)] == ["no"]


def test_the_same_hostile_page_does_harm_without_protection(window, elsewhere):
    html = HOSTILE.replace("OUT", elsewhere.origin).replace('top.location = "', 'x = "')
    elsewhere.pages["/harm"] = html.encode()
    window.get(f"{elsewhere.origin}/harm")
    until(window, lambda: {"/fetch", "/script", "/css", "/background"} <= set(elsewhere.asked))


def test_what_a_page_says_is_shown_as_text(window, tmp_path, labels):
    url = first_shown_url("bad.example")
    html = "<title>t</title><p>&lt;img src=x onerror=document.title='taken'&gt; is HTML.</p>"
    write_crawl(tmp_path, pages=4, bodies={url: html})
    with LabelFile(labels) as file, served(session(tmp_path, file)) as at:
        visit(window, at.address)
        assert "<img src=x" in text(window, "text")
        assert text(window, "description") == "Whales & <others>."
        assert window.title == "Label: whales"


def test_a_word_is_searched_for_and_the_page_that_is_picked_is_labelled(window, page, labels):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    visit(window, page.address)
    ActionChains(window).send_keys("/").perform()
    ActionChains(window).send_keys(
        "yny baleen", Keys.ENTER
    ).perform()  # letters are no answers here
    until(window, lambda: "No page" in text(window, "last"))
    query = window.find_element("id", "query")
    query.clear()
    query.send_keys("baleen", Keys.ENTER)
    until(window, lambda: window.find_elements("css selector", "#found button"))
    picked = window.find_elements("css selector", "#found button")[1]
    url = picked.get_attribute("title")
    picked.click()
    until(window, lambda: text(window, "url") == url and ready(window))
    assert text(window, "reason").startswith("Searched for")
    assert press(window, "y") == url
    (label,) = read_labels(labels)
    assert (label.url, label.verdict, label.reason) == (url, "yes", "searched")
