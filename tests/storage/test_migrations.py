"""A state folder of an older format goes on, and commands read it as it is.

``states/`` holds two folders of each format that is migrated, of a crawl and of a continuous one
that were killed. The last version that wrote a format made them: ``python -m
tests.storage.small_state FOLDER``.
"""

import contextlib
import struct
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from focused.archive.archive import Archive, link_values, page_rows
from focused.archive.page_history import page_histories, visit_rows
from focused.crawl.folder_check import check_folder
from focused.crawl.revisits.collection import PageRecord, PageRecords
from focused.errors import StateError, StateFormatError
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.link_scoring.protocols import TrainingExample, decode_example
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.policy import weight_of
from focused.storage import migrations
from focused.storage import state_store as store_module
from focused.storage.environment import OLDEST_FORMAT
from focused.storage.journal import Journal
from focused.storage.rows import pack
from focused.storage.state_store import FORMAT_VERSION, StateStore
from focused.storage.tables import Tables
from focused.web.urls import host_of
from tests.link_scoring.apprentices import examples_of_a_crawl, new_apprentice
from tests.storage.small_state import (
    HOSTS,
    KILLED_AFTER_PAGES,
    small_apprentice,
    small_collection,
    small_topic,
    small_web,
)
from tests.support.simulated import START, Simulation

STATES = Path(__file__).with_name("states")
OLDER_FORMATS = range(OLDEST_FORMAT, FORMAT_VERSION)
FIRST = struct.pack(">Q", 0)
IDENTITY = {"topic": "whales", "policy": "focused"}


class Died(BaseException):
    """The process died here."""


def unpack_state(older_format: int, kind: str, folder: Path) -> Path:
    """Return the crawl's folder."""
    with tarfile.open(STATES / f"format-{older_format}-{kind}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "out"


@pytest.fixture(params=OLDER_FORMATS)
def crawl_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack_state(request.param, "crawl", tmp_path)


@pytest.fixture(params=OLDER_FORMATS)
def collection_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of the continuous crawl."""
    return unpack_state(request.param, "collection", tmp_path)


def again_in(crawl_folder: Path) -> Simulation:
    topic, scorer = small_topic(crawl_folder.parent), small_apprentice()
    return Simulation(topic, small_web(), scorer=scorer, now=START + 1e4)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_each_older_format_has_two_folders():
    kept = {path.name.removesuffix(".tar.xz") for path in STATES.iterdir()}
    kinds = ("crawl", "collection")
    assert kept == {f"format-{each}-{kind}" for each in OLDER_FORMATS for kind in kinds}


def test_the_crawl_goes_on_and_fetches_no_page_twice(crawl_folder):
    with contextlib.closing(again_in(crawl_folder)) as crawl:
        assert crawl.crawl.counters.fetched == KILLED_AFTER_PAGES
        pages_before = set(crawl.rows)
        crawl.run()
        again = Counter(crawl.urls) & Counter(pages_before)
        assert not again
        linked = {url for url in small_web() if url[-1].isdigit()} | set(crawl.topic.seeds.urls)
        assert {url for url, row in crawl.rows.items() if row["outcome"] == "fetched"} == linked


def test_a_continuous_crawl_visits_its_pages_again(collection_folder):
    subject = small_collection(collection_folder.parent)
    with contextlib.closing(Simulation(subject, small_web(), now=START + 1e4)) as crawl:
        with pytest.raises(AssertionError, match="not done"):
            crawl.run(most_steps=1_000)
        tables = crawl.store.tables
        visited = {row.url for row in visit_rows(tables)}
        assert len(visited) > KILLED_AFTER_PAGES
        records = [raw for _, raw in tables.scan("page_histories")]
        assert len([msgspec.msgpack.decode(raw, type=PageRecord) for raw in records]) > 60


def test_the_pages_of_a_collection_keep_their_schedule(collection_folder):
    with contextlib.closing(StateStore.reopen(collection_folder / "state")) as store:
        tables = store.tables
        records = PageRecords(tables, Archive(store))
        queued = dict(_queue(tables))
        pages = [page for page, _ in page_histories(tables)]
        assert len(pages) >= KILLED_AFTER_PAGES - len(HOSTS)
        assert set(queued) <= set(pages)
        schedule = TableRecords(tables)
        for page in pages:
            known = records.load(page)
            assert known.record.signature is not None
            assert schedule.due_at(page) == queued.get(page)
            assert page in schedule.pages_of_site(schedule.site_of(page), -1, 1_000)
            worth = (known.row.relevance or 0.0) + known.record.new_relevance
            assert weight_of(schedule, page) == pytest.approx(worth)
        assert not {"revisit_pages", "revisit_due_times", "page_records"} & tables.names


def _queue(tables: Tables) -> Iterator[tuple[int, float]]:
    for member in tables.members("revisit_queue", b"all"):
        due_at, page = struct.unpack(">II", member)
        yield page, due_at


def test_links_and_examples_keep_the_features_that_are_left(tmp_path):
    with contextlib.closing(again_in(unpack_state(21, "crawl", tmp_path))) as crawl:
        frontier = crawl.crawl.frontier
        hosts = [frontier.hosts.get(host_of(host)) for host in HOSTS]
        links = [link for host in hosts if host for link in frontier.waiting(host)]
        examples = [decode_example(row) for _, row in crawl.store.tables.scan("training_examples")]
        assert len(examples) > KILLED_AFTER_PAGES - 10
        for features in (*(link.features for link in links), *(each.features for each in examples)):
            assert len(features) in (0, len(FEATURE_NAMES))
        of_example = dict(zip(FEATURE_NAMES, examples[-1].features, strict=True))
        assert (of_example["parent"], of_example["in_links"]) == (pytest.approx(2.197, abs=1e-3), 3)
        assert sum(bool(link.features) for link in links) >= len(HOSTS)


def as_of_format_21(state: bytes) -> bytes:
    """An apprentice's state with what it once had besides."""
    learned = msgspec.msgpack.decode(state)
    links, relevance, *_ = learned["siblings"]
    learned["link_words"] = learned["page_words"] = [links, relevance, b"", b""]
    for positions in ("siblings", "tag_paths"):
        del learned[positions][:2]
    seen, weights, bias, examples = learned["correction"]
    columns = np.frombuffer(examples).reshape(len(FEATURE_NAMES) + 1, -1)
    for at in (4, 5, 12, 13, 14, 15):
        weights.insert(at, 9.0)
        columns = np.insert(columns, at, 9.0, axis=0)
    learned["correction"] = [seen, weights, bias, columns.tobytes()]
    return msgspec.msgpack.encode(learned)


@pytest.fixture
def migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes | None]:
    """Return a row of format 21 after the migration; ``state`` is the scorer's."""

    def migrate(table: str, key: bytes, state: bytes, **rows: bytes) -> bytes | None:
        with monkeypatch.context() as older:
            older.setattr(store_module, "FORMAT_VERSION", 21)
            with contextlib.closing(StateStore.open(tmp_path / "state", IDENTITY)) as store:
                store.tables.put("scorer_state", b"state", FIRST + state)
                for name, row in rows.items():
                    store.tables.put(name, FIRST, row)
                store.commit()
        with contextlib.closing(StateStore.open(tmp_path / "state", IDENTITY)) as store:
            return store.tables.get(table, key)

    return migrate


def test_the_scorer_keeps_what_it_learned_of_the_features_that_are_left(migrated):
    learner = new_apprentice()
    for each in examples_of_a_crawl(60):
        learner.learn(each)
    kept = migrated("scorer_state", b"state", as_of_format_21(learner.state()))
    assert kept[:8] == FIRST
    assert msgspec.msgpack.decode(kept[8:]) == msgspec.msgpack.decode(learner.state())


@pytest.mark.parametrize("state", [b"\xc1no MessagePack", msgspec.msgpack.encode(7), b""])
def test_the_features_of_a_users_scorer_stay(migrated, state):
    features = [0.5] * 18
    example = pack(["http://a.test/", "", "", 7, features, b"words", 0.9, None])
    kept = migrated("training_examples", FIRST, state, training_examples=example)
    assert decode_example(kept) == TrainingExample("http://a.test/", "", "", 7, (0.5,) * 18, 0.9)


def test_a_migrated_folder_is_sound(crawl_folder):
    StateStore.reopen(crawl_folder / "state").close()
    no_progress = contextlib.nullcontext(lambda done, whole: None)
    checked = check_folder(crawl_folder, lambda title: no_progress)
    assert not checked.damaged


def test_the_state_of_another_crawl_is_not_migrated(crawl_folder):
    before = contents(crawl_folder / "state")
    with pytest.raises(StateError, match="holds another crawl: its topic is 'whales', not 'ships'"):
        StateStore.open(crawl_folder / "state", {**IDENTITY, "topic": "ships"})
    after = contents(crawl_folder / "state")
    assert all(after[name] == before[name] for name in ("data.mdb", "journal"))


def test_a_check_before_the_migration_tells_to_crawl(crawl_folder):
    no_progress = contextlib.nullcontext(lambda done, whole: None)
    with pytest.raises(StateFormatError, match=r"The next crawl of its topic brings it up to date"):
        check_folder(crawl_folder, lambda title: no_progress)


def test_commits_of_the_journal_and_rows_of_features_come_along(crawl_folder):
    with contextlib.closing(StateStore.reopen(crawl_folder / "state")) as store:
        tables = store.tables
        assert tables.get_meta("counters")["fetched"] == KILLED_AFTER_PAGES
        assert len(list(page_rows(tables))) == tables.count("pages") >= KILLED_AFTER_PAGES
        assert tables.count("site_novelty")
        assert "page_columns" not in tables.names
        targets = {target for _, target, *_ in link_values(tables)}
        fetched = [row for row in page_rows(tables) if row["outcome"] == "fetched"]
        assert sum(row["url"] in targets for row in fetched) > KILLED_AFTER_PAGES / 2
        assert {(row["spam"], row["rendered"]) for row in fetched} == {(0.0, False)}
        assert {key for key, _ in tables.scan("javascript_hosts")} == {b"a.test"}


def test_commands_read_it_and_leave_it_as_it_is(crawl_folder):
    state = crawl_folder / "state"
    before = contents(state)
    with StateStore.open_for_reading(state) as (store, running):
        assert not running
        assert store.tables.get_meta("counters")["fetched"] == KILLED_AFTER_PAGES
    assert contents(state) == before


@pytest.mark.parametrize(
    "last_call", [(migrations, "pack"), (Journal, "begin")], ids=["within", "after"]
)
def test_a_crash_within_or_after_the_transaction_loses_nothing(
    collection_folder, monkeypatch, last_call
):
    def die(*args: object, **named: object) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(*last_call, die)
        with pytest.raises(Died):
            StateStore.reopen(collection_folder / "state")
    with contextlib.closing(StateStore.reopen(collection_folder / "state")) as store:
        assert store.tables.get_meta("counters")["fetched"] == KILLED_AFTER_PAGES


def test_a_format_older_than_all_that_are_migrated_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(store_module, "FORMAT_VERSION", OLDEST_FORMAT - 1)
        StateStore.open(tmp_path / "state", IDENTITY).close()
    with pytest.raises(StateFormatError, match=f"its format is {OLDEST_FORMAT - 1}, not"):
        StateStore.open(tmp_path / "state", IDENTITY)


def test_a_crawl_that_was_killed_before_its_first_commit_is_migrated(tmp_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(store_module, "FORMAT_VERSION", OLDEST_FORMAT)
        StateStore.open(tmp_path / "state", IDENTITY).close()
    (tmp_path / "state" / "journal").write_bytes(b"focused journal 3\n")
    with contextlib.closing(StateStore.open(tmp_path / "state", IDENTITY)) as store:
        assert store.tables.get_meta("counters") is None
