"""The tag-path bandit: tag paths that led to the topic are tried again."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.crawl import SettledFetch
from focused.frontier.queued_link import QueuedLink, link_key
from focused.orderings import PolicyInputs
from focused.web.page import Classification, Link, Page
from focused_lab.orderings.tag_path import ALPHA, TagPathClusters, with_alpha
from tests.lab.orderings.policy_walk import Walk
from tests.support.whale_models import WhaleClassifier, WhaleScorer

A = "http://a.test/"
MENU = "body/div.nav/ul/li/a"
LIST = "body/main/section/p/a.reference"
ASIDE = "body/aside/h3/span/a"
REST = -1.0


def walk(*seeds: str, seed: int = 0) -> Walk:
    return Walk(with_alpha(PolicyInputs(WhaleClassifier(), WhaleScorer(), seed), ALPHA), *seeds)


def placed(path: str, name: str, count: int) -> list[Link]:
    return [Link(f"http://{name}.test/{n}", tag_path=path) for n in range(count)]


def raised(crawl: Walk) -> dict[str, float]:
    """The heads: links that wait above the rest, by host and priority."""
    return {
        url.split("/")[2].split(".")[0]: link.priority
        for url, link in crawl.queue.items()
        if link.priority > REST
    }


def bound(rewards: Sequence[float], plays: int = 2) -> float:
    """An arm's value; ``plays`` as of the last review, 2 before the first."""
    mean = sum(rewards) / len(rewards)
    return mean + ALPHA * math.sqrt(math.log(plays) / len(rewards))


def test_similar_paths_share_an_arm_and_others_do_not():
    arms = TagPathClusters()
    assert arms.of(MENU) == arms.of(MENU)
    assert arms.of("body/div/div/div/ul/li/a") == arms.of("body/div/div/div/div/ul/li/a")
    assert len({arms.of(path) for path in (MENU, LIST, ASIDE)}) == 3


def test_neighbouring_elements_count_not_elements_alone():
    arms = TagPathClusters()
    assert arms.of("body/ul/p/div/a") != arms.of("body/div/p/ul/a")


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6).map("/".join), max_size=40))
def test_arms_are_bounded_and_a_path_keeps_its_own(paths):
    arms = TagPathClusters(most=5)
    first = {path: arms.of(path) for path in paths}
    assert len(arms) <= 5
    assert all(0 <= arm < len(arms) for arm in first.values())
    assert {path: arms.of(path) for path in paths} == first


def test_one_link_of_each_arm_and_host_is_raised():
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "x", 5), *placed(LIST, "y", 5), *placed(MENU, "z", 5))
    assert raised(crawl).keys() == {"x", "y", "z"}
    assert len(crawl.queue) == 15


def test_an_arms_value_is_its_mean_reward_plus_the_exploration_term():
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "menu", 9), *placed(LIST, "list", 9))
    for _ in range(2):
        crawl.fetch(next(u for u in crawl.order if "menu" in u), relevance=0.2)
    crawl.fetch(next(u for u in crawl.order if "list" in u), relevance=0.8)
    heads = raised(crawl)
    assert heads["menu"] == pytest.approx(bound([0.2, 0.2]))
    assert heads["list"] == pytest.approx(bound([0.8]))


def test_now_and_then_all_arms_are_valued_anew_for_the_plays_meanwhile():
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "menu", 30), *placed(LIST, "list", 3))
    crawl.fetch("http://list.test/0", relevance=0.8)
    for n in range(19):
        crawl.fetch(f"http://menu.test/{n}", relevance=0.0)
    assert raised(crawl)["list"] == pytest.approx(bound([0.8]))
    crawl.fetch("http://menu.test/19", relevance=0.0)
    assert raised(crawl)["list"] == pytest.approx(bound([0.8], plays=21))
    assert raised(crawl)["menu"] == pytest.approx(bound([0.0] * 20, plays=21))


def test_arms_that_were_never_tried_come_first():
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "menu", 9), *placed(LIST, "list", 9))
    crawl.fetch(next(u for u in crawl.order if "menu" in u), relevance=1.0)
    assert "list" in crawl.order[0]


def test_an_arm_without_links_sleeps_and_keeps_its_value():
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "menu", 1), *placed(LIST, "list", 3))
    crawl.fetch("http://menu.test/0", relevance=0.9)
    assert raised(crawl).keys() == {"list"}
    crawl.fetch(crawl.order[0], *placed(MENU, "later", 2), relevance=0.0)
    assert raised(crawl)["later"] == pytest.approx(bound([0.9]))
    assert "later" in crawl.order[0]


def test_links_within_an_arm_are_in_random_order():
    orders = []
    for seed in (1, 1, 2):
        crawl = walk(A, seed=seed)
        crawl.fetch(A, *placed(MENU, "x", 30))
        order = []
        while crawl.queue:
            order.append(crawl.order[0])
            crawl.fetch(order[-1])
        orders.append(order)
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_rewards_apply_to_the_same_tag_path_on_other_hosts():
    crawl = walk(A, f"{A}2")
    crawl.fetch(A, *placed(MENU, "menu", 6), *placed(LIST, "list", 6))
    for n in range(6):
        crawl.fetch(f"http://menu.test/{n}", relevance=0.0)
        crawl.fetch(f"http://list.test/{n}", relevance=0.9)
    crawl.fetch(f"{A}2", *placed(MENU, "other-menu", 3), *placed(LIST, "other-list", 3))
    heads = raised(crawl)
    assert heads["other-list"] - heads["other-menu"] == pytest.approx(0.9)


@pytest.mark.parametrize("outcome", ["failed", "redirected"])
def test_what_brought_no_page_rewards_nobody(outcome):
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "menu", 3), *placed(LIST, "list", 3))
    before = raised(crawl)["menu"]
    if outcome == "failed":
        crawl.fail("http://menu.test/1")
    else:
        crawl.redirect("http://menu.test/1", "http://moved.test/")
    assert raised(crawl)["menu"] == before


def test_a_copy_is_a_play_without_a_reward():
    crawl = walk(A)
    crawl.fetch(A, *placed(MENU, "menu", 3))
    assert crawl.policy.reprioritiser is not None
    copy = SettledFetch(
        QueuedLink(link_key("http://menu.test/1"), "http://menu.test/1", "menu.test", 0.0, 0.5),
        "fetched",
        page=Page("http://menu.test/1"),
        classification=Classification(0.9, True),
        duplicate_of=A,
    )
    moved = crawl.policy.reprioritiser.after(copy)
    assert list(moved.values()) == [pytest.approx(bound([0.0]))]
