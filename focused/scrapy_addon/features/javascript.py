"""The feature of rendering: a browser runs the scripts of pages that need it."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from focused.scrapy_addon.driver_features import DriverParts
from focused.scrapy_addon.setting import Setting, SettingType, positive, whole_number
from focused.topic import Topic

SETTINGS = (
    Setting(
        "FOCUSED_JAVASCRIPT_BROWSER",
        SettingType.PATH,
        None,
        'Path of the browser for `scope.javascript = "render"`. `None`: `chromium`, '
        "`chromium-browser`, `google-chrome` or `chrome` on the PATH. See "
        "docs/how-to/javascript.md.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_SANDBOX",
        SettingType.FLAG,
        True,
        "If false, the browser runs without its sandbox. It does not start as root with it; run "
        "the crawl as another user where you can.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_TIMEOUT_S",
        SettingType.NUMBER,
        15.0,
        "Seconds that the scripts of a page may run; the time that it waits for its requests does "
        "not count.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_REQUESTS",
        SettingType.NUMBER,
        50,
        "Requests that a page may make; those from the cache do not count.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_MEMORY_MB",
        SettingType.NUMBER,
        1_500.0,
        "Memory (10^6 bytes) of the browser with all its pages; Linux only. Above it the largest "
        "page is killed.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_PAGES",
        SettingType.NUMBER,
        2,
        "Pages that the browser renders at once.",
    ),
)


def check(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a limit that is unusable."""
    positive(settings, "FOCUSED_JAVASCRIPT_TIMEOUT_S")
    positive(settings, "FOCUSED_JAVASCRIPT_MEMORY_MB")
    whole_number(settings, "FOCUSED_JAVASCRIPT_REQUESTS")
    whole_number(settings, "FOCUSED_JAVASCRIPT_PAGES")


def is_on(topic: Topic, settings: BaseSettings) -> bool:
    """Whether the topic lets pages be rendered."""
    return topic.scope.javascript == "render"


def connect(topic: Topic, settings: BaseSettings) -> DriverParts:
    """Render pages between their arrival and their settling."""
    from focused.scrapy_addon.page_rendering import BrowserRendering

    return DriverParts(page_stages=[lambda driver: BrowserRendering.of_driver(settings, driver)])
