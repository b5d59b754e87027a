"""Classifiers that fail over some pages, or in the process that they are sent to.

A parser process imports this module, and neither Scrapy nor pytest with it.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from focused.web.page import Classification, Page
from tests.support.whale_models import WhaleClassifier


class Moody(WhaleClassifier):
    """Breaks over some pages, and dies over others."""

    def classify(self, page: Page) -> Classification:
        if "poison" in page.text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "riddle" in page.text:
            raise ValueError("no idea")
        if "spin" in page.text:
            while True:
                pass
        if "doze" in page.text:
            time.sleep(600)
        if "stop" in page.text:
            os.kill(os.getpid(), signal.SIGSTOP)
        if "hoard" in page.text:
            bytearray(2_000_000_000)
        return super().classify(page)


class Killed(WhaleClassifier):
    """Is killed with its process over as many pages as ``times``; ``kills`` is a file of them."""

    def __init__(self, kills: Path, times: int) -> None:
        super().__init__()
        self.kills = kills
        self.times = times

    def classify(self, page: Page) -> Classification:
        with self.kills.open("a+") as kills:
            if kills.tell() < self.times:
                kills.write("x")
                kills.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().classify(page)


class Unloadable(WhaleClassifier):
    """Ends the process that it is sent to."""

    def __reduce__(self) -> tuple[Callable[[int], None], tuple[int]]:
        return os._exit, (3,)


class Unsendable(WhaleClassifier):
    def __reduce__(self) -> str:
        raise TypeError("not to be sent")
