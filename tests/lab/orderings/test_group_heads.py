"""Group heads: one link of each group is queued at the group's value."""

from hypothesis import given
from hypothesis import strategies as st

from focused_lab.orderings.link_values import GroupHeads

REST = -1.0
GROUPS = ("red", "green", "blue")


def heads_of(*links: tuple[str, str]) -> GroupHeads[str]:
    heads: GroupHeads[str] = GroupHeads(REST)
    for group, url in links:
        heads.add(group, url)
    return heads


def test_the_first_link_of_a_group_is_its_head_and_the_others_rest():
    heads = heads_of(("red", "a"), ("red", "b"), ("green", "c"))
    values = {"red": 3.0, "green": 2.0}
    assert heads.moves(values.__getitem__) == {"a": 3.0, "b": REST, "c": 2.0}


def test_what_did_not_change_is_not_moved_again():
    heads = heads_of(("red", "a"), ("red", "b"))
    heads.moves(lambda group: 3.0)
    assert heads.moves(lambda group: 4.0) == {}
    assert heads.moves(lambda group: 3.0, ["red"]) == {}


def test_a_value_that_changed_moves_the_head_alone():
    heads = heads_of(("red", "a"), ("red", "b"), ("green", "c"))
    heads.moves(lambda group: 3.0)
    assert heads.moves(lambda group: 4.0, ["red"]) == {"a": 4.0}


def test_the_next_link_becomes_the_head_when_the_head_leaves():
    heads = heads_of(("red", "a"), ("red", "b"), ("red", "c"))
    heads.moves(lambda group: 3.0)
    heads.gone("a")
    assert heads.moves(lambda group: 2.0) == {"b": 2.0}


def test_a_link_that_was_never_the_head_may_go_first():
    heads = heads_of(("red", "a"), ("red", "b"), ("red", "c"))
    heads.moves(lambda group: 3.0)
    heads.gone("b")
    heads.gone("a")
    assert heads.moves(lambda group: 1.0) == {"c": 1.0}


def test_a_group_that_ran_empty_may_fill_again():
    heads = heads_of(("red", "a"))
    heads.moves(lambda group: 3.0)
    heads.gone("a")
    assert heads.moves(lambda group: 3.0) == {}
    assert list(heads.groups()) == []
    heads.add("red", "b")
    assert heads.moves(lambda group: 3.0) == {"b": 3.0}


def test_a_known_link_is_not_added_again():
    heads = heads_of(("red", "a"))
    assert not heads.add("red", "a")
    assert not heads.add("green", "a")
    assert heads.waiting("red") == 1
    assert heads.waiting("green") == 0


def test_a_link_that_left_before_it_was_known_is_not_added():
    heads = heads_of()
    heads.gone("seed")
    assert not heads.add("red", "seed")
    assert heads.waiting("red") == 0


def test_a_link_with_a_smaller_key_becomes_the_head():
    heads: GroupHeads[str] = GroupHeads(REST, key=len)
    heads.add("red", "long")
    assert heads.moves(lambda group: 3.0) == {"long": 3.0}
    heads.add("red", "l")
    assert heads.moves(lambda group: 3.0) == {"long": REST, "l": 3.0}


steps = st.lists(
    st.tuples(st.sampled_from(["add", "go", "look"]), st.sampled_from(GROUPS), st.integers(0, 12)),
    max_size=60,
)


@given(steps, st.booleans())
def test_a_queue_that_follows_the_moves_shows_each_group_by_exactly_one_link(steps, keyed):
    heads: GroupHeads[str] = GroupHeads(REST, key=(lambda url: url) if keyed else None)
    queue: dict[str, float] = {}
    members: dict[str, list[str]] = {group: [] for group in GROUPS}
    gone: set[str] = set()
    for verb, group, number in [*steps, ("look", "red", 0)]:
        url = f"{number:02}"
        known = any(url in urls for urls in members.values())
        if verb == "add":
            assert heads.add(group, url) == (not known and url not in gone)
            if not known and url not in gone:
                members[group].append(url)
                queue[url] = 0.5  # as queued by its score
        elif verb == "go":
            heads.gone(url)
            gone.add(url)
            queue.pop(url, None)
            members = {each: [u for u in urls if u != url] for each, urls in members.items()}
        else:
            sizes = {each: 10.0 + len(urls) for each, urls in members.items()}
            queue |= heads.moves(sizes.__getitem__, GROUPS)
            assert queue.keys() == {url for urls in members.values() for url in urls}
            for each, urls in members.items():
                assert heads.waiting(each) == len(urls)
                order = sorted(urls) if keyed else urls
                worth = [10.0 + len(urls)] + [REST] * (len(urls) - 1)
                assert [queue[url] for url in order] == worth[: len(urls)]
