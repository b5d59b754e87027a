"""Scrapy's signals of downloads, sent only if anybody listens."""

from __future__ import annotations

from typing import Any

from pydispatch.dispatcher import (  # type: ignore[import-untyped]  # used by Scrapy's signals
    Any as AnyOf,
)
from pydispatch.dispatcher import connections
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure


class ListenedSignals(SignalManager):
    """Sends the signals of a crawler; one that nobody listens to costs little."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler.signals.sender)

    def send_catch_log(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        """See Scrapy."""
        for sender in (self.sender, AnyOf):
            listened = connections.get(id(sender), ())
            if signal in listened or AnyOf in listened:
                return super().send_catch_log(signal, **values)
        return []

    def asks_to_stop(self, signal: Any, **values: Any) -> StopDownload | None:
        """Send a signal; return the exception of a listener that stops the download."""
        for _, result in self.send_catch_log(signal, **values):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                return result.value
        return None
