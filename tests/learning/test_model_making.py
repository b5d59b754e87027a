"""A model is made together with what it learned from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from focused.learning.model_making import Made, make_model
from tests.learning.made_up import page, topic, web


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    pages = web()
    return make_model(topic(tmp_path_factory.mktemp("made"), pages), pages.get, now=1.0)


def test_it_knows_a_page_that_it_learned_from(made):
    assert made.knows(page("cheese", 3))


@pytest.mark.parametrize(
    "url", ["http://cheese3.example/cheese/3", "https://www.cheese3.example/cheese/3?utm=1"]
)
def test_it_knows_the_page_at_any_other_address(made, url):
    assert made.knows(replace(page("cheese", 3), url=url))


def test_it_knows_no_page_that_says_something_else(made):
    assert not made.knows(page("cheese", 3_000))
