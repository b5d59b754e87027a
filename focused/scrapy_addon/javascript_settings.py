"""The settings of the browser that renders pages (``scope.javascript = "render"``)."""

from __future__ import annotations

from focused.rendering.renderer import RenderLimits
from focused.scrapy_addon.setting import Setting, SettingType

_DEFAULT = RenderLimits()

JAVASCRIPT_SETTINGS = (
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
        _DEFAULT.time_s,
        "Seconds that the scripts of a page may run; the time that it waits for its requests does "
        "not count.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_REQUESTS",
        SettingType.NUMBER,
        _DEFAULT.requests,
        "Requests that a page may make; those from the cache do not count.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_MEMORY_MB",
        SettingType.NUMBER,
        _DEFAULT.memory_mb,
        "Memory (10^6 bytes) of the browser with all its pages; Linux only. Above it the largest "
        "page is killed.",
    ),
    Setting(
        "FOCUSED_JAVASCRIPT_PAGES",
        SettingType.NUMBER,
        _DEFAULT.pages,
        "Pages that the browser renders at once.",
    ),
)
"""Part of :data:`focused.scrapy_addon.addon_settings.SETTINGS`."""
