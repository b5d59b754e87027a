"""A crawl becomes a corpus: which pages, with what, and what an interruption changes."""

import gzip
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from focused.corpus import export as export_module
from focused.corpus.data_card import ExportResult
from focused.corpus.export import CARD_FILE, WORK_FOLDER, export_corpus
from focused.corpus.page_selection import ExportOptions, PageFilter, open_selection, select_pages
from focused.corpus.stored_documents import extract_stored
from focused.errors import ConfigurationError, ExtractionError, StateError
from focused.link_graph.build import build_graph
from focused.parser_process import HandlerError, ParsingStoppedError
from focused.topic import Output
from focused.web.page import FailureKind
from tests.support.continuous_crawl import HOME as LIVING_HOME
from tests.support.continuous_crawl import LEFT, NEWS
from tests.support.corpus_crawl import (
    ARTICLE,
    COPY,
    EVIL,
    GERMAN,
    HOME,
    OTHER,
    SHIPS,
    corpus_web,
    crawl_corpus_web,
)
from tests.support.crawl_folders import good_page, write_crawl
from tests.support.forked import ROOT
from tests.support.in_this_process import InThisProcess, in_this_process  # noqa: F401  # a fixture
from tests.support.simulated import Simulation, topic

NOW = 1_700_000_000.0
KILLED_IN_AN_EXPORT = """
import os, signal
from focused.cli import main
from focused.corpus import export

def killed(*given):
    os.kill(os.getpid(), signal.SIGKILL)

export._write = killed
main()
"""


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawl_corpus_web(tmp_path_factory.mktemp("corpus"))


def export(crawl: Path, folder: Path, form: str = "jsonl", **options: Any) -> ExportResult:
    conditions = {
        name: options.pop(name) for name in PageFilter.__struct_fields__ if name in options
    }
    how = {name: options.pop(name) for name in ("fresh", "progress") if name in options}
    chosen = ExportOptions(form, PageFilter(**conditions), **options)
    return export_corpus(crawl, folder, chosen, now=NOW, **how)


def rows(folder: Path, split: str = "train") -> dict[str, dict[str, Any]]:
    lines = (folder / f"{split}.jsonl").read_text("utf-8").splitlines()
    return {row["url"]: row for row in map(json.loads, lines)}


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and WORK_FOLDER not in path.parts
    }


def test_a_corpus_has_the_pages_on_topic_without_duplicates(crawl, tmp_path):
    result = export(crawl, tmp_path / "out")
    assert set(rows(tmp_path / "out")) == {HOME, ARTICLE, GERMAN, EVIL, OTHER}
    assert (result.pages, result.records, result.reasons) == (5, 5, {})


def test_an_export_without_any_extracted_page_is_an_error_and_may_be_repeated(
    crawl, tmp_path, monkeypatch
):
    def fail(message: bytes) -> bytes:
        raise ImportError("lxml.html.clean")

    with monkeypatch.context() as patched:
        patched.setattr("focused.corpus.stored_documents.extract_stored", fail)
        with pytest.raises(ExtractionError, match=r"\(internal-error: 5\)"):
            export(crawl, tmp_path / "out")
    assert not (tmp_path / "out" / CARD_FILE).exists()
    assert export(crawl, tmp_path / "out").pages == 5


def test_a_record_joins_row_document_links_and_cluster(crawl, tmp_path):
    export(crawl, tmp_path / "out")
    row = rows(tmp_path / "out")[ARTICLE]
    assert row["title"] == "Whales of the sea"
    assert row["markdown"].startswith("# Whales of the sea\n\n")
    assert "return  len(whales)" in row["text"]
    assert row["authors"] == ["Ada Krill"]
    assert (row["published"], row["language"], row["relevance"]) == ("2024-03-05", "en", 0.9)
    assert row["parent"] == HOME and row["anchor"] == "the whale article"
    assert row["in_links"] == [{"source": HOME, "anchor": "the whale article"}]
    assert row["robots"] == ["noai", "noarchive"]
    assert row["cluster_size"] == 2
    assert row["words"] == len(row["text"].split())


def test_a_link_graph_rates_pages_as_hubs_and_authorities(crawl, tmp_path):
    build_graph([crawl], tmp_path / "graph")
    export(crawl, tmp_path / "out", graph=str(tmp_path / "graph"))
    found = rows(tmp_path / "out")
    assert found[HOME]["hub"] == 1.0  # it links to all others
    assert 0.5 < found[OTHER]["authority"] <= 1.0 and found[OTHER]["hub"] == 0.0
    export(crawl, tmp_path / "plain")
    assert {row["authority"] for row in rows(tmp_path / "plain").values()} == {None}
    with pytest.raises(StateError, match="holds no link graph"):
        export(crawl, tmp_path / "third", graph=str(crawl))


def test_duplicates_come_on_demand_in_the_cluster_of_their_original(crawl, tmp_path):
    export(crawl, tmp_path / "out", duplicates=True)
    found = rows(tmp_path / "out")
    assert found[COPY]["duplicate_of"] == ARTICLE
    assert found[COPY]["cluster"] == found[ARTICLE]["cluster"]
    assert SHIPS not in found


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"min_relevance": 0.0}, {HOME, ARTICLE, GERMAN, EVIL, OTHER, SHIPS}),
        ({"languages": ("de",)}, {GERMAN}),
        ({"hosts": ("example.org",)}, {OTHER}),
        ({"robots": ("noarchive",)}, {HOME, GERMAN, EVIL}),
        ({"published_since": "2024-01-01"}, {ARTICLE}),
        ({"min_words": 100}, {ARTICLE, EVIL}),
    ],
)
def test_conditions_choose_pages(crawl, tmp_path, conditions, expected):
    export(crawl, tmp_path / "out", **conditions)
    assert set(rows(tmp_path / "out")) == expected


def test_domains_go_whole_to_a_split(crawl, tmp_path):
    by_seed = set()
    for seed in range(8):
        folder = tmp_path / str(seed)
        export(crawl, folder, validation=0.5, seed=seed)
        domains = [
            {row["domain"] for row in rows(folder, s).values()} for s in ("train", "validation")
        ]
        assert domains[0].isdisjoint(domains[1])
        by_seed.add(frozenset(domains[1]))
    assert len(by_seed) > 1


def test_chunks_are_records(crawl, tmp_path):
    export(crawl, tmp_path / "out", chunk_chars=300)
    lines = (tmp_path / "out/train.jsonl").read_text("utf-8").splitlines()
    chunks = [row for row in map(json.loads, lines) if row["url"] == ARTICLE]
    assert [row["chunk"] for row in chunks] == list(range(len(chunks)))
    assert {row["chunks"] for row in chunks} == {len(chunks)} != {1}
    assert chunks[-1]["headings"] == ["Whales of the sea", "Counting whale calls"]
    assert len({row["id"] for row in chunks}) == len(chunks)


def test_ids_stay_from_export_to_export(crawl, tmp_path):
    export(crawl, tmp_path / "first")
    export(crawl, tmp_path / "second", min_relevance=0.0)
    first, second = rows(tmp_path / "first"), rows(tmp_path / "second")
    assert all(row["id"] == second[url]["id"] for url, row in first.items())


class Killed(BaseException):
    """The process died here."""


@pytest.mark.parametrize("form", ["jsonl", "parquet", "markdown"])
@pytest.mark.parametrize("step", ["extracting", "writing"])
def test_an_interrupted_export_ends_with_the_same_bytes(crawl, tmp_path, form, step, monkeypatch):
    monkeypatch.setattr(export_module, "GROUP_DOCUMENTS", 2)
    export(crawl, tmp_path / "whole", form)

    def die(now: str, done: int, total: int) -> None:
        if now == step and done:
            raise Killed

    with pytest.raises(Killed):
        export(crawl, tmp_path / "out", form, progress=die)
    assert not (tmp_path / "out" / CARD_FILE).exists()
    result = export(crawl, tmp_path / "out", form)
    assert result.resumed_at == (2 if step == "extracting" else 5)
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_an_export_killed_while_files_are_moved_is_completed(crawl, tmp_path, monkeypatch):
    export(crawl, tmp_path / "whole", "markdown")
    with monkeypatch.context() as patch:
        patch.setattr(export_module, "write_atomically", lambda path, content: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            export(crawl, tmp_path / "out", "markdown")
    export(crawl, tmp_path / "out", "markdown")
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_pages_fetched_meanwhile_do_not_enter_an_interrupted_export(crawl, tmp_path):
    own = shutil.copytree(crawl, tmp_path / "crawl")

    def die(step: str, done: int, total: int) -> None:
        if step == "extracting":
            raise Killed

    with pytest.raises(Killed):
        export(own, tmp_path / "out", progress=die)
    (own / "pages.parquet").unlink()
    shutil.rmtree(own / "state")
    export(own, tmp_path / "out")
    assert set(rows(tmp_path / "out")) == {HOME, ARTICLE, GERMAN, EVIL, OTHER}


def test_a_complete_export_is_not_repeated(crawl, tmp_path):
    export(crawl, tmp_path / "out")
    before = files(tmp_path / "out")
    assert export(crawl, tmp_path / "out").was_complete
    assert files(tmp_path / "out") == before


def test_a_second_export_at_the_same_time_is_refused(crawl, tmp_path):
    def export_again(*_):
        with pytest.raises(StateError, match="another export into this folder is running"):
            export(crawl, tmp_path / "out", fresh=True)

    export(crawl, tmp_path / "out", progress=export_again)
    assert (tmp_path / "out" / CARD_FILE).exists()


def test_other_arguments_are_refused_and_fresh_replaces(crawl, tmp_path):
    export(crawl, tmp_path / "out")
    with pytest.raises(ConfigurationError, match=r"other arguments \(form, pages\)"):
        export(crawl, tmp_path / "out", "csv", languages=("de",))
    (tmp_path / "out/notes").write_text("mine")
    export(crawl, tmp_path / "out", "csv", fresh=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        WORK_FOLDER,
        CARD_FILE,
        "train.csv",
        "notes",
    }


def test_another_crawl_of_the_same_name_is_told_apart_and_a_moved_one_is_not(crawl, tmp_path):
    first = Path(shutil.copytree(crawl, tmp_path / "first/out"))
    second = Path(shutil.copytree(crawl, tmp_path / "second/out"))
    export(first, tmp_path / "corpus")
    with pytest.raises(ConfigurationError, match=r"other arguments \(crawl\)"):
        export(second, tmp_path / "corpus")
    first.rename(tmp_path / "out")
    assert export(tmp_path / "out", tmp_path / "corpus").was_complete


def test_foreign_files_are_not_touched(crawl, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty"):
        export(crawl, tmp_path, fresh=True)
    assert (tmp_path / "notes").read_text() == "mine"


def test_the_card_tells_what_the_corpus_is(crawl, tmp_path):
    export(crawl, tmp_path / "out", robots=("noai",), min_words=60)
    card = (tmp_path / "out" / CARD_FILE).read_text("utf-8")
    for part in (
        "3 pages (3 train) from 3 web pages of 2 registered domains",
        "selected on 2023-11-14",
        'robots = \\["noai"\\]',
        "2 selected pages did not pass",
        "| noarchive | 1 |",
        "| en | 3 |",
        "3 of 3 pages declare no licence",
    ):
        assert part in card


def test_the_card_names_the_files_that_have_records(crawl, tmp_path):
    named = set()
    for seed in range(4):
        folder = tmp_path / str(seed)
        export(crawl, folder, validation=0.5, seed=seed, compression="gzip")
        front = (folder / CARD_FILE).read_text("utf-8").split("---\n")[1]
        (config,) = yaml.safe_load(front)["configs"]
        found = {each["path"] for each in config["data_files"]}
        assert found == {
            path.name for path in folder.glob("*.gz") if gzip.decompress(path.read_bytes())
        }
        named.add(frozenset(found))
    assert len(named) > 1


def test_a_page_that_cannot_be_extracted_is_counted(crawl, tmp_path, monkeypatch):
    def ask(self: InThisProcess, message: bytes) -> bytes:
        if GERMAN.encode() in message:
            raise ParsingStoppedError(FailureKind.PARSE_TIMEOUT, "too long")
        if EVIL.encode() in message:
            raise HandlerError("odd")
        return extract_stored(message)

    monkeypatch.setattr(InThisProcess, "ask", ask)
    result = export(crawl, tmp_path / "out")
    assert result.reasons == {"parse-timeout": 1, "internal-error": 1}
    assert set(rows(tmp_path / "out")) == {HOME, ARTICLE, OTHER}
    assert "1 internal-error, 1 parse-timeout" in (tmp_path / "out" / CARD_FILE).read_text()


def test_a_damaged_warc_costs_its_pages(crawl, tmp_path):
    own = shutil.copytree(crawl, tmp_path / "crawl")
    offset = int(pd.read_parquet(own / "pages.parquet").set_index("url").warc_offset[EVIL])
    with (own / "pages.warc.gz").open("r+b") as file:
        file.seek(offset)
        file.write(bytes(30))
    assert export(own, tmp_path / "out").reasons == {"unreadable-record": 1}


def test_a_killed_crawl_can_be_exported(tmp_path):
    simulation = Simulation(topic(tmp_path, HOME), corpus_web()).run(pages=3)
    simulation.store.abandon()
    simulation.crawl.archive.close()
    assert export(simulation.topic.output.folder, tmp_path / "corpus").records == 3


def test_the_latest_version_of_a_page_that_changed_is_exported(living_crawl, tmp_path):
    export(living_crawl, tmp_path / "out")
    found = rows(tmp_path / "out")
    assert "Nobody saw the whales again" in found[NEWS]["text"]
    assert found[NEWS]["fetched_at"] > found[LIVING_HOME]["fetched_at"]
    assert found[LEFT]["gone"] and not found[NEWS]["gone"]


def test_partitions_are_one_corpus(crawl, tmp_path):
    whole = tmp_path / "shared"
    frame = pd.read_parquet(crawl / "pages.parquet")
    for table in ("pages", "links", "warc"):
        (whole / table).mkdir(parents=True)
    for number, part in enumerate((frame.iloc[::2], frame.iloc[1::2])):
        name = f"partition-{number:04}"
        part = part.drop(columns="features").assign(warc_file=f"{name}-00001.warc.gz")
        part.to_parquet(whole / f"pages/{name}.parquet")
        shutil.copy(crawl / "pages.warc.gz", whole / f"warc/{name}-00001.warc.gz")
    shutil.copy(crawl / "links.parquet", whole / "links/partition-0000.parquet")
    export(whole, tmp_path / "out")
    export(crawl, tmp_path / "single")
    found, single = rows(tmp_path / "out"), rows(tmp_path / "single")
    assert {url: row["id"] for url, row in found.items()} == {
        url: row["id"] for url, row in single.items()
    }
    assert found[ARTICLE]["in_links"] and found[ARTICLE]["cluster_size"] == 2


def test_a_crawl_without_a_warc_cannot_be_exported(tmp_path):
    subject = topic(tmp_path, HOME, output=Output(tmp_path / "out", warc="off"))
    simulation = Simulation(subject, corpus_web()).run()
    simulation.close()
    with pytest.raises(ConfigurationError, match="no WARC records"):
        export(tmp_path / "out", tmp_path / "corpus")


def test_a_folder_that_is_no_crawl_is_an_error_and_makes_no_folder(tmp_path):
    with pytest.raises(StateError, match="no such folder"):
        export(tmp_path / "none", tmp_path / "corpora" / "corpus")
    assert not (tmp_path / "corpora").exists()


def test_a_crawl_that_cannot_be_read_replaces_no_export(crawl, tmp_path):
    export(crawl, tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(StateError, match="no such folder"):
        export(tmp_path / "none", tmp_path / "out", fresh=True)
    assert files(tmp_path / "out") == before


def test_nothing_is_written_outside_of_the_folder_whose_disk_has_room(crawl, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    export(crawl, tmp_path / "out")
    export(crawl, tmp_path / "out", "csv", fresh=True)
    assert (tmp_path / "out" / CARD_FILE).exists()


def test_a_full_disk_is_no_damage(crawl, tmp_path, monkeypatch):
    file, connect = tmp_path / "selection.sqlite", sqlite3.connect
    select_pages(crawl, file, PageFilter(), NOW)

    def connect_without_room(*given, **named):
        database = connect(*given, **named)
        database.execute("PRAGMA max_page_count = 1")
        return database

    monkeypatch.setattr(sqlite3, "connect", connect_without_room)
    with pytest.raises(StateError, match="No space left"), open_selection(file):
        pass
    with pytest.raises(StateError, match="No space left"):
        select_pages(crawl, file, PageFilter(), NOW)


@pytest.mark.timeout(60)
def test_a_long_chain_of_duplicates_is_one_cluster(tmp_path):
    count = 50_000
    urls = [f"http://a.test/{number}" for number in range(count)]
    pages = [
        good_page(url, duplicate_of=original, warc_file="pages.warc.gz", warc_offset=0)
        for url, original in zip(urls, [None, *urls], strict=False)
    ]
    folder = write_crawl(tmp_path / "crawl", pages[::-1])
    select_pages(folder, tmp_path / "selection", PageFilter(duplicates=True), NOW)
    with open_selection(tmp_path / "selection") as selection:
        clusters = {page.cluster for _, page in selection.pages()}
        sizes = {page.cluster_size for _, page in selection.pages()}
    assert len(clusters) == 1
    assert sizes == {count}


def test_damaged_settings_are_reported_before_anything_is_extracted(crawl, tmp_path):
    copy = Path(shutil.copytree(crawl, tmp_path / "crawl"))
    (copy / "settings.json").write_text('{"topic": {"seeds": {"urls": 5}}}')
    with pytest.raises(StateError, match=r"settings\.json: is damaged"):
        export(copy, tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


@pytest.mark.long
def test_a_killed_command_goes_on(crawl, tmp_path):
    command = [sys.executable, "-m", "focused.cli", "export", str(crawl), "--out"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    killed = [sys.executable, "-c", KILLED_IN_AN_EXPORT, *command[3:], str(tmp_path / "out")]
    assert subprocess.run(killed, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "out" / WORK_FOLDER / "selection.sqlite").exists()
    subprocess.run([*command, str(tmp_path / "out")], check=True, capture_output=True)
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
