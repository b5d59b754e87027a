"""A log of JSON objects, one a line, for log collectors: ``FOCUSED_LOG_FORMAT = "json"``."""

from __future__ import annotations

import logging
import sys

from pythonjsonlogger.json import JsonFormatter
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.settings import Settings

_FIELDS = {"levelname": "level", "name": "logger"}


def make_json_formatter() -> logging.Formatter:
    """Return the formatter: ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``.

    An exception's traceback is in ``exc_info``.
    """
    return JsonFormatter(
        "%(levelname)s %(name)s %(message)s", rename_fields=_FIELDS, timestamp="time"
    )


def install_json_log(settings: Settings, crawler: Crawler) -> None:
    """Write the log as JSON to ``LOG_FILE`` or standard error, instead of Scrapy's handler.

    Scrapy installs its handler after the add-ons, and only formats by a format string; so ours
    stands beside it, and Scrapy's is switched off. It is removed when the engine stops. What Scrapy
    logs before it loads add-ons, its versions, stays text.
    """
    handler: logging.Handler
    if settings["LOG_FILE"]:
        mode = "a" if settings.getbool("LOG_FILE_APPEND") else "w"
        handler = logging.FileHandler(settings["LOG_FILE"], mode, settings["LOG_ENCODING"])
    elif settings.getbool("LOG_ENABLED"):
        handler = logging.StreamHandler(sys.stderr)
    else:
        return
    handler.setLevel(settings["LOG_LEVEL"])
    handler.setFormatter(make_json_formatter())
    settings.set("LOG_FILE", None, priority="cmdline")
    settings.set("LOG_ENABLED", False, priority="cmdline")
    logging.root.addHandler(handler)

    def remove() -> None:
        logging.root.removeHandler(handler)
        handler.close()

    crawler.signals.connect(remove, signals.engine_stopped, weak=False)
