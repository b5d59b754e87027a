"""A log of JSON objects, one a line, for log collectors: ``FOCUSED_LOG_FORMAT = "json"``."""

from __future__ import annotations

import logging
import sys
from datetime import datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.settings import Settings

_FIELDS = {"levelname": "level", "name": "logger"}
_PLAIN = (str, int, float, datetime, type(None))


class _PlainJsonFormatter(JsonFormatter):
    """Leaves out objects: Scrapy attaches spider, crawler and others to its records."""

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        plain = {
            name: getattr(each, "name", each) if isinstance(each, Spider) else each
            for name, each in log_data.items()
        }
        return {name: each for name, each in plain.items() if isinstance(each, _PLAIN)}


def make_json_formatter() -> logging.Formatter:
    """Return the formatter: ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``.

    An exception's traceback is in ``exc_info``. Other attributes of a record are kept if they are
    texts, numbers or truth values; a spider gives its name.
    """
    return _PlainJsonFormatter(
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
