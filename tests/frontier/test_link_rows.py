"""A queued link comes back from its row as it was, and most rows are short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from focused.frontier.link_rows import Sources, from_row, to_row
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.store import StateStore
from focused.frontier.tables import Tables

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
    evidence=st.lists(whole | st.floats(width=16, allow_nan=False), max_size=20).map(tuple),
    found_at=whole,
    tries=st.integers(0, 0xFF),
    hops=st.integers(0, 0xFF),
    payload=st.none() | st.text(),
    trail=st.integers(0, 2**64 - 1),
)


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    store = StateStore.open(tmp_path / "state", {})
    yield store.tables
    store.close()


@pytest.fixture
def sources(tables: Tables) -> Sources:
    return Sources(tables)


def link(**fields: object) -> QueuedLink:
    plain = QueuedLink(link_key(URL), URL, "docs.example", 0.25, 0.25)
    return replace(plain, **fields)


@given(links)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_link_survives_being_written_and_read(sources: Sources, link: QueuedLink) -> None:
    assert from_row(to_row(link, sources), link.host, sources) == link


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_link_is_told_by_its_path_and_its_evidence_in_half_precision(
    sources: Sources, scheme: str
) -> None:
    url = f"{scheme}://docs.example/guide/chapter-12.html"
    queued = link(
        url=url, key=link_key(url), anchor="Chapter 12", evidence=(1.5, -0.25) * 7, parent=URL
    )
    row = to_row(queued, sources)
    assert from_row(row, "docs.example", sources) == queued
    assert len(row) == 23 + 2 * 4 + 2 * 14 + len("/guide/chapter-12.html") + len("Chapter 12")


def test_evidence_that_half_precision_would_change_is_kept_exactly(sources: Sources) -> None:
    queued = link(evidence=(0.1, 1e300), score=0.1)
    assert from_row(to_row(queued, sources), queued.host, sources) == queued


def test_lone_surrogates_become_question_marks(sources: Sources) -> None:
    queued = link(anchor="x\ud800", evidence=(1.0, -2.5))
    assert from_row(to_row(queued, sources), queued.host, sources) == replace(queued, anchor="x?")


def test_a_page_that_links_is_written_once_for_all_its_links(
    sources: Sources, tables: Tables
) -> None:
    for number in range(50):
        to_row(link(parent="http://a.test/", found_at=2.5, anchor=str(number)), sources)
    assert tables.count("sources") == 1


def test_a_link_that_was_found_at_another_time_needs_no_source_of_its_own(
    sources: Sources, tables: Tables
) -> None:
    early = link(parent="http://a.test/", found_at=2.5)
    late = link(parent="http://a.test/", found_at=7.5)
    rows = [to_row(each, sources) for each in (early, late)]
    assert [from_row(row, early.host, sources) for row in rows] == [early, late]
    assert tables.count("sources") == 1


def test_a_link_that_is_read_and_written_again_keeps_its_source(tmp_path: Path) -> None:
    queued = link(parent="http://a.test/", found_at=2.5)
    store = StateStore.open(tmp_path / "kept", {})
    row = to_row(queued, Sources(store.tables))
    to_row(link(parent="http://b.test/"), Sources(store.tables))
    store.close()
    store = StateStore.open(tmp_path / "kept", {})
    again = Sources(store.tables)
    assert to_row(from_row(row, queued.host, again), again) == row
    assert store.tables.count("sources") == 2
    assert from_row(row, queued.host, again).parent == "http://a.test/"
    store.close()


def test_a_scorer_may_tell_a_thousand_features(sources: Sources) -> None:
    queued = link(evidence=(0.5,) * 1_000)
    assert from_row(to_row(queued, sources), queued.host, sources) == queued
