"""Items go to a search server while the crawl runs."""

from __future__ import annotations

from pathlib import Path

from focused.corpus.page_selection import url_hash
from focused.search.search_servers import document_id
from tests.support.bulk_server import REFUSED, indexing_server
from tests.support.corpus_crawl import ARTICLE, corpus_web
from tests.support.crawling import crawl, write_topic
from tests.support.own_project import Ran, crawl_own, write_project
from tests.support.recorded_web import MemoryWeb, html, page, served

SPIDER = """
import json
from pathlib import Path
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        for number in range(250):
            title = "refused" if number in (7, 130) else f"whale {number}"
            yield {"url": f"http://a.test/{number}", "title": title, "tags": ["sea"]}
        yield {"no": "url"}

    def closed(self, reason):
        stats = self.crawler.stats.get_stats()
        ours = {name: value for name, value in stats.items() if name.startswith("focused/index")}
        Path("index-stats.json").write_text(json.dumps(ours))
"""


def crawl_with(folder: Path, url: str) -> Ran:
    project = write_project(folder, SPIDER, settings={"FOCUSED_INDEX_URL": url})
    with served(MemoryWeb(page("http://a.test/", html("Whales")))) as site:
        return crawl_own(project, "-s", f"FOCUSED_REPLAY={site.address}")


def test_items_of_any_spider_are_indexed_in_batches(tmp_path: Path) -> None:
    with indexing_server() as server:
        done = crawl_with(tmp_path, f"opensearch+http://{server.address}/whales")
    assert done.status == 0, done.output
    assert len(server.documents) == 248
    assert server.updates == 3
    assert server.commits == 1
    document = server.documents[document_id(url_hash("http://a.test/9"))]
    assert (document["title"], document["tags"]) == ("whale 9", ["sea"])
    assert REFUSED not in {each["title"] for each in server.documents.values()}
    stats = (tmp_path / "index-stats.json").read_text()
    assert stats == '{"focused/indexed": 248, "focused/index_failures": 2}'


def test_a_server_that_does_not_answer_stops_the_crawl_at_its_start(tmp_path: Path) -> None:
    done = crawl_with(tmp_path, "opensearch+http://ahab:secret@127.0.0.1:1/whales")
    assert "FOCUSED_INDEX_URL: http://127.0.0.1:1/whales: " in done.output
    assert "secret" not in done.output
    assert done.stats["fetched"] == 0


def test_pages_of_the_topic_spider_are_indexed_with_their_texts(tmp_path: Path) -> None:
    web = MemoryWeb(*(page(each.url, each.body) for each in corpus_web().values()))
    topic = write_topic(tmp_path, "http://a.test/")
    with indexing_server() as server, served(web) as site:
        to = f"solr+http://{server.address}/solr/whales"
        done = crawl(topic, site.address, FOCUSED_INDEX_URL=to)
    assert done.status == 0, done.output
    article = server.documents[document_id(url_hash(ARTICLE))]
    assert article["text"].startswith("Whales of the sea")
    assert article["published"] == "2024-03-05"
