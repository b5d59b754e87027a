"""Pictures of the label page at work: ``python docs/images/label_page.py crawls/NAME``.

Labels go into a file that is thrown away. Needs chromium and chromium-driver. The answers
are those of a reader in a hurry: yes when the page begins with enough words of the
topic's description.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from focused.labelling.session import open_session  # noqa: E402 -- found from here on
from tests.support.label_pages import chromium, served  # noqa: E402 -- likewise

FOLDER = ROOT / "docs" / "images"
ANSWERS = 90
ENOUGH_WORDS = 3
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


def main() -> None:
    """Label, and take a picture now and then."""
    crawl = Path(sys.argv[1] if len(sys.argv) > 1 else "crawls/parallel-computing")
    with tempfile.TemporaryDirectory() as scratch:
        labels = Path(scratch) / "pictures.labels.jsonl"
        with open_session(crawl, labels) as session, served(session) as at:
            words = set(re.findall(r"[a-z]{4,}", session.task.description.lower()))
            with chromium() as window:
                _open(window, at.address)
                _picture(window, 1)
                _answer(window, words)
                _picture(window, 2)
                _until(window, words, "may be wrong")
                _picture(window, 3)
                for _ in range(ANSWERS):
                    _answer(window, words)
                _until(window, words, "uncertain")
                _picture(window, 4)
            with chromium(dark=True) as window:
                _open(window, at.address)
                _picture(window, 5)
                window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
                _answer(window, words)
                _picture(window, 6)


def _open(window: Any, address: str) -> None:
    window.get(address)
    _settle(window)


def _answer(window: Any, words: set[str]) -> None:
    begins = window.find_element("id", "text").get_attribute("textContent")[:3_000].lower()
    found = sum(begins.count(word.rstrip("s")) for word in words)
    window.find_element("id", "yes" if found >= ENOUGH_WORDS else "no").click()
    _settle(window)


def _until(window: Any, words: set[str], reason: str) -> None:
    """Answer until a page is shown for that reason."""
    for _ in range(12):
        if reason in window.find_element("id", "reason").text:
            return
        _answer(window, words)


def _settle(window: Any) -> None:
    for _ in range(200):
        if window.find_element("id", "main").get_attribute("aria-busy") == "false":
            return
        time.sleep(0.02)


def _picture(window: Any, number: int) -> None:
    time.sleep(0.8)  # the frame's page and the bars come to rest
    window.save_screenshot(str(FOLDER / f"label-page-{number}.png"))


if __name__ == "__main__":
    main()
