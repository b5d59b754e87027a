"""Pictures of the console at work: ``python docs/images/console.py`` (a minute).

Crawls the default topic on ``webs/docweb-small`` slowly, into a folder that is thrown away. Needs
chromium and chromium-driver.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from focused.console.server import find_crawl_folders  # noqa: E402 -- found from here on
from tests.support.label_pages import chromium  # noqa: E402 -- likewise

FOLDER = ROOT / "docs" / "images"
FOCUSED = (sys.executable, "-m", "focused.cli")
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
CRAWL_S = 45.0


def main() -> None:
    """Crawl, look, and take pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "parallel-computing"
        crawl = subprocess.Popen(
            (*FOCUSED, "crawl", "topics/parallel-computing.toml", "--web", "webs/docweb-small",
             "--delay-s", "0.5", "--folder", str(folder)),
            cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        while not find_crawl_folders([folder]):
            time.sleep(0.2)
        console = subprocess.Popen(
            (*FOCUSED, "ui", scratch, "--no-browser"), stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        try:
            assert console.stdout is not None
            _take_pictures(console.stdout.readline().split()[-1])
        finally:
            console.terminate()
            crawl.terminate()
            console.wait(10)
            crawl.wait(60)


def _take_pictures(address: str) -> None:
    with chromium() as window:
        window.get(address)
        time.sleep(CRAWL_S)
        window.save_screenshot(str(FOLDER / "console-1.png"))
        _show(window, "frontier", 2)
    with chromium(dark=True) as window:
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        window.get(address)
        time.sleep(3)
        _show(window, "hosts", 3)


def _show(window: Any, view: str, number: int) -> None:
    window.find_element("id", f"tab-{view}").click()
    time.sleep(2)
    window.save_screenshot(str(FOLDER / f"console-{number}.png"))


if __name__ == "__main__":
    main()
