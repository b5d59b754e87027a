"""A crawl that runs while its pages are labelled."""

import asyncio
import contextlib

from focused.labelling import label_server
from focused.labels.label_file import LabelFile
from tests.labelling.labelled_crawls import session, url_of, write_crawl


def test_what_a_running_crawl_fetches_is_taken_in(tmp_path):
    write_crawl(tmp_path, pages=6)

    async def label_beside_a_crawl() -> None:
        with LabelFile(tmp_path / "l.labels.jsonl") as file:
            asking = session(tmp_path, file)
            keeping_up = asyncio.create_task(
                label_server._refresh_periodically(asking, interval_s=0.02)
            )
            await asyncio.sleep(0.1)
            assert url_of(7) not in asking.crawled.pages
            write_crawl(tmp_path, pages=6, first=6)
            while url_of(7) not in asking.crawled.pages:
                await asyncio.sleep(0.02)
            assert asking.progress().pages == 12
            keeping_up.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping_up

    asyncio.run(asyncio.wait_for(label_beside_a_crawl(), timeout=60))
