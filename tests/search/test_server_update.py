"""A search server is brought up to date with a crawl."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from focused.corpus.page_selection import PageFilter, url_hash
from focused.errors import SearchError
from focused.search import server_update
from focused.search.search_servers import (
    Document,
    RejectedDocument,
    SearchServer,
    ServerAddress,
    connect,
    document_id,
    parse_address,
)
from focused.search.server_update import ServerUpdateResult, update_server
from tests.search.bulk_server import indexing_server
from tests.support.command import focused
from tests.support.corpus_crawl import (
    ARTICLE,
    EVIL,
    EVIL_TITLE,
    GERMAN,
    HOME,
    OTHER,
    SHIPS,
    crawl_corpus_web,
)
from tests.support.in_this_process import in_this_process  # noqa: F401  # a fixture

ON_TOPIC = {HOME, ARTICLE, GERMAN, EVIL, OTHER}
ADDRESS = ServerAddress("solr", "http://localhost/solr/whales", "")


class MemoryServer:
    """Keeps documents; fails at the call of that number."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.refused: frozenset[str] = frozenset()
        self.is_new = False
        self.sent: list[str] = []
        self.fails_at = -1

    def prepare(self) -> bool:
        return self.is_new

    def send(self, documents: Sequence[Document]) -> list[RejectedDocument]:
        if len(self.sent) >= self.fails_at >= 0:
            raise SearchError("down")
        self.sent += (each["url"] for each in documents)
        good = [each for each in documents if each["url"] not in self.refused]
        self.documents |= {each["id"]: each for each in good}
        return [
            RejectedDocument(each["id"], "no") for each in documents if each["url"] in self.refused
        ]

    def delete(self, ids: Sequence[str]) -> None:
        for each in ids:
            self.documents.pop(each, None)

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def urls(self) -> set[str]:
        return {each["url"] for each in self.documents.values()}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawl_corpus_web(tmp_path_factory.mktemp("crawl"))


@pytest.fixture
def crawl(crawled: Path) -> Iterator[Path]:
    """The folder of a crawl that no server has yet."""
    yield crawled
    for file in (crawled / "search" / "servers").glob("*"):
        file.unlink()


def update(crawl: Path, server: SearchServer, **options: Any) -> ServerUpdateResult:
    chosen = PageFilter(**options.pop("pages", {}))
    return update_server(crawl, server, ADDRESS, chosen, now=0.0, **options)


def test_the_server_gets_the_pages_on_topic_with_texts_and_metadata(crawl):
    server = MemoryServer()
    result = update(crawl, server)
    assert server.urls == ON_TOPIC
    assert (result.pages, result.documents, result.rejected) == (5, 5, 0)
    article = server.documents[document_id(url_hash(ARTICLE))]
    assert article["title"] == "Whales of the sea"
    assert "def count(whales)" in article["text"]
    assert article["published"] == "2024-03-05"
    assert article["authors"] == ["Ada Krill"]
    assert article["anchors"] == ["the whale article"]
    assert article["on_topic"] is True
    assert "modified" not in article


def test_a_second_update_sends_nothing(crawl):
    server = MemoryServer()
    update(crawl, server)
    server.sent.clear()
    assert update(crawl, server).pages == 0
    assert server.sent == []


def test_an_interrupted_update_goes_on(crawl, monkeypatch):
    monkeypatch.setattr(server_update, "_PAGES_PER_BATCH", 2)
    server = MemoryServer()
    server.fails_at = 2
    with pytest.raises(SearchError):
        update(crawl, server)
    server.fails_at = -1
    assert update(crawl, server).pages == 3
    assert sorted(server.sent) == sorted(ON_TOPIC)


def test_pages_that_no_longer_pass_are_deleted(crawl):
    server = MemoryServer()
    update(crawl, server)
    result = update(crawl, server, pages={"hosts": ("a.test",), "min_words": 60})
    assert result.removed == 1
    assert result.empty >= 1
    assert server.urls < ON_TOPIC - {OTHER}


def test_a_refused_document_is_sent_again_later(crawl):
    server = MemoryServer()
    server.refused = frozenset({EVIL})
    result = update(crawl, server)
    assert (result.documents, result.rejected, len(result.reasons)) == (5, 1, 1)
    server.refused = frozenset()
    assert update(crawl, server).documents == 1
    assert server.urls == ON_TOPIC


def test_chunks_replace_pages_and_pages_replace_chunks(crawl):
    server = MemoryServer()
    update(crawl, server, chunk_chars=200)
    key = url_hash(ARTICLE)
    chunks = server.documents[document_id(key, 0)]["chunks"]
    assert chunks > 2
    assert document_id(key, chunks - 1) in server.documents
    assert document_id(key, chunks) not in server.documents
    update(crawl, server)
    assert set(server.documents) == {document_id(url_hash(url)) for url in ON_TOPIC}


def test_an_index_that_was_removed_is_filled_again(crawl):
    update(crawl, MemoryServer())
    server = MemoryServer()
    server.is_new = True
    update(crawl, server)
    assert server.urls == ON_TOPIC


def test_fresh_sends_everything(crawl):
    server = MemoryServer()
    update(crawl, server)
    assert update(crawl, server, fresh=True).documents == 5


def test_the_command_sends_a_crawl(crawl, monkeypatch):
    monkeypatch.setenv("FOCUSED_INDEX_PASSWORD", "krill")
    with indexing_server() as server:
        server.require("ahab", "krill")
        to = f"opensearch+http://ahab@{server.address}/whales"
        done = focused("index", crawl, to, "--min-relevance", "0")
        assert "sent 6 documents of 6 pages to http://127.0.0.1" in done.stderr
        assert {each["url"] for each in server.documents.values()} == {*ON_TOPIC, SHIPS}
        assert server.documents[document_id(url_hash(EVIL))]["title"] == EVIL_TITLE.strip()


def test_a_wrong_address_is_an_error_of_the_command(crawl):
    done = focused("index", crawl, "http://localhost/whales", status=2)
    assert "SERVER: the server's address must be like opensearch+https://" in done.stderr


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # osmem's
def test_an_engine_finds_the_pages(crawl):
    """osmem: an independent implementation of OpenSearch's API, in memory."""
    osmem = pytest.importorskip("osmem_server")
    with osmem.OsmemServer.start() as engine:
        address = parse_address(f"opensearch+{engine.url}/whales", {})
        server = connect(address)
        update_server(crawl, server, address, PageFilter(), now=0.0)
        client = server._client  # type: ignore[attr-defined]
        by_word = {"query": {"match": {"text": "fluke"}}, "size": 20}
        by_day = {"query": {"range": {"published": {"gte": "2024-03-01"}}}}
        by_host = {"query": {"term": {"host": "whales.example.org"}}}
        assert found(client, by_word) == ON_TOPIC
        assert found(client, by_day) == {ARTICLE}
        assert found(client, by_host) == {OTHER}
        update_server(crawl, server, address, PageFilter(hosts=("a.test",)), now=0.0)
        assert found(client, by_host) == set()
        server.close()


def found(client: Any, query: dict[str, Any]) -> set[str]:
    hits = client.search(index="whales", body=query)["hits"]["hits"]
    return {hit["_source"]["url"] for hit in hits}
