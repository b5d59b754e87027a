"""One budget of pages, shared out to the best links of all partitions."""

import math

from focused.rounds.grants import priority_floors, share_out


def test_the_pages_go_to_the_best_links_of_all_partitions():
    assert share_out(3, {0: [5.0, 1.0], 1: [4.0, 3.0], 2: [2.0]}) == {0: 1, 1: 2}


def test_among_equal_links_the_lower_partition_comes_first():
    assert share_out(1, {4: [1.0], 2: [1.0]}) == {4: 1}


def test_without_links_nothing_is_granted():
    assert share_out(3, {}) == {}
    assert share_out(3, {0: []}) == {}


def test_a_partition_waits_for_clearly_better_links_of_the_others():
    floors = priority_floors({0: [3.0, 2.9], 1: [1.0], 2: []}, 0.5)
    assert floors == {0: 0.5, 1: 2.5, 2: 2.5}


def test_of_two_equally_good_partitions_none_waits_for_the_other():
    assert priority_floors({0: [3.0], 1: [3.0]}, 0.5) == {0: 2.5, 1: 2.5}


def test_a_partition_alone_waits_for_nobody():
    assert priority_floors({7: [3.0]}, 0.5) == {7: -math.inf}


def test_without_patience_nobody_waits():
    assert set(priority_floors({0: [3.0], 1: [1.0]}, math.inf).values()) == {-math.inf}
