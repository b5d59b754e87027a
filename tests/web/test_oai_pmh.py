"""OAI-PMH responses as records, and as pages of links."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.decoding import CONTINUATION_PATH, is_feed
from focused.web.feed_entries import FeedEntry
from focused.web.feeds import parse_feed, parse_feed_entries
from focused.web.oai_pmh import MAX_TARGETS, read_oai_entries
from focused.web.page import Fetched
from tests.support.oai_repository import BASE, Repository, header, oai, record

LIST = f"{BASE}?verb=ListRecords&metadataPrefix=oai_dc"


def read(inside: str, url: str = LIST) -> list[FeedEntry]:
    return list(read_oai_entries(oai(inside), url))


def urls(inside: str, url: str = LIST) -> list[str]:
    return [entry.url for entry in read(inside, url)]


def targets(*identifiers: str) -> list[str]:
    return urls(f"<ListRecords>{record(1, *identifiers)}</ListRecords>")


@pytest.mark.parametrize(
    ("identifiers", "expected"),
    [
        (["http://papers.test/1"], ["http://papers.test/1"]),
        (["HTTPS://Papers.Test/1#top"], ["https://papers.test/1"]),
        (["doi:10.1000/a b", "http://papers.test/1"], ["http://papers.test/1"]),
        (["doi:10.1000/182"], ["https://doi.org/10.1000/182"]),
        (["10.1002/(SICI)1<2>3"], ["https://doi.org/10.1002/(SICI)1%3C2%3E3"]),
        (["ISBN 3-16-148410-0", "ftp://papers.test/1", "http://"], []),
        (
            [f"http://papers.test/{n}" for n in range(9)],
            [f"http://papers.test/{n}" for n in range(MAX_TARGETS)],
        ),
    ],
)
def test_the_pages_of_a_record_are_its_urls_or_its_doi(identifiers, expected):
    assert targets(*identifiers) == expected


def test_a_record_has_title_and_description():
    inside = record(1, "http://papers.test/1", title="Whales & seas", description="On  whales")
    (found,) = read(f"<ListRecords>{inside}</ListRecords>")
    assert (found.title, found.summary) == ("Whales & seas", "On whales")
    assert found.changed_at == datetime(2026, 1, 2, tzinfo=UTC).timestamp()


def test_deleted_records_are_left_out():
    inside = record(1, "http://papers.test/1", deleted=True) + record(2, "http://papers.test/2")
    assert urls(f"<ListRecords>{inside}</ListRecords>") == ["http://papers.test/2"]


def test_the_rest_of_a_list_is_requested_from_the_same_url():
    inside = f"{record(1)}<resumptionToken>a&amp;b c</resumptionToken>"
    onward = read(f"<ListRecords>{inside}</ListRecords>")[-1]
    assert onward.url == f"{BASE}?verb=ListRecords&resumptionToken=a%26b+c"
    assert onward.continues_list


@pytest.mark.parametrize(
    "inside",
    [
        f"<ListRecords>{record(1)}<resumptionToken/></ListRecords>",
        "<ListRecords><resumptionToken>endless</resumptionToken></ListRecords>",
        '<error code="badResumptionToken">expired</error>',
        f"<ListRecords>{record(1)}<resumptionToken>{'x' * 3000}</resumptionToken></ListRecords>",
    ],
)
def test_a_list_ends(inside):
    assert not any(entry.continues_list for entry in read(inside))


def test_identifiers_become_requests_for_their_records():
    inside = f"<ListIdentifiers>{header(7)}{header(8, deleted=True)}</ListIdentifiers>"
    assert urls(inside) == [
        f"{BASE}?verb=GetRecord&identifier=oai%3Apapers.test%3A7&metadataPrefix=oai_dc"
    ]


@pytest.mark.parametrize(
    "inside", ["<Identify/>", '<error code="badVerb"/>', '<error code="badArgument"/>']
)
def test_a_repository_without_a_list_leads_to_its_records(inside):
    assert urls(inside, BASE) == [LIST]


def test_a_list_is_a_page_of_links():
    inside = record(1, "http://papers.test/1", title="Whales", description="seas")
    body = oai(f"<ListRecords>{inside}<resumptionToken>t</resumptionToken></ListRecords>").encode()
    fetched = Fetched(LIST, 200, {"content-type": "text/xml"}, body)
    page = parse_feed(fetched)
    assert is_feed(fetched) and page is not None
    assert [(link.url, link.anchor, link.tag_path) for link in page.links] == [
        ("http://papers.test/1", "Whales", "OAI-PMH/entry"),
        (f"{BASE}?verb=ListRecords&resumptionToken=t", "", CONTINUATION_PATH),
    ]
    assert page.text == "Whales seas"
    kind, entries = parse_feed_entries(fetched) or ("", [])
    assert kind == "OAI-PMH"
    assert entries[0].changed_at == datetime(2026, 1, 2, tzinfo=UTC).timestamp()


def test_a_truncated_list_gives_the_records_before_the_break():
    xml = oai("<ListRecords>" + record(1, "http://a.test/1") + record(2, "http://a.test/2"))
    cut = read_oai_entries(xml[: xml.index("<dc:identifier>http://a.test/2")], LIST)
    assert [entry.url for entry in cut] == ["http://a.test/1"]


@given(st.text(max_size=300), st.integers(0, 400))
def test_nothing_makes_the_reader_fail(text, cut):
    xml = Repository({1: record(1, text, title=text)}).answer(LIST)
    entries = read_oai_entries(xml[:cut] + text + xml[cut:], LIST)
    assert all(entry.url.startswith("http") for entry in entries)


def test_entities_are_not_expanded():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
    xml = bomb + oai(f"<ListRecords>{record(1, 'http://a.test/1', title='T')}</ListRecords>")
    (found,) = read_oai_entries(xml.replace(">T<", ">T&b;<"), LIST)
    assert "aaaa" not in found.title
