"""TLS errors, each with its name, and certificates of all kinds."""

import pytest

from tests.live.tls_servers import (
    Certificate,
    Server,
    broken_record,
    half_a_page,
    page,
    says,
    serve_tls,
)
from tests.support.crawling import Finished, crawl, write_topic

FETCHED = {
    "self-signed": Server(page, Certificate()),
    "expired": Server(page, Certificate(days=-3)),
    "of another name": Server(page, Certificate("elsewhere.test")),
}
FAILED = {
    "garbage": (Server(says(bytes(range(256)))), "tls"),
    "plain HTTP": (Server(says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")), "tls"),
    "an alert": (Server(says(b"\x15\x03\x03\x00\x02\x02\x28")), "tls"),
    "a record that no key made": (Server(broken_record(after_s=0.0), Certificate()), "tls"),
    "such a record, later": (Server(broken_record(after_s=0.2), Certificate()), "tls"),
    "closed in the handshake": (Server(says(b"")), "reset"),
    "reset in the body": (Server(half_a_page, Certificate()), "reset"),
    "silence in the handshake": (Server(says(b"", then_silence=True)), "timeout"),
    "a record that does not end": (
        Server(says(b"\x16\x03\x03\x40\x00" + bytes(100), then_silence=True)),
        "timeout",
    ),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, dict[str, str]]:
    folder = tmp_path_factory.mktemp("tls")
    servers = {**FETCHED, **{name: server for name, (server, _) in FAILED.items()}}
    with serve_tls(servers, folder) as urls:
        topic = write_topic(
            folder,
            *urls.values(),
            timeout_s=10.0,
            politeness="max_tries = 1\nsuspend_s = 0",
            scope="private_addresses = true",
        )
        done = crawl(topic, "", timeout_s=90.0)
    assert done.status == 0, done.output
    return done, dict(urls)


@pytest.mark.parametrize("name", FETCHED)
def test_certificates_are_not_verified(crawled, name):
    done, urls = crawled
    assert done.pages.loc[urls[name], "outcome"] == "fetched"


@pytest.mark.parametrize("name", FAILED)
def test_each_trouble_has_its_name(crawled, name):
    done, urls = crawled
    assert done.pages.loc[urls[name], "failure"] == FAILED[name][1]


def test_they_are_verified_for_who_asks_scrapy_to(tmp_path):
    with serve_tls(FETCHED, tmp_path) as urls:
        topic = write_topic(
            tmp_path,
            *urls.values(),
            politeness="max_tries = 1\nsuspend_s = 0",
            scope="private_addresses = true",
        )
        done = crawl(topic, "", DOWNLOAD_VERIFY_CERTIFICATES=True)
        assert set(done.pages["failure"]) == {"tls"}
