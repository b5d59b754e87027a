"""The add-on in somebody else's process: nothing outside of its crawl is changed."""

import json
from pathlib import Path
from typing import Any

from tests.scrapy_addon.own_project import scrapy, write_project
from tests.support.recorded_web import MemoryWeb, html, page, served

SPIDER = """
import gc, json, locale, logging, multiprocessing, os, random, resource, signal, warnings
from pathlib import Path
import scrapy

gc.unfreeze()  # tests/support/forked.py freezes what a process inherits

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        pass

    def closed(self, reason):
        root = logging.getLogger()
        Path("process.json").write_text(json.dumps({
            "gc.threshold": gc.get_threshold(),
            "gc.frozen": gc.get_freeze_count(),
            "gc.enabled": gc.isenabled(),
            "logging.raiseExceptions": logging.raiseExceptions,
            "logging.level": root.level,
            "logging.disabled": root.manager.disable,
            "logging.filters": len(root.filters),
            "logging.handlers": [type(each).__name__ for each in root.handlers],
            "warnings": [str(each) for each in warnings.filters if each[3] is None],
            "start method": multiprocessing.get_start_method(allow_none=True),
            "signals": [str(signal.getsignal(each)).split(" at 0x")[0]
                        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU)],
            "limits": [resource.getrlimit(each)
                       for each in (resource.RLIMIT_AS, resource.RLIMIT_CPU)],
            "locale": locale.setlocale(locale.LC_ALL),
            "environment": sorted(os.environ.items()),
            "umask": os.umask(os.umask(0o22)),
        }))
"""
WEB = MemoryWeb(page("http://a.test/", html("Whales", "/1")), page("http://a.test/1", html("One")))


def process_after(folder: Path, address: str, **settings: Any) -> dict[str, Any]:
    project = write_project(folder, SPIDER, settings={"COMMANDS_MODULE": "", **settings})
    ran = scrapy(project, "crawl", "mine", "-s", f"FOCUSED_REPLAY={address}")
    assert ran.status == 0, ran.output
    found: dict[str, Any] = json.loads((project / "process.json").read_text())
    return found


def test_a_crawl_with_the_add_on_leaves_the_process_as_a_crawl_without_it(tmp_path):
    with served(WEB) as site:
        without = process_after(tmp_path / "without", site.address, ADDONS={}, RETRY_ENABLED=False)
        found = process_after(tmp_path / "with", site.address)
    # A library that is imported by one of the two may ignore its own warnings.
    assert set(found.pop("warnings")) <= set(without.pop("warnings"))
    assert found == without


def test_our_own_commands_may_tune_the_garbage_collector(tmp_path):
    ours = "focused.scrapy_addon.commands"
    with served(WEB) as site:
        found = process_after(tmp_path, site.address, COMMANDS_MODULE=ours)
    assert found["gc.frozen"] > 0
    assert found["gc.threshold"][0] == 20_000
