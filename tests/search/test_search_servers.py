"""Sending documents to OpenSearch, Elasticsearch and Solr by their clients."""

import socket
from collections.abc import Callable, Iterator

import pytest

from focused.errors import ConfigurationError, SearchError
from focused.search.search_servers import (
    API_KEY,
    CLIENT_LIBRARIES,
    MAPPINGS,
    PASSWORD,
    SearchServer,
    connect,
    parse_address,
)
from tests.search.bulk_server import REFUSED, IndexingServer, indexing_server

Connecting = Callable[..., SearchServer]


@pytest.fixture
def server() -> Iterator[IndexingServer]:
    with indexing_server() as serving:
        yield serving


@pytest.fixture(params=CLIENT_LIBRARIES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connecting(server: IndexingServer, kind: str) -> Iterator[Connecting]:
    """Connects to the server, with pauses of a millisecond."""
    opened: list[SearchServer] = []

    def connect_to(user: str = "", **environment: str) -> SearchServer:
        path = "solr/whales" if kind == "solr" else "whales"
        at = f"{user}@" if user else ""
        address = parse_address(f"{kind}+http://{at}{server.address}/{path}", environment)
        opened.append(connect(address, pause_s=0.001))
        return opened[-1]

    yield connect_to
    for each in opened:
        each.close()


def test_documents_are_indexed_replaced_and_deleted_by_id(server, connecting):
    index = connecting()
    index.prepare()
    assert index.send([{"id": "1", "title": "Wal"}, {"id": "2", "title": "krill\n\x1b"}]) == []
    assert index.send([{"id": "1", "title": "Whale"}]) == []
    index.delete(["2", "7"])
    index.refresh()
    assert server.documents == {"1": {"id": "1", "title": "Whale"}}
    assert server.commits == 1


def test_a_server_that_does_not_listen_is_an_error_in_plain_words(kind):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        path = "solr/whales" if kind == "solr" else "whales"
        address = parse_address(f"{kind}+http://u:secret@127.0.0.1:{port}/{path}", {})
        index = connect(address, pause_s=0.001)
        with pytest.raises(SearchError) as refused:
            index.prepare()
        index.close()
    assert str(refused.value) == f"{address}: the server cannot be reached: Connection refused"
    assert "secret" not in str(refused.value)


def test_a_missing_index_is_created_with_types(server, connecting, kind):
    if kind == "solr":
        assert not connecting().prepare()  # a core must exist
        return
    assert connecting().prepare()
    assert server.mappings == MAPPINGS
    assert not connecting().prepare()


def test_documents_that_the_server_refuses_are_returned_and_the_others_indexed(server, connecting):
    documents = [{"id": str(n), "title": REFUSED if n in (3, 4) else "whale"} for n in range(9)]
    rejected = connecting().send(documents)
    assert [each.id for each in rejected] == ["3", "4"]
    assert "it is refused" in rejected[0].reason
    assert sorted(server.documents) == [*"012", *"5678"]


def test_a_busy_server_is_asked_again(server, connecting):
    server.busy = 2
    assert connecting().send([{"id": "1", "title": "whale"}]) == []
    assert server.documents and server.updates == 3


@pytest.mark.parametrize("kind", ["opensearch", "elasticsearch"], indirect=True)
def test_single_documents_that_a_busy_server_refuses_are_sent_again(server, connecting):
    server.busy_items = 2
    assert connecting().send([{"id": str(n)} for n in range(4)]) == []
    assert sorted(server.documents) == [*"0123"]


def test_user_and_password(server, connecting):
    server.require("ahab", "p@ss")
    with pytest.raises(SearchError, match=PASSWORD):
        connecting("ahab").send([{"id": "1"}])
    assert connecting("ahab", **{PASSWORD: "p@ss"}).send([{"id": "1"}]) == []
    assert connecting("ahab:p%40ss").send([{"id": "1"}]) == []


@pytest.mark.parametrize(
    "text",
    [
        "http://host/whales",
        "lucene+http://host/whales",
        "solr+ftp://host/solr/whales",
        "opensearch+https://host:9200",
        "opensearch+https:///whales",
        "opensearch+https://host:port/whales",
        "opensearch+https://u:secret@host/whales?x=1",
        "elasticsearch+https://[::1/whales",
    ],
)
def test_an_address_of_another_form_is_refused_without_its_password(text):
    with pytest.raises(ConfigurationError, match="address") as refused:
        parse_address(text, {})
    assert "secret" not in str(refused.value)


def test_parts_of_an_address():
    address = parse_address(
        "elasticsearch+https://me@[::1]:9200/search/whales", {API_KEY: "abc"}, "ca.pem"
    )
    assert str(address) == "https://[::1]:9200/search/whales"
    assert (address.url, address.index) == ("https://[::1]:9200/search", "whales")
    assert (address.user, address.api_key, address.ca_certs) == ("me", "abc", "ca.pem")
    assert "abc" not in repr(address)


def test_only_elasticsearch_has_api_keys():
    with pytest.raises(ConfigurationError, match=API_KEY):
        connect(parse_address("solr+http://host/solr/whales", {API_KEY: "abc"}))
