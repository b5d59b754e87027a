"""Queued links survive encoding, and most rows are short."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from focused.frontier.link_table import LinkSources, decode_link, encode_link
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables

URL = "http://docs.example/guide/chapter-12.html"
whole = st.floats(allow_nan=False, allow_infinity=False)
links = st.builds(
    QueuedLink,
    key=st.binary(min_size=16, max_size=16),
    url=st.text(min_size=1) | st.text().map("http://h.test/{}".format),
    host=st.just("h.test"),
    priority=whole,
    score=st.floats(0, 1),
    depth=st.integers(0, 0xFFFF),
    parent=st.none() | st.text(),
    anchor=st.text(),
    features=st.lists(whole | st.floats(width=16, allow_nan=False), max_size=20).map(tuple),
    found_at=whole,
    tries=st.integers(0, 0xFF),
    hops=st.integers(0, 0xFF),
    payload=st.none() | st.text(),
    tag_path_key=st.integers(0, 2**64 - 1),
    purpose=st.sampled_from(["page", "revisit", "a plug-in's own"]),
    is_exempt=st.booleans(),
)


@pytest.fixture
def sources(tables: Tables) -> LinkSources:
    return LinkSources(tables)


def link(**fields: object) -> QueuedLink:
    plain = QueuedLink(link_key(URL), URL, "docs.example", 0.25, 0.25)
    return replace(plain, **fields)


@given(links)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_link_survives_being_written_and_read(sources, link):
    assert decode_link(encode_link(link, sources), link.host, sources) == link


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_link_is_reported_by_its_path_and_its_features_in_half_precision(sources, scheme):
    url = f"{scheme}://docs.example/guide/chapter-12.html"
    queued = link(
        url=url, key=link_key(url), anchor="Chapter 12", features=(1.5, -0.25) * 7, parent=URL
    )
    row = encode_link(queued, sources)
    assert decode_link(row, "docs.example", sources) == queued
    assert len(row) == 16 + 2 * 4 + 2 * 14 + len("/guide/chapter-12.html") + len("Chapter 12")


def test_features_that_half_precision_would_change_is_kept_exactly(sources):
    queued = link(features=(0.1, 1e300), score=0.1)
    assert decode_link(encode_link(queued, sources), queued.host, sources) == queued


def test_lone_surrogates_become_question_marks(sources):
    queued = link(anchor="x\ud800", features=(1.0, -2.5))
    assert decode_link(encode_link(queued, sources), queued.host, sources) == replace(
        queued, anchor="x?"
    )


def test_a_page_that_links_is_written_once_for_all_its_links(sources, tables):
    for number in range(50):
        encode_link(link(parent="http://a.test/", found_at=2.5, anchor=str(number)), sources)
    assert tables.count("sources") == 1


def test_a_link_that_was_found_at_another_time_needs_no_source_of_its_own(sources, tables):
    early = link(parent="http://a.test/", found_at=2.5)
    late = link(parent="http://a.test/", found_at=7.5)
    rows = [encode_link(each, sources) for each in (early, late)]
    assert [decode_link(row, early.host, sources) for row in rows] == [early, late]
    assert tables.count("sources") == 1


def test_a_link_that_is_read_and_written_again_keeps_its_source(tmp_path):
    queued = link(parent="http://a.test/", found_at=2.5)
    store = StateStore.open(tmp_path / "kept", {})
    row = encode_link(queued, LinkSources(store.tables))
    encode_link(link(parent="http://b.test/"), LinkSources(store.tables))
    store.close()
    store = StateStore.open(tmp_path / "kept", {})
    again = LinkSources(store.tables)
    assert encode_link(decode_link(row, queued.host, again), again) == row
    assert store.tables.count("sources") == 2
    assert decode_link(row, queued.host, again).parent == "http://a.test/"
    store.close()


def test_a_scorer_may_tell_a_thousand_features(sources):
    queued = link(features=(0.5,) * 1_000)
    assert decode_link(encode_link(queued, sources), queued.host, sources) == queued
