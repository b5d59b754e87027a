"""The label page at work: served in a thread, looked at in a headless Chromium."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from aiohttp import web

from focused.labelling.label_server import LabelServer
from focused.labelling.page_renderer import PageRenderer
from focused.labelling.session import LabellingSession
from tests.support.serving import QuietHandler, loop_in_thread, serving

WINDOW = (1400, 900)
PAGES = 24
WAIT_S = 90
"""Of the crawl that is labelled."""


@dataclass
class Clock:
    """Time as told: ``now`` in seconds since the epoch."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Served:
    """A session on loopback. ``address`` has the token, ``origin`` has not."""

    origin: str
    token: str
    clock: Clock

    @property
    def address(self) -> str:
        return f"{self.origin}/#{self.token}"


@contextmanager
def served(session: LabellingSession, reader: PageRenderer | None = None) -> Iterator[Served]:
    """Serve ``session`` at a free port until the block is left."""
    clock = Clock()
    reader = reader or PageRenderer()
    server = LabelServer(session, reader, clock).app()
    try:
        with served_app(server.application) as origin:
            yield Served(origin, server.token, clock)
    finally:
        reader.close()


@contextmanager
def served_app(app: web.Application) -> Iterator[str]:
    """Serve an application in a thread, at a free port; yield its origin."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    with loop_in_thread() as run:
        try:
            yield f"http://127.0.0.1:{run(start())}"
        finally:
            run(runner.cleanup())


@dataclass
class Outside:
    """Another server on this machine; ``asked`` are the paths that were asked for."""

    origin: str
    asked: list[str] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)


@contextmanager
def outside() -> Iterator[Outside]:
    """A server that nobody should ask for anything."""
    other_site = Outside("")

    class Handler(QuietHandler):
        def reply(self) -> None:
            other_site.asked.append(self.path)
            body = other_site.pages.get(self.path, b"outside")
            self.respond(200, body, Content_Type="text/html", Connection="close")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    other_site.origin = f"http://127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield other_site


def tools() -> tuple[str, str]:
    """Where Chromium and its driver are; without them CI fails, and others skip."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    selenium = importlib.util.find_spec("selenium")
    if chromium and driver and selenium:
        return chromium, driver
    found = {"chromium": chromium, "chromium-driver": driver, "selenium (make setup)": selenium}
    missing = ", ".join(name for name, one in found.items() if not one)
    reason = f"not installed: {missing}; apt-get install chromium chromium-driver"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def chromium(
    start: Callable[[], tuple[str, str]] = tools, *, dark: bool = False, more: Sequence[str] = ()
) -> Iterator[Any]:
    """A headless Chromium, driven by Selenium; nothing is downloaded. ``more`` are arguments."""
    browser, driver = start()
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",  # as root in a container there is none
        "--disable-dev-shm-usage",
        f"--window-size={WINDOW[0]},{WINDOW[1]}",
        "--hide-scrollbars",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
        *more,
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield window
    finally:
        window.quit()


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def until(window: Any, holds: Callable[[], object]) -> None:
    from selenium.common import exceptions
    from selenium.webdriver.support.ui import WebDriverWait

    # What is clicked may be replaced or covered meanwhile.
    passing = [
        exceptions.StaleElementReferenceException,
        exceptions.ElementClickInterceptedException,
    ]
    waiting = WebDriverWait(window, WAIT_S, poll_frequency=0.05, ignored_exceptions=passing)
    waiting.until(lambda _: holds())


@contextmanager
def screen(window: Any, width: int, height: int) -> Iterator[None]:
    """A screen of that size: a headless window cannot be as narrow as a phone."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 960}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
