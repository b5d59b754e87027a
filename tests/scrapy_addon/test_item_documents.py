"""Texts and metadata in the items of the topic spider, on demand."""

import asyncio
import json
from collections.abc import Iterator

import msgspec
import pytest
from scrapy.http import HtmlResponse

from focused.parser_process import HandlerError, ParsingLimits, ParsingStoppedError
from focused.scrapy_addon.item_documents import (
    ITEM_FIELDS,
    ItemDocuments,
    extract_fields,
    parse_item_fields,
)
from focused.web.page import FailureKind
from tests.support.corpus_crawl import ARTICLE, corpus_web
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, page, served


def response(url: str = ARTICLE) -> HtmlResponse:
    fetched = corpus_web()[url]
    return HtmlResponse(url, headers=dict(fetched.headers), body=fetched.body)


class Asked:
    """Stands for the parser process."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def ask(self, message: bytes) -> bytes:
        if self.error is not None:
            raise self.error
        self.answer = extract_fields(message)
        return self.answer

    def close(self) -> None:
        pass


@pytest.fixture
def documents() -> Iterator[ItemDocuments]:
    made = ItemDocuments(ParsingLimits())
    yield made
    made.close()


def test_fields_are_those_of_an_export(documents):
    documents._process = Asked()  # type: ignore[assignment]  # starting a process takes a second
    found = asyncio.run(documents.fields_of(response(), ITEM_FIELDS))
    assert found["text"].startswith("Whales of the sea\n\nThe whale eats krill")
    assert found["markdown"].startswith("# Whales of the sea\n\n")
    assert {name: found[name] for name in ITEM_FIELDS[2:]} == {
        "published": "2024-03-05",
        "modified": None,
        "authors": ["Ada Krill"],
        "licences": ["https://creativecommons.org/licenses/by/4.0/"],
        "robots": ["noai", "noarchive"],
    }


def test_markdown_is_rendered_in_the_parser_process(documents):
    process = documents._process = Asked()  # type: ignore[assignment]
    found = asyncio.run(documents.fields_of(response(), ["markdown"]))
    assert msgspec.msgpack.decode(process.answer) == found


@pytest.mark.parametrize(
    "error", [HandlerError("odd"), ParsingStoppedError(FailureKind.PARSE_TIMEOUT, "long")]
)
def test_a_page_that_cannot_be_extracted_has_an_empty_text(documents, error):
    documents._process = Asked(error)  # type: ignore[assignment]
    found = asyncio.run(documents.fields_of(response(), ["text", "published"]))
    assert found == {"text": "", "published": None}


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (None, ()),
        ("", ()),
        ("text, published,text", ("text", "published")),
        (["markdown"], ("markdown",)),
    ],
)
def test_the_setting_is_a_list_or_a_text(value, fields):
    assert parse_item_fields(value) == fields  # type: ignore[arg-type]


def test_feeds_of_the_topic_spider_have_the_fields(tmp_path):
    pages = corpus_web().values()
    web = MemoryWeb(*(page(each.url, each.body) for each in pages))
    topic = write_topic(tmp_path, "http://a.test/")
    feeds = json.dumps({str(tmp_path / "items.jsonl"): {"format": "jsonlines"}})
    with served(web) as site:
        done = crawl(topic, site.address, FOCUSED_ITEM_FIELDS="text,published", FEEDS=feeds)
    assert done.status == 0, done.output
    lines = (tmp_path / "items.jsonl").read_text("utf-8").splitlines()
    items = {item["url"]: item for item in map(json.loads, lines)}
    assert items[ARTICLE]["published"] == "2024-03-05"
    assert "return  len(whales)" in items[ARTICLE]["text"]
    assert items[ARTICLE]["relevance"] == 0.9
    assert "markdown" not in items[ARTICLE]
