"""Scrapy's own commands in a project with the add-on work as in stock Scrapy."""

from pathlib import Path

import pytest

from tests.scrapy_addon.own_project import Ran, scrapy, write_project
from tests.support.crawling import ROOT, write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served

SPIDER = """
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    allowed_domains = ["a.test"]

    def parse(self, response):
        '''Finds the title.

        @url http://a.test/
        @returns items 1 1
        '''
        yield {"title": response.css("title::text").get()}
"""


def web() -> MemoryWeb:
    return MemoryWeb(page("http://a.test/", html("Whales ahoy")))


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        (["shell", "http://a.test/", "-c", "response.css('title::text').get()"], "Whales ahoy"),
        (["fetch", "http://a.test/"], "<title>Whales ahoy</title>"),
        (["parse", "http://a.test/", "--nocolour"], "[{'title': 'Whales ahoy'}]"),
        (["check"], "Ran 1 contract"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_a_command_that_borrows_a_spider_works_and_leaves_the_crawls_folder_alone(
    tmp_path, command, shows
):
    project = write_project(tmp_path, SPIDER, "http://a.test/")
    with served(web()) as site:
        done = scrapy(project, *command, "-s", f"FOCUSED_REPLAY={site.address}")
    assert done.status == 0, done.output
    assert shows in done.output
    assert not (tmp_path / "out").exists()


def test_the_replay_holds_for_commands_too(tmp_path):
    """A host that the replayed web lacks is not looked up, and not asked on the live Web."""
    project = write_project(tmp_path, SPIDER, "http://a.test/")
    with served(web()) as site:
        done = scrapy(
            project, "fetch", "http://other.test/", "-s", f"FOCUSED_REPLAY={site.address}"
        )
    assert "CannotResolveHostError" in done.output or "NoSuchHostError" in done.output


def documented(language: str) -> str:
    """The first code block of a language in the reference of ``scrapy crawl topic``."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## scrapy crawl topic")
    return section.partition(f"```{language}\n")[2].partition("```")[0]


def crawl_topic(folder: Path) -> Ran:
    write_topic(folder, "http://a.test/")
    with served(web()) as site:
        settings = (
            f"FOCUSED_REPLAY={site.address}",
            "FOCUSED_MODELS=tests.support.whale_models.fixed_models",
        )
        options = [word for setting in settings for word in ("-s", setting)]
        return scrapy(folder, "crawl", "topic", "-a", "topic=whales.toml", *options)


def test_the_topic_spider_runs_in_a_folder_with_the_documented_file(tmp_path):
    (tmp_path / "scrapy.cfg").write_text(documented("ini"))
    done = crawl_topic(tmp_path)
    assert (done.status, done.stats["fetched"]) == (0, 1), done.output


def test_the_topic_spider_runs_in_a_project_with_the_documented_settings(tmp_path):
    project = write_project(tmp_path, SPIDER, "http://a.test/")
    settings = project / "mine" / "settings.py"
    settings.write_text(f'SPIDER_MODULES = ["mine.spiders"]\n{documented("python")}')
    done = crawl_topic(project)
    assert (done.status, done.stats["fetched"]) == (0, 1), done.output
