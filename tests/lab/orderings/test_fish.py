"""Fish-search: the position of a page's links in the list, and their depth left."""

from itertools import pairwise

from focused_lab.orderings.fish import DEPTH, WIDTH
from tests.lab.orderings.policy_walk import RELEVANT, Walk, crawled, made

A = "http://a.test/"


def many(name: str, count: int) -> list[str]:
    return [f"{A}{name}-{n}" for n in range(count)]


def depth_left(walk: Walk, url: str) -> int:
    return int(walk.queue[url].features[0])


def test_a_relevant_page_has_half_as_many_fish_again():
    walk = Walk(made("fish"), A, f"{A}dull")
    walk.fetch(A, *many("rich", 40), relevance=RELEVANT)
    walk.fetch(f"{A}dull", *many("poor", 40))
    followed = [url for url in walk.order if walk.priority(url) > 0]
    assert followed == [*many("rich", WIDTH * 3 // 2), *many("poor", WIDTH)]


def test_links_of_relevant_pages_come_before_all_others(tmp_path):
    graph = {
        A: [f"{A}rich", f"{A}dull"],
        f"{A}rich": [f"{A}rich/1", f"{A}rich/2"],
        f"{A}rich/1": [f"{A}rich/1/1"],
        f"{A}dull": [f"{A}dull/1"],
    } | {f"{A}{leaf}": [] for leaf in ("rich/2", "rich/1/1", "dull/1")}
    asked = crawled(
        made("fish"), tmp_path, graph, A, relevant=[f"{A}rich", f"{A}rich/1", f"{A}rich/2"]
    )
    names = ["", "rich", "rich/1", "rich/1/1", "rich/2", "dull", "dull/1"]
    assert asked == [f"{A}{name}" for name in names]


def test_depth_runs_out_where_nothing_is_relevant():
    walk = Walk(made("fish"), A)
    chain = [A, *many("dry", DEPTH + 2)]
    for url, target in pairwise(chain[: DEPTH + 1]):
        walk.fetch(url, target)
        assert walk.priority(target) > 0
    assert depth_left(walk, chain[DEPTH]) == 0
    walk.fetch(chain[DEPTH], chain[DEPTH + 1])
    assert walk.priority(chain[DEPTH + 1]) == 0.0


def test_a_relevant_page_gives_full_depth_again():
    walk = Walk(made("fish"), A)
    walk.fetch(A, f"{A}1")
    walk.fetch(f"{A}1", f"{A}2")
    assert depth_left(walk, f"{A}2") == DEPTH - 2
    walk.fetch(f"{A}2", f"{A}3", relevance=RELEVANT)
    assert depth_left(walk, f"{A}3") == DEPTH


def test_a_link_met_again_keeps_the_greater_depth():
    walk = Walk(made("fish"), A, f"{A}seed")
    walk.fetch(A, f"{A}1")
    walk.fetch(f"{A}1", f"{A}2")
    assert depth_left(walk, f"{A}2") == DEPTH - 2
    walk.fetch(f"{A}seed", f"{A}2")
    assert depth_left(walk, f"{A}2") == DEPTH - 1
    walk.fetch(f"{A}2", f"{A}3")
    assert depth_left(walk, f"{A}3") == DEPTH - 2


def test_a_redirect_keeps_the_depth():
    walk = Walk(made("fish"), A)
    walk.fetch(A, f"{A}old")
    walk.redirect(f"{A}old", f"{A}new")
    walk.fetch(f"{A}new", f"{A}1")
    assert depth_left(walk, f"{A}1") == DEPTH - 2


def test_fetched_links_do_not_count_for_the_width():
    menu = many("menu", WIDTH)
    walk = Walk(made("fish"), A)
    walk.fetch(A, *menu)
    for url in menu:
        walk.fetch(url, *menu)
    assert not walk.queue
