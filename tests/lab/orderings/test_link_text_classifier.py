"""Links as rows of words, and the classifier trained on them."""

import numpy as np
import pytest

from focused.web.page import Link
from focused_lab.orderings.link_text_classifier import HASH_COLUMNS, LinkTextClassifier, link_matrix


def named(count: int, anchor: str) -> list[Link]:
    return [Link(f"http://{anchor}.test/{n}", anchor=anchor) for n in range(count)]


def fitted(links: list[Link], relevance: list[float]) -> LinkTextClassifier:
    learner = LinkTextClassifier.fit(
        link_matrix(links), np.array(relevance), [x.url for x in links]
    )
    assert learner is not None
    return learner


def test_a_row_counts_the_words_of_anchor_context_and_address():
    rows = link_matrix([Link("http://a.test/one", anchor="big big fish", context="in the sea")])
    assert rows.shape == (1, HASH_COLUMNS)
    # anchor: big twice, fish; context: in, the, sea; address: test, one.
    assert sorted(rows.sum(axis=1).tolist()) == [8.0]
    assert rows.max() == 2.0


def test_the_same_word_in_another_place_is_another_word():
    in_anchor, in_context = link_matrix([Link("", anchor="fish"), Link("", context="fish")])
    assert set(in_anchor.indices).isdisjoint(in_context.indices)


def test_no_links_are_no_rows():
    assert link_matrix([]).shape == (0, HASH_COLUMNS)


def test_words_of_relevant_targets_raise_a_links_probability():
    learner = fitted(named(20, "harpoon") + named(20, "ledger"), [0.9] * 20 + [0.1] * 20)
    harpoon, ledger, unknown = learner.predict(
        link_matrix(
            [Link("", anchor="harpoon"), Link("", anchor="ledger"), Link("", anchor="xyzzy")]
        )
    )
    assert harpoon > unknown > ledger


def test_an_uninformative_word_gives_the_base_rate():
    links = named(400, "here")
    learner = fitted(links, [1.0 if n % 4 == 0 else 0.0 for n in range(400)])
    (score,) = learner.predict(link_matrix(named(1, "here")))
    assert score == pytest.approx(0.25, abs=0.03)


def test_repeating_a_word_does_not_make_it_sure():
    links = [
        Link(f"http://a.test/{n}", anchor="fish " * 20 if n % 2 else "ship " * 20)
        for n in range(200)
    ]
    learner = fitted(links, [0.8 if n % 2 else 0.2 for n in range(200)])
    fish, ship = learner.predict(
        link_matrix([Link("", anchor="fish " * 20), Link("", anchor="ship " * 20)])
    )
    assert (fish, ship) == (pytest.approx(0.8, abs=0.05), pytest.approx(0.2, abs=0.05))


@pytest.mark.parametrize("relevance", [0.0, 1.0])
def test_a_single_class_trains_no_model(relevance):
    links = named(30, "harpoon")
    assert (
        LinkTextClassifier.fit(link_matrix(links), np.full(30, relevance), [x.url for x in links])
        is None
    )


def test_links_to_one_target_are_no_independent_evidence():
    links = [Link("http://a.test/", anchor="harpoon" if n % 2 else "ledger") for n in range(30)]
    relevance = np.array([n % 2 for n in range(30)], dtype=float)
    assert LinkTextClassifier.fit(link_matrix(links), relevance, [x.url for x in links]) is None
