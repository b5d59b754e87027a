"""URLs in sorted, front-coded blocks: ranks, look-ups, damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from focused.errors import ConfigurationError, StateError
from focused.link_graph.url_table import URLS_PER_BLOCK, UrlTable, UrlTableWriter

texts = st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=12)
prefixes = st.sampled_from(["https://a.example/", "https://a.example/" + "x" * 300, "http://é/"])
url_sets = st.sets(st.builds(lambda head, tail: head + tail, prefixes, texts), max_size=80)


def table_of(folder: Path, urls: list[str]) -> UrlTable:
    path = folder / "urls.bin"
    with path.open("wb") as file:
        writer = UrlTableWriter(file)
        writer.add(urls)
        assert writer.finish() == len(urls)
    return UrlTable(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(url_sets, st.lists(texts, max_size=5))
def test_urls_have_their_rank_and_come_back(
    tmp_path: Path, urls: set[str], others: list[str]
) -> None:
    ordered = sorted(urls)
    table = table_of(tmp_path, ordered)
    assert list(table) == ordered
    assert [table.find(url) for url in ordered] == list(range(len(urls)))
    assert table.find("none") is None
    assert table.urls(range(len(urls))) == ordered
    for other in others:
        assert table.rank(other) == sum(url < other for url in ordered)
        assert table.find(other) == (ordered.index(other) if other in urls else None)


def test_blocks_follow_each_other(tmp_path: Path) -> None:
    urls = [f"https://a.example/{number:05}" for number in range(3 * URLS_PER_BLOCK + 7)]
    table = table_of(tmp_path, [*urls, "https://b.example/"])
    around = [0, 255, 256, 511, 774]
    assert table.urls(around) == [table[node] for node in around] == [urls[n] for n in around]
    assert table.node(urls[700]) == 700
    assert table.stored_bytes < 5 * len(urls)


def test_an_unknown_url_is_named(tmp_path: Path) -> None:
    table = table_of(tmp_path, ["https://a.example/"])
    with pytest.raises(ConfigurationError, match=r"https://b\.example/: no page"):
        table.node("https://b.example/")
    with pytest.raises(IndexError, match="node 1"):
        table[1]


@pytest.mark.parametrize("urls", [["b", "a"], ["a", "a"], ["a\nb"]])
def test_urls_that_would_not_come_back_are_refused(tmp_path: Path, urls: list[str]) -> None:
    with pytest.raises(ValueError, match="not sorted"):
        table_of(tmp_path, urls)


def test_damage_is_an_error(tmp_path: Path) -> None:
    table_of(tmp_path, [f"https://a.example/{number:05}" for number in range(1000)]).close()
    path = tmp_path / "urls.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(StateError, match=r"urls\.bin: is damaged"):
        UrlTable(path)
    path.write_bytes(b"\xff" * 40 + whole[40:])
    with pytest.raises(StateError, match="build the link graph again"):
        list(UrlTable(path))
    path.write_bytes(b"")
    with pytest.raises(StateError, match="is damaged"):
        UrlTable(path)
    path.unlink()
    with pytest.raises(StateError, match="is missing"):
        UrlTable(path)
