"""A picture of the label page: ``python docs/images/label_page.py crawls/NAME``.

Needs chromium and chromium-driver.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from focused.labelling.session import open_session  # noqa: E402 -- found from here on
from tests.support.label_pages import chromium, served  # noqa: E402 -- likewise

PICTURE = Path(__file__).with_name("label-page.png")


def main() -> None:
    """Take the picture of the first page that is asked about."""
    crawl = Path(sys.argv[1] if len(sys.argv) > 1 else "crawls/parallel-computing")
    with tempfile.TemporaryDirectory() as scratch:
        labels = Path(scratch) / "pictures.labels.jsonl"
        with open_session(crawl, labels) as session, served(session) as at, chromium() as window:
            window.get(at.address)
            while window.find_element("id", "main").get_attribute("aria-busy") != "false":
                time.sleep(0.02)
            time.sleep(0.8)  # the frame's page and the bars come to rest
            window.save_screenshot(str(PICTURE))


if __name__ == "__main__":
    main()
