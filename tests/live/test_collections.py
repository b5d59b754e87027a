"""A crawl of a repository of papers and of a database behind a search form, over loopback."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from focused.web.page import Failed, FailureKind, Fetched
from tests.crawl.test_oai_repository import PAPERS, PapersSite
from tests.support.crawling import Finished, write_topic
from tests.support.hostile_hosts import Asked, Behaviour, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.search_site import HOST, SearchSite
from tests.support.warm import crawl_warm

REPOSITORY = "papers.test"
ADDRESSES = {REPOSITORY: at("127.0.0.71"), HOST: at("127.0.0.72")}
DEEP_WEB = f'\n[deep_web]\nhosts = ["{HOST}"]\nqueries = 12\n'


@dataclass(frozen=True)
class Crawled:
    done: Finished
    papers: PapersSite
    database: SearchSite

    def paths(self, host: str, folder: str) -> set[str]:
        urls = (url for url in self.done.fetched() if f"//{host}:" in url)
        return {path for url in urls if (path := url.split("/", 3)[3]).startswith(folder)}


def answering(site: PapersSite | SearchSite, port: int) -> Behaviour:
    """Answer as the site does in a simulation, where it has no port."""

    async def answer(asked: Asked) -> None:
        url = f"http://{asked.host}{asked.path}"
        found = site.get(url, Failed(url, FailureKind.GONE, 404))
        if not isinstance(found, Fetched):
            await asked.answer(404)
            return
        body = found.body.replace(b"http://papers.test/", f"http://papers.test:{port}/".encode())
        await asked.answer(200, body, Content_Type=found.headers["content-type"])

    return answer


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    folder, papers, database = tmp_path_factory.mktemp("crawl"), PapersSite(30), SearchSite(30)
    with (
        serve_hosts(
            lambda port: {REPOSITORY: answering(papers, port), HOST: answering(database, port)}
        ) as served,
        serve_names(ADDRESSES) as names,
    ):
        topic = write_topic(
            folder,
            served.url(REPOSITORY, "/oai"),
            served.url(HOST),
            politeness="fetch_time_factor = 0",
            scope="private_addresses = true\nnear_duplicates = false",
        )
        text = topic.read_text().replace(
            "embedding = false", 'embedding = false\nkeywords = ["whale"]'
        )
        topic.write_text(text + DEEP_WEB)
        done = crawl_warm(topic, "", FOCUSED_DNS_SERVERS=names.address)
    assert done.status == 0, done.output
    return Crawled(done, papers, database)


def test_all_papers_of_a_repository_that_robots_txt_allows_are_fetched(crawled: Crawled) -> None:
    allowed = {f"papers/{n}" for n in range(PAPERS) if not str(n).startswith("7")}
    assert crawled.paths(REPOSITORY, "papers/") == allowed
    assert len(crawled.papers.repository.requests) == 1 + 3


def test_relevant_records_behind_a_form_are_fetched(crawled: Crawled) -> None:
    relevant = {url.split("/", 3)[3] for url in crawled.database.relevant}
    assert relevant <= crawled.paths(HOST, "record/")
    assert crawled.database.queries[0] == "whale"
    assert len(set(crawled.database.queries)) <= 12
