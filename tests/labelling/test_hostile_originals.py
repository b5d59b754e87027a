"""Hostile pages in a real Chromium: sanitised and shown for labelling, they send nothing.

Every vector is tried three times: in the label page; sanitised, without policy and sandbox; and
raw, to prove that the listener and the net log detect it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from focused.labelling.page_renderer import original_document, sanitised_html
from focused.labels.label_file import LabelFile
from focused.web.page import Fetched
from tests.labelling.hostile_originals import VECTORS, attempts_in, hostile_page, listener
from tests.labelling.labelled_crawls import session, write_crawl
from tests.support.label_pages import Outside, chromium, outside, served

pytestmark = pytest.mark.long  # test_page_renderer.py tests the sanitiser without a browser

WAIT_S = 400


@dataclass(frozen=True, slots=True)
class Observed:
    """The outcomes of all vectors. ``attempts`` are vectors by mode: shown, sanitised, raw."""

    attempts: Mapping[str, set[str]]
    connections_without_raw: int
    connections: int
    shown: set[str]
    title: str
    windows: int


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("hostile")
    log = folder / "net.json"
    with listener() as sink, outside() as plain:
        rules = (
            f"MAP *.leak.example 127.0.0.1:{sink.port}",
            "EXCLUDE dns-prefetch.*",  # mapped names are not resolved
            "EXCLUDE 127.0.0.1",
            "MAP * ~NOTFOUND",  # what Chromium requests by itself
        )
        arguments = [
            f"--host-resolver-rules={','.join(rules)}",
            f"--log-net-log={log}",
            "--autoplay-policy=no-user-gesture-required",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-popup-blocking",
            "--no-first-run",
        ]
        with chromium(more=arguments) as window:
            before = sink.connections
            shown, title = _label_all(window, folder)
            _load(window, plain, "sanitised")
            quiet = sink.connections - before
            windows = len(window.window_handles)
            _load(window, plain, "raw")
            until_quiet(lambda: sink.connections)
        yield Observed(attempts_in(log), quiet, sink.connections, shown, title, windows)


_SKIP_ALL = """
const done = arguments[0], shown = [], element = (id) => document.getElementById(id);
function next() {
  if (element("main").ariaBusy === "true") return setTimeout(next, 5);
  shown.push(element("url").textContent);
  element("skip").click();
}
document.addEventListener("load", (event) => event.target.id === "original" && next(), true);
new MutationObserver(() => element("message").hidden || done(shown))
  .observe(element("message"), {attributes: true});
next();
"""


def _label_all(window: Any, folder: Path) -> tuple[set[str], str]:
    """Show each page in the label page, wait for its frame to load, and skip it."""
    pages = {
        f"https://{vector}.bad/": f"<p>Whales. {hostile_page(vector, 'shown')}"
        for vector in VECTORS
    }
    write_crawl(folder, pages=0, bodies=pages)
    from selenium.webdriver.support.ui import WebDriverWait

    window.set_script_timeout(WAIT_S)
    with LabelFile(folder / "l.labels.jsonl") as file, served(session(folder, file)) as at:
        window.get(at.address)
        WebDriverWait(window, WAIT_S).until(lambda _: window.find_element("id", "url").text)
        shown = window.execute_async_script(_SKIP_ALL)
        assert window.current_url == f"{at.origin}/"
    return set(shown), window.title


def _load(window: Any, plain: Outside, mode: str) -> None:
    """Load the page of each vector in an unrestricted frame."""
    for vector in VECTORS:
        body = hostile_page(vector, mode).encode()
        if mode == "sanitised":
            fetched = Fetched("https://bad.example/", 200, {"content-type": "text/html"}, body)
            body = original_document(sanitised_html(fetched))
        plain.pages[f"/{mode}/{vector}"] = b"<!doctype html><meta charset=utf-8>" + body
    frames = "".join(f"<iframe src=/{mode}/{vector}></iframe>" for vector in VECTORS)
    plain.pages[f"/{mode}"] = frames.encode()
    window.set_page_load_timeout(WAIT_S)
    window.get(f"{plain.origin}/{mode}")


def until_quiet(count: Callable[[], int]) -> None:
    """Wait until nothing more comes in two seconds: prefetches come after the page has loaded."""
    seen = -1
    while seen != (seen := count()):
        time.sleep(2)


def test_no_page_that_is_labelled_makes_the_browser_resolve_or_connect(observed):
    assert len(observed.shown) == len(VECTORS)
    assert observed.attempts.get("shown", set()) == set()
    assert observed.connections_without_raw == 0


def test_no_page_that_is_labelled_runs_a_script_or_opens_a_window(observed):
    assert observed.title == "Label: whales"
    assert observed.windows == 1


def test_sanitising_alone_holds_without_policy_and_sandbox(observed):
    assert observed.attempts.get("sanitised", set()) == set()


def test_the_same_pages_connect_without_protection(observed):
    """The tests above can detect what they exclude, also a DNS lookup and a bare connection."""
    assert observed.attempts["raw"] >= {
        "preconnect", "dns-prefetch", "prefetch", "preload", "img", "style-import", "svg-image",
        "iframe-srcdoc", "object", "video-poster", "meta-refresh", "base", "script-fetch", "xmp",
        "noscript-style", "mutation-svg-p", "details-toggle", "math-mtext",
    }  # fmt: skip
    assert observed.connections > len(VECTORS) / 2
