"""Larger sites first."""

import math

import pytest

from tests.lab.orderings.policy_walk import Walk, crawled, made

A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"


def test_the_site_with_most_pages_waiting_comes_first(tmp_path):
    small, large = [f"{B}{n}" for n in range(2)], [f"{C}{n}" for n in range(4)]
    graph = {A: [*small, *large]} | {url: [] for url in (*small, *large)}
    asked = crawled(made("larger-sites"), tmp_path, graph, A)
    # From two pages each on they alternate: of equal sites the one waiting longer comes first.
    assert asked[:3] == [A, large[0], large[1]]
    assert set(asked[3:]) == {*small, *large[2:]}
    assert [url for url in asked if url in large] == large


def test_only_one_link_of_a_site_shows_how_many_wait():
    walk = Walk(made("larger-sites"), A)
    links = [f"{B}{n}" for n in range(5)]
    walk.fetch(A, *links, f"{C}0")
    assert walk.priority(links[0]) == pytest.approx(math.log(5))
    assert {walk.priority(url) for url in links[1:]} == {-40.0}
    assert walk.priority(f"{C}0") == pytest.approx(0.0)
    walk.fetch(links[0], *links)
    assert walk.moved == {links[1]: pytest.approx(math.log(4))}


def test_a_site_grows_with_links_of_later_pages():
    walk = Walk(made("larger-sites"), A)
    walk.fetch(A, f"{B}0", f"{B}1", f"{C}0")
    walk.fetch(f"{B}0", *[f"{C}{n}" for n in range(4)])
    assert walk.priority(f"{C}0") == pytest.approx(math.log(4))
    assert walk.order[:2] == [f"{C}0", f"{B}1"]


def test_a_page_that_failed_waits_no_longer():
    walk = Walk(made("larger-sites"), A)
    walk.fetch(A, f"{B}0", f"{B}1")
    walk.fail(f"{B}0")
    assert walk.moved == {f"{B}1": pytest.approx(0.0)}


def test_a_redirect_target_keeps_the_priority_of_its_source():
    walk = Walk(made("larger-sites"), A)
    walk.fetch(A, *[f"{B}{n}" for n in range(5)], f"{C}0")
    walk.redirect(f"{B}0", f"{B}moved")
    assert walk.order[:2] == [f"{B}moved", f"{B}1"]
