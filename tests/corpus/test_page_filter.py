"""Which pages a filter keeps."""

from typing import Any

import pytest
from msgspec.structs import replace

from focused.corpus.page_selection import PageFilter, SelectedPage

PAGE = SelectedPage(
    url="http://www.a.test:8080/",
    host="www.a.test:8080",
    title="",
    relevance=0.8,
    on_topic=True,
    score=0.5,
    depth=1,
    parent=None,
    anchor="",
    language="en",
    duplicate_of=None,
    training=False,
    fetched_at=100.0,
    gone=False,
    model="",
    warc_file="",
    warc_offset=0,
    cluster="",
    cluster_size=1,
)
CONTENT: dict[str, Any] = {"published": "2024-05-01", "robots": (), "words": 60, "failed_rules": ()}


def test_the_default_keeps_pages_on_topic_without_duplicates():
    keeps = PageFilter().keeps_page
    assert keeps(PAGE) and keeps(replace(PAGE, training=True))
    assert not keeps(replace(PAGE, on_topic=False))
    assert not keeps(replace(PAGE, duplicate_of="http://a.test/"))


def test_a_least_relevance_takes_the_place_of_the_threshold():
    keeps = PageFilter(min_relevance=0.5).keeps_page
    assert keeps(replace(PAGE, on_topic=False, relevance=0.5))
    assert not keeps(replace(PAGE, relevance=0.4))
    assert not keeps(replace(PAGE, relevance=None))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ({"hosts": ("a.test",)}, True),
        ({"hosts": ("www.a.test:8080",)}, True),
        ({"hosts": ("test.a",)}, False),
        ({"hosts": ("w.a.test",)}, False),
        ({"not_hosts": ("a.test",)}, False),
        ({"not_hosts": ("b.test",)}, True),
        ({"languages": ("de", "en")}, True),
        ({"languages": ("de",)}, False),
        ({"fetched_since": 100.0}, True),
        ({"fetched_since": 101.0}, False),
        ({"fetched_until": 100.0}, False),
    ],
)
def test_conditions_on_the_row(condition, kept):
    assert PageFilter(**condition).keeps_page(PAGE) is kept


@pytest.mark.parametrize(
    ("condition", "content", "kept"),
    [
        ({}, {}, True),
        ({"min_words": 61}, {}, False),
        ({"published_since": "2024-05-01"}, {}, True),
        ({"published_until": "2024-05-01"}, {}, False),
        ({"published_since": "2024-05-01"}, {"published": ""}, False),
        ({"robots": ("noai",)}, {"robots": ("noai", "nofollow")}, False),
        ({"robots": ("noai",)}, {"robots": ("nofollow",)}, True),
        ({"good_quality": True}, {"failed_rules": ("symbols",)}, False),
        ({}, {"failed_rules": ("symbols",)}, True),
    ],
)
def test_conditions_on_the_content(condition, content, kept):
    assert PageFilter(**condition).keeps_document(**{**CONTENT, **content}) is kept


def test_samples_can_be_left_out():
    assert not PageFilter(samples=False).keeps_page(replace(PAGE, training=True))
