"""The log as JSON objects."""

import json
import logging
from pathlib import Path

from scrapy import Spider

from focused.scrapy_addon.json_log import make_json_formatter
from tests.scrapy_addon.own_project import Ran, crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page

SPIDER = """
import logging
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        self.logger.info("a page: %s", response.url)
"""


def objects(text: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"')]


def crawl_logged(folder: Path, **settings: object) -> Ran:
    given = {"FOCUSED_LOG_FORMAT": "json", "LOG_LEVEL": "INFO", **settings}
    project = write_project(folder, SPIDER, settings=given)
    return crawl_web(project, MemoryWeb(page("http://a.test/", html("Whales"))))


def test_each_line_of_a_crawls_log_is_an_object(tmp_path):
    done = crawl_logged(tmp_path, FOCUSED_LOG_TO_FOLDER=True)
    text = (done.project / "out" / "crawl.log").read_text()
    found = objects(text)
    assert len(found) == len(text.splitlines())
    assert {"a page: http://a.test/", "Spider closed (finished)"} <= {
        each["message"] for each in found
    }
    assert all(each.keys() >= {"time", "level", "logger", "message"} for each in found)


def test_without_a_file_it_goes_to_standard_error_in_place_of_text(tmp_path):
    done = crawl_logged(tmp_path)
    assert "a page: http://a.test/" in {each["message"] for each in objects(done.output)}
    assert "INFO: a page" not in done.output


def test_a_message_of_several_lines_stays_on_one():
    record = logging.LogRecord("a.b", logging.INFO, "", 0, "one\ntwo \x1b[31m", (), None)
    line = make_json_formatter().format(record)
    assert "\n" not in line
    assert "\x1b" not in line
    assert json.loads(line)["message"] == "one\ntwo \x1b[31m"


def test_attributes_that_are_objects_are_left_out_and_a_spider_gives_its_name():
    record = logging.LogRecord("a.b", logging.INFO, "", 0, "text", (), None)
    record.__dict__.update(spider=Spider("mine"), crawler=object(), code=7)
    found = json.loads(make_json_formatter().format(record))
    assert found.keys() == {"time", "level", "logger", "message", "spider", "code"}
    assert (found["spider"], found["code"]) == ("mine", 7)


def test_times_are_in_utc():
    record = logging.LogRecord("a.b", logging.INFO, "", 0, "text", (), None)
    record.created = 0.5
    found = json.loads(make_json_formatter().format(record))
    assert found["time"] == "1970-01-01T00:00:00.500000+00:00"
