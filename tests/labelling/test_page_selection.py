"""Which page is shown next."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from focused.labelling.page_selection import (
    MIN_GOOD_PAGES,
    PageSelector,
    TrainingPool,
    cosine_to,
    page_vectors,
)
from focused.web.page import Page
from tests.labelling.labelled_crawls import page_row


def rows(*vectors: list[float], hosts: list[str] | None = None) -> TrainingPool:
    """Pages of these directions, whose relevance is not known."""
    unit = np.array(vectors) / np.linalg.norm(np.array(vectors), axis=1, keepdims=True)
    names = hosts or [f"h{number}" for number in range(len(vectors))]
    pages = tuple(page_row(f"http://{host}/{number}") for number, host in enumerate(names))
    return TrainingPool(pages, sp.csr_matrix(unit), np.zeros(len(pages)), 0.5)


def choice(
    pool: TrainingPool, relevance: list[float], threshold: float = 0.5, good: int = 0
) -> PageSelector:
    """A choice among the pages of ``pool``."""
    return PageSelector(replace(pool, relevance=np.array(relevance), threshold=threshold), good)


APART = rows(*np.eye(6).tolist())


def test_while_few_good_pages_are_known_the_most_relevant_come_first():
    asking = choice(APART, [0.1, 0.5, 0.9, 0.2, 0.3, 0.8])
    assert asking.next() == (2, "high")
    asking.add_label(2, "no")
    assert asking.next() == (5, "high")


def test_later_the_page_nearest_to_the_threshold_comes_first():
    asking = choice(APART, [0.1, 0.5, 0.9, 0.32, 0.3, 0.8], threshold=0.3, good=MIN_GOOD_PAGES)
    assert asking.next() == (4, "uncertain")


def test_turns_are_taken_by_the_uncertain_and_the_doubtful():
    asking = choice(APART, [0.1, 0.5, 0.9, 0.2, 0.3, 0.8], good=MIN_GOOD_PAGES)
    reasons = set()
    while (found := asking.next()) is not None:
        asking.add_label(found[0], "no")
        reasons.add(found[1])
    assert reasons == {"uncertain", "doubtful"}


def test_no_page_is_asked_about_twice_and_each_is_asked_about():
    asking = choice(APART, [0.1, 0.5, 0.9, 0.2, 0.3, 0.8])
    asked = []
    while (found := asking.next()) is not None:
        asked.append(found[0])
        asking.add_label(found[0], "skip")
    assert sorted(asked) == list(range(6))


def test_a_near_duplicate_of_a_labelled_page_comes_last():
    twins = rows([1.0, 0.0, 0.0], [1.0, 0.01, 0.0], [0.0, 0.0, 1.0])
    asking = choice(twins, [0.9, 0.89, 0.01])
    asking.add_label(0, "yes")
    assert asking.next() == (2, "high")
    asking.add_label(2, "no")
    assert asking.next() == (1, "high")


def test_of_equal_pages_one_of_an_unlabelled_host_comes_first():
    asking = choice(rows(*np.eye(3).tolist(), hosts=["a", "a", "b"]), [0.9, 0.7, 0.7])
    asking.add_label(0, "yes")
    assert asking.next() == (2, "high")


@pytest.mark.parametrize(
    ("relevance", "doubted"),
    [
        # 0 is good; 1 is similar, 2 is not.
        ([0.9, 0.1, 0.1], 1),
        ([0.9, 0.9, 0.9], 2),
    ],
)
def test_doubtful_is_what_is_like_the_good_and_called_off_topic_or_the_reverse(relevance, doubted):
    asking = choice(rows([1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]), relevance)
    asking.add_label(0, "yes")
    assert np.argmax(asking.doubtful()[1:]) + 1 == doubted


def test_similarity_ignores_words_that_all_pages_share():
    menu = "home about contact imprint search"
    pages = [
        Page("u1", text=f"{menu} whales eat krill in the ocean"),
        Page("u2", text=f"{menu} whales eat krill and the ocean"),
        Page("u3", text=f"{menu} ships carry cargo to harbours"),
        Page("u4", text=""),
    ]
    vectors = page_vectors(pages)
    alike = cosine_to(vectors, 0)
    assert alike[0] == pytest.approx(1.0)
    assert alike[1] > 0.5 > alike[2]
    assert alike[3] == 0
    assert page_vectors([]).shape[0] == 0
