"""Editing the frontier of a stopped crawl, and the crawl afterwards."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from focused.crawl.frontier_editor import AddedUrl, AddResult, FrontierEditor
from focused.crawl.hosts.failures import DeadHosts
from focused.crawl.policy import LinkOrder, load_link_order
from focused.errors import ConfigurationError, StateError
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.import_export import export_links, read_links
from focused.frontier.inspection import links_matching
from focused.frontier.queued_link import Exploration, InvalidRow, QueuedLink, link_key
from focused.link_scoring.apprentice import Apprentice
from focused.storage.state_store import StateStore
from focused.topic import Scope
from focused.web.page import FailureKind
from tests.support.simple_learner import SimpleLearner
from tests.support.simulated import Crashed, Simulation, page, site, topic
from tests.support.whale_models import WhaleClassifier

A, B = "http://a.test/", "http://b.test/"
NOW = 2_000_000.0


def web() -> dict[str, Any]:
    """One page on topic links to ten, half of them promising; all link onwards."""
    near = [f"{A}{kind}{number}" for number in range(5) for kind in ("whale", "trade")]
    more = [page(url, f"{url}-next", text=url.rpartition("/")[2]) for url in near]
    return site(page(A, *near, text="whale"), *more)


@pytest.fixture
def reopened() -> Iterator[Callable[[Simulation], tuple[DiskFrontier, StateStore]]]:
    """A stopped crawl's frontier and store."""
    stores: list[StateStore] = []

    def reopen(stopped: Simulation) -> tuple[DiskFrontier, StateStore]:
        stopped.close()
        store = StateStore.reopen(stopped.topic.output.folder / "state")
        stores.append(store)
        return DiskFrontier(store.tables), store

    yield reopen
    for store in stores:
        store.close()


@pytest.fixture
def tended(simulate, reopened, tmp_path):
    """Stop a crawl after two pages, do something, go on to the end; what was asked since then."""

    def tend(do: Callable[[FrontierEditor, DiskFrontier], object], **options: Any) -> list[str]:
        stopped = simulate(topic(tmp_path, A), web(), **options).run(pages=2)
        frontier, store = reopened(stopped)
        do(tender(frontier, store), frontier)
        store.abandon()  # what was not kept is lost
        before = len(stopped.urls)
        return stopped.restart().run().urls[before:]

    return tend


def kept(frontier: DiskFrontier, store: StateStore) -> None:
    frontier.save()
    store.commit()


def tender(
    frontier: DiskFrontier,
    store: StateStore,
    order: LinkOrder | None = None,
    scope: Scope | None = None,
    changes_per_commit: int = 100,
) -> FrontierEditor:
    return FrontierEditor(
        frontier,
        order or load_link_order(store.tables),
        scope,
        DeadHosts(store.tables),
        partial(kept, frontier, store),
        NOW,
        changes_per_commit,
    )


def editor_of(
    store: StateStore, scope: Scope | None = None, changes_per_commit: int = 100, **options: Any
) -> tuple[FrontierEditor, DiskFrontier]:
    """Tend the frontier in the store; by scores unless ``options`` of the order say otherwise."""
    frontier = DiskFrontier(store.tables)
    order = LinkOrder(**{"by_score": True, **options})
    return tender(frontier, store, order, scope, changes_per_commit), frontier


def empty(folder: Path, name: str = "state") -> StateStore:
    return StateStore.open(folder / name, {})


def waiting(frontier: DiskFrontier) -> list[QueuedLink]:
    return list(links_matching(frontier, frontier.hosts))


def choose(frontier: DiskFrontier, pattern: str) -> list[QueuedLink]:
    return list(links_matching(frontier, frontier.hosts, re.compile(pattern)))


@pytest.fixture
def store(tmp_path):
    store = empty(tmp_path)
    yield store
    store.close()


def results(added: Iterator[AddedUrl]) -> dict[str, str]:
    return {each.url: each.result.name for each in added}


# Added


@pytest.mark.parametrize("policy", ["bfs", "focused"])
def test_whatever_the_order_an_added_url_comes_before_all_queued(tended, policy):
    asked = tended(lambda editor, _: list(editor.add([A + "new"])), policy=policy)
    assert asked[0] == A + "new"


def test_an_added_url_with_a_score_comes_where_such_a_link_comes(tended):
    asked = tended(
        lambda editor, _: list(editor.add([A + "new"], score=0.5)), scorer=SimpleLearner()
    )
    worse = [asked.index(f"{A}trade{number}") for number in range(5)]
    better = [asked.index(url) for url in asked if re.search(r"whale\d$", url)]
    assert max(better) < asked.index(A + "new") < min(worse)


def test_each_url_is_reported_what_became_of_it(store):
    editor, frontier = editor_of(store, Scope(deny_hosts=("b.test",)))
    urls = ["HTTP://A.test/x#there", A + "x", B, "mailto:me@a.test"]
    assert [(each.url, each.result, each.details) for each in editor.add(urls)] == [
        (A + "x", AddResult.ADDED, ""),
        (A + "x", AddResult.ALREADY_QUEUED, ""),
        (B, AddResult.REFUSED, "(host denied)"),
        ("mailto:me@a.test", AddResult.INVALID_URL, ""),
    ]
    assert [link.url for link in waiting(frontier)] == [A + "x"]


def test_an_added_url_is_queued_as_a_seed_is(store):
    editor, frontier = editor_of(store, learns=True)
    list(editor.add([A]))
    (link,) = waiting(frontier)
    assert link == QueuedLink(
        link_key(A), A, "a.test", pytest.approx(14.0), 1.0, depth=0, found_at=NOW
    )


def test_a_score_of_nought_is_a_score(store):
    editor, frontier = editor_of(store)
    list(editor.add([A], score=0.0))
    (link,) = waiting(frontier)
    assert (link.score, link.priority) == (0.0, 0.0)


def test_what_was_dropped_or_fetched_comes_in_again_only_when_requested(store):
    editor, frontier = editor_of(store)
    list(editor.add([A]))
    editor.drop(waiting(frontier))
    assert results(editor.add([A])) == {A: "ALREADY_SETTLED"}
    assert results(editor.add([A], again=True)) == {A: "ADDED"}
    assert results(editor.add([A], again=True)) == {A: "ALREADY_QUEUED"}


def test_a_fetched_page_that_is_added_again_is_fetched_again(tended):
    asked = tended(lambda editor, _: list(editor.add([A], again=True)))
    assert asked[0] == A


def test_links_to_hosts_that_are_dead_are_refused_until_the_host_is_revived(store):
    dead_hosts = DeadHosts(store.tables)
    dead_hosts.add("a.test", FailureKind.DNS)
    editor, frontier = editor_of(store)
    (added,) = editor.add([A])
    assert (added.result, added.details) == (AddResult.DEAD_HOST, "(dns)")
    row = QueuedLink(link_key(A), A, "a.test", 0.1, 0.1)
    assert dict(editor.import_links([row], print).refused) == {"its host is dead (dns)": 1}
    assert results(editor.add([A], again=True)) == {A: "ADDED"}
    assert len(frontier) == 1
    assert DeadHosts(store.tables).why("a.test") is None


def test_a_score_is_refused_where_scores_do_not_order(store):
    editor, _ = editor_of(store, by_score=False)
    with pytest.raises(ConfigurationError, match="doesn't order by scores"):
        list(editor.add([A], score=0.5))


# Dropped


def test_dropped_links_are_not_requested_and_do_not_come_in_again(tended):
    asked = tended(
        lambda editor, frontier: editor.drop(choose(frontier, "trade")), scorer=SimpleLearner()
    )
    assert asked
    assert not [url for url in asked if "trade" in url]


def test_drop_tells_how_many_links_it_took_out(store):
    editor, frontier = editor_of(store)
    list(editor.add([A, A + "x", B]))
    links = waiting(frontier)
    assert editor.drop(choose(frontier, "a.test")) == 2
    assert editor.drop(links) == 1
    assert len(frontier) == 0


# Moved


@pytest.mark.parametrize("scorer", [SimpleLearner, lambda: Apprentice(WhaleClassifier())])
def test_links_that_were_moved_to_the_front_are_fetched_first_though_the_scorer_learns(
    tended, scorer
):
    """The scorer would make their priority anew, from their features, when their turn comes."""
    moved: list[str] = []

    def to_the_front(editor: FrontierEditor, frontier: DiskFrontier) -> None:
        links = choose(frontier, "trade")
        moved.extend(link.url for link in links)
        front = editor.priority(0.999)
        assert editor.move(links, lambda old: front) == len(links) >= 3

    asked = tended(to_the_front, scorer=scorer())
    assert asked[: len(moved)] == moved


@pytest.mark.parametrize("scorer", [SimpleLearner, lambda: Apprentice(WhaleClassifier())])
def test_links_that_were_moved_to_the_end_are_fetched_last_though_the_scorer_learns(tended, scorer):
    moved: list[str] = []

    def to_the_end(editor: FrontierEditor, frontier: DiskFrontier) -> None:
        links = choose(frontier, "whale.$")
        moved.extend(link.url for link in links)
        assert editor.move(links, lambda old: old - 50.0) == len(links) >= 3

    asked = tended(to_the_end, scorer=scorer())
    assert [url for url in asked if not url.endswith("-next")][-len(moved) :] == moved


def test_links_that_are_moved_equal_keep_their_order(tended):
    orders: list[list[str]] = []

    def lift(editor: FrontierEditor, frontier: DiskFrontier) -> None:
        orders.append([link.url for link in choose(frontier, "trade")])
        editor.move(choose(frontier, "trade"), lambda old: old + 30.0)

    asked = tended(lift, scorer=SimpleLearner())
    assert asked[: len(orders[0])] == orders[0]


def test_a_moved_link_that_a_page_links_to_once_more_is_not_moved_back_down(
    simulate, reopened, tmp_path
):
    """The page tells less of it than the operator did."""
    again = site(
        page(A, "/whale", "/x", text="whale"),
        page(A + "whale", "/x", "/y", text="trade"),
        page(A + "x"),
        page(A + "y"),
    )
    stopped = simulate(topic(tmp_path, A), again, scorer=SimpleLearner()).run(pages=1)
    frontier, store = reopened(stopped)
    editor = tender(frontier, store)
    front = editor.priority(0.95)  # before /y, after /whale as a seed
    editor.move(choose(frontier, "x$"), lambda old: front)
    editor.move(choose(frontier, "whale$"), lambda old: front + 1.0)
    store.close()
    assert stopped.restart().run().urls[-3:] == [A + "whale", A + "x", A + "y"]


def test_a_moved_link_keeps_its_score_and_all_that_is_known_but_its_features(
    simulate, reopened, tmp_path
):
    stopped = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run(pages=2)
    frontier, store = reopened(stopped)
    before = choose(frontier, "whale4$")
    editor = tender(frontier, store)
    assert editor.move(before, lambda old: 7.0) == 1
    (after,) = choose(frontier, "whale4$")
    assert before[0].features != ()
    assert (after.priority, after.features) == (7.0, ())
    for name in (
        "key",
        "url",
        "host",
        "score",
        "depth",
        "parent",
        "anchor",
        "found_at",
        "tag_path_key",
    ):
        assert getattr(after, name) == getattr(before[0], name)


def test_where_no_scorer_learns_a_moved_link_keeps_its_features(simulate, reopened, tmp_path):
    stopped = simulate(topic(tmp_path, A), web()).run(pages=2)
    frontier, store = reopened(stopped)
    editor = tender(frontier, store)
    editor.move(choose(frontier, "whale4$"), lambda old: 7.0)
    (after,) = choose(frontier, "whale4$")
    assert len(after.features) == 2


def test_a_link_that_is_there_already_is_not_moved(store):
    editor, frontier = editor_of(store, learns=True)
    list(editor.add([A], score=0.5))
    assert editor.move(waiting(frontier), lambda old: editor.priority(0.5)) == 0


# Taken in


def test_an_exported_frontier_that_is_taken_in_elsewhere_is_the_same(simulate, reopened, tmp_path):
    stopped = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run(pages=4)
    frontier, _ = reopened(stopped)
    path = tmp_path / "links.parquet"
    export_links(waiting(frontier), path)
    other = empty(tmp_path, "other")
    editor, taken = editor_of(other, learns=True)
    done = editor.import_links(read_links(path, lambda score: None, NOW), print)
    assert (done.added, done.known, done.bad) == (len(frontier), 0, 0)
    assert to_microseconds(waiting(taken)) == to_microseconds(waiting(frontier))
    other.close()


def to_microseconds(links: list[QueuedLink]) -> list[QueuedLink]:
    return [structs.replace(link, found_at=round(link.found_at, 6)) for link in links]


def test_links_that_were_seen_or_are_out_of_scope_are_not_taken_in(store):
    editor, frontier = editor_of(store, Scope(max_depth=3))
    list(editor.add([A, A + "dropped"]))
    editor.drop(choose(frontier, "dropped"))
    rows = [
        QueuedLink(link_key(url), url, "a.test", 0.1, 0.1, depth=depth)
        for url, depth in ((A, 0), (A + "dropped", 0), (A + "deep", 4), (A + "new", 3))
    ]
    reported: list[InvalidRow] = []
    done = editor.import_links([*rows, InvalidRow("line 6", "nothing")], reported.append)
    assert (done.added, done.known, dict(done.refused), done.bad) == (
        1,
        2,
        {"out of the topic's scope (too deep)": 1},
        1,
    )
    assert reported == [InvalidRow("line 6", "nothing")]
    assert [link.url for link in waiting(frontier)] == [A, A + "new"]


def test_what_was_kept_before_a_crash_holds_and_the_rest_can_be_done_again(tmp_path):
    """A frontier is larger than memory: what is done is made true piece by piece."""
    urls = [f"{A}{number}" for number in range(5)]
    rows = [QueuedLink(link_key(url), url, "a.test", 0.1, 0.1) for url in urls]

    def broken() -> Iterator[QueuedLink]:
        yield from rows
        raise Crashed

    store = empty(tmp_path, "crashing")
    with pytest.raises(Crashed):
        editor_of(store, changes_per_commit=2)[0].import_links(broken(), print)
    store.abandon()
    store = empty(tmp_path, "crashing")
    editor, frontier = editor_of(store)
    assert [link.url for link in waiting(frontier)] == urls[:4]
    done = editor.import_links(rows, print)
    assert (done.added, done.known) == (1, 4)
    assert len(waiting(frontier)) == 5
    store.close()


# The order that is kept


def test_a_crawl_keeps_how_it_orders_its_links(simulate, reopened, tmp_path):
    exploration = Exploration(3.0, 2.0)
    learning = simulate(
        topic(tmp_path / "a", A), {}, scorer=SimpleLearner(), exploration=exploration
    )
    assert load_link_order(reopened(learning)[1].tables) == LinkOrder(True, True, exploration)
    in_turn = simulate(topic(tmp_path / "b", A), {}, policy="bfs")
    assert load_link_order(reopened(in_turn)[1].tables) == LinkOrder(False, False)


def test_a_state_that_does_not_tell_its_order_is_refused(store):
    with pytest.raises(StateError, match="lacks the order"):
        load_link_order(store.tables)
