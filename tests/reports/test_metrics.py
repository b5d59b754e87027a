"""Which pages harvest counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.reports.metrics import (
    count_duplicates,
    count_failures,
    cumulative_harvest,
    harvest_pages,
    harvest_rate,
    measure_label_harvest,
    rank_hosts_by_harvest,
    relevance_by_labels,
    rolling_harvest,
    sample_indices,
    select_relevant_urls,
)
from tests.support.crawl_folders import failed, frame, good_page, page

A, B, C = "http://a.example/", "http://b.example/", "http://c.example/"
flag_lists = st.lists(st.booleans(), min_size=1, max_size=300)


def test_redirects_failures_feeds_and_training_samples_are_no_harvest():
    pages = frame(
        [
            good_page(A),
            page(B, outcome="redirected", status=301, relevance=None),
            failed(C, "timeout"),
            page(C, outcome="feed", relevance=None),
            good_page("http://d.example/", training=True),
        ]
    )
    assert harvest_pages(pages)["url"].tolist() == [A]


def test_a_duplicate_counts_as_fetched():
    pages = frame([good_page(A), page(B, duplicate_of=A)])
    assert harvest_rate(harvest_pages(pages)["on_topic"]) == 0.5
    assert count_duplicates(pages) == 1


def test_duplicates_are_counted_by_kind():
    near = page(B, duplicate_of=A, duplicate_kind="near")
    pages = frame([good_page(A), near, page(C, duplicate_of=A, duplicate_kind="exact")])
    assert (count_duplicates(pages), count_duplicates(pages, kind="near")) == (2, 1)


def test_a_duplicate_training_sample_is_not_counted():
    assert count_duplicates(frame([page(A, duplicate_of=B, training=True)])) == 0


def test_the_harvest_of_no_pages_is_nothing():
    pages = frame([])
    assert harvest_rate(harvest_pages(pages)["on_topic"]) == 0.0
    assert cumulative_harvest([]).shape == rolling_harvest([]).shape == (0,)
    assert rank_hosts_by_harvest(pages).empty
    assert count_failures(pages) == {}


@given(flag_lists)
def test_the_curve_ends_at_the_harvest_rate(on_topic):
    assert cumulative_harvest(on_topic)[-1] == pytest.approx(harvest_rate(on_topic))


@given(flag_lists, st.integers(1, 120))
def test_the_rolling_rate_is_the_mean_of_the_window(on_topic, window):
    expected = [
        np.mean(on_topic[max(end - window, 0) : end]) for end in range(1, len(on_topic) + 1)
    ]
    assert rolling_harvest(on_topic, window) == pytest.approx(expected)


def test_failures_are_counted_by_kind_most_frequent_first():
    pages = frame([failed(A, "dns"), failed(B, "timeout"), failed(C, "timeout"), page(A)])
    assert list(count_failures(pages).items()) == [("timeout", 2), ("dns", 1)]


def test_hosts_with_most_on_topic_pages_come_first_and_the_purer_of_equals():
    pages = frame(
        [
            page(A),
            good_page(A + "1"),
            good_page(B),
            good_page(C),
            good_page(C + "1"),
            good_page("http://d.example/", training=True),
        ]
    )
    assert rank_hosts_by_harvest(pages).to_numpy().tolist() == [
        ["c.example", 2, 2],
        ["b.example", 1, 1],
        ["a.example", 2, 1],
    ]


def test_a_good_category_covers_all_below_it_and_no_namesake():
    labels = {A: ["Top/X"], B: ["Top/Other", "Top/X/Y"], C: ["Top/Xylophones"]}
    assert select_relevant_urls(labels, ["Top/X"]) == {A, B}


def test_no_good_category_makes_nothing_relevant():
    assert select_relevant_urls({A: ["Top/X"]}, []) == frozenset()


def test_labels_give_a_second_opinion_on_the_harvest():
    labels = {A: ["Top/X"], B: ["Top/Other"], C: ["Top/X"]}
    pages = frame([good_page(A), good_page(B), page("http://unknown.example/"), failed(C, "dns")])
    measured = measure_label_harvest(pages, labels, ["Top/X"])
    assert (measured.labelled, measured.on_topic, measured.relevant) == (2, 1, 2)
    assert measured.rate == measured.rate_last == pytest.approx(1 / 3)
    assert measured.recall == 0.5
    assert measured.precision == 0.5


def test_training_samples_are_not_there_to_be_recalled():
    pages = frame([good_page(A, training=True), good_page(B)])
    measured = measure_label_harvest(pages, {A: ["Top/X"], B: ["Top/X"]}, ["Top/X"])
    assert (measured.relevant, measured.recall, measured.on_topic) == (1, 1.0, 1)


def test_content_is_on_topic_by_labels_once_and_recalled_under_each_of_its_urls():
    labels = {B: ["Top/X"], C: ["Top/X"]}
    pages = frame([good_page(A), page(B, duplicate_of=A), page(C, duplicate_of=A)])
    assert relevance_by_labels(pages, [B, C]).tolist() == [False, True, False]
    assert measure_label_harvest(pages, labels, ["Top/X"]).recall == 1.0


def test_a_copy_of_a_training_sample_is_no_harvest_by_labels():
    pages = frame([good_page(A, training=True), page(B, duplicate_of=A)])
    assert relevance_by_labels(pages, [A, B]).tolist() == [False]


def test_labels_without_a_good_page_recall_nothing():
    measured = measure_label_harvest(frame([page(A)]), {A: ["Top/Other"]}, ["Top/X"])
    assert (measured.relevant, measured.recall, measured.rate, measured.precision) == (
        0,
        0.0,
        0.0,
        0.0,
    )


@given(st.integers(0, 500), st.integers(2, 120), st.integers(0, 20))
def test_a_thinned_curve_keeps_its_ends_and_no_more_points_than_asked(count, most, first):
    places = sample_indices(count, most, first).tolist()
    assert len(places) == min(most, max(count - first, 0))
    assert places == sorted(set(places))
    if places:
        assert (places[0], places[-1]) == (first, count - 1)
