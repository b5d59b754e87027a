"""Crawls in rounds whose states are in shared storage of each kind, as users start them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import shared_storages
from tests.support.recorded_web import MemoryWeb, served
from tests.support.round_crawls import (
    RoundCrawl,
    impolite,
    requests_of_pages,
    ring_web,
    round_crawl,
)
from tests.support.shared_storages import new_bucket
from tests.support.small_disk import SmallDisk

pytestmark = pytest.mark.long
s3_server = shared_storages.s3_server
HOSTS, PAGES, DELAY_S = 12, 12, 0.05
EVERY_PAGE = {f"http://h{h}.test/{n}": 1 for h in range(HOSTS) for n in range(PAGES)}


@pytest.fixture(scope="module")
def web() -> MemoryWeb:
    return ring_web(HOSTS, PAGES)


def kill_one_in_the_second_round(crawl: RoundCrawl) -> None:
    before = crawl.rounds()
    crawl.wait_for(lambda: crawl.rounds() > before + 1, "a round")
    crawl.wait_for(lambda: len(crawl.processes()) == 3, "all processes")
    os.kill(crawl.processes()[0], signal.SIGKILL)


def test_a_crawl_on_s3_survives_the_loss_of_a_process(
    tmp_path: Path, web: MemoryWeb, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = new_bucket(s3_server, monkeypatch)
    with (
        served(web) as site,
        round_crawl(tmp_path, site, delay_s=DELAY_S, storage=f"{bucket}/crawls") as crawl,
    ):
        driver = crawl.start()
        kill_one_in_the_second_round(crawl)
        assert driver.wait(200) == 0, crawl.log.read_text()
        assert crawl.fetched() == EVERY_PAGE
        assert not impolite(site, DELAY_S)
        assert requests_of_pages(site).total() <= 2 * len(EVERY_PAGE)


class FaultyServer:
    """An S3 server that is slow, and refuses some requests."""

    def __init__(self, chance: float, delay_s: float) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.chance, self.refused = 0.0, 0
        self._wanted, self._delay_s = chance, delay_s
        self._random = random.Random(5)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> FaultyServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()

    def begin(self) -> None:
        """Refuse and wait from now on."""
        self.chance = self._wanted

    def end(self) -> None:
        """Answer at once from now on."""
        self.chance = self._delay_s = 0.0

    def _answer(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.chance:
            time.sleep(self._delay_s)
        if self._random.random() < self.chance:
            self.refused += 1
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>not now</Message></Error>"]
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer


@pytest.mark.parametrize(("chance", "delay_s"), [(0.2, 0.0), (0.01, 0.3)])
def test_storage_that_fails_or_is_slow_loses_nothing(
    tmp_path: Path, web: MemoryWeb, chance: float, delay_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyServer(chance, delay_s) as server, served(web) as site:
        bucket = new_bucket(server.address, monkeypatch)
        with round_crawl(tmp_path, site, delay_s=DELAY_S, storage=f"{bucket}/crawls") as crawl:
            driver = crawl.start()
            crawl.wait_for(lambda: len(crawl.processes()) == 3, "all processes")
            server.begin()
            assert driver.wait(280) == 0, crawl.log.read_text()
            server.end()
            assert crawl.fetched() == EVERY_PAGE
        assert server.refused
        assert not impolite(site, DELAY_S)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with SmallDisk(tmp_path / "disk", kib=4_000) as disk:
        yield disk


def fill(file: Path) -> None:
    """Make a file as large as the disk allows."""
    with suppress(OSError), file.open("ab", buffering=0) as opened:
        while opened.write(bytes(4_096)):
            pass


@SmallDisk.needed
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_crawl_goes_on_when_its_storage_can_be_written_again(
    tmp_path: Path, web: MemoryWeb, disk: SmallDisk, fault: str
) -> None:
    storage = f"file://{disk.seen_from_here}"
    with (
        served(web) as site,
        round_crawl(tmp_path, site, delay_s=DELAY_S, storage=storage) as crawl,
    ):
        driver = crawl.start()
        crawl.wait_for(lambda: crawl.rounds() > 2, "a round")
        filler = disk.seen_from_here / "filler"
        if fault == "read-only":
            disk.make_read_only()

        def has_failed() -> bool:
            if fault == "full":
                fill(filler)  # the crawl frees space, too
            expected = "No space left" if fault == "full" else "Read-only file system"
            return expected in crawl.log.read_text()

        crawl.wait_for(has_failed, "an error")
        if fault == "full":
            filler.unlink()
        else:
            disk.make_writable()
        assert driver.wait(200) == 0, crawl.log.read_text()
        assert crawl.fetched() == EVERY_PAGE
        assert not impolite(site, DELAY_S)
