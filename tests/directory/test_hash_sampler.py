"""Samples are a uniform hash sample of URLs."""

import tracemalloc
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from focused.directory import DirectoryEntry
from focused.directory.sample_set import SampleSet, make_sample_set

GOOD = ("Top/Food",)
ENTRIES = st.lists(
    st.builds(
        DirectoryEntry,
        st.sampled_from(["Top/Food", "Top/Food/Cheese", "Top/Other"]),
        st.integers(0, 30).map("http://a.example/{}".format),
        st.text(max_size=3),
    ),
    max_size=80,
).map(lambda entries: [DirectoryEntry("Top/Food", "http://first.example/"), *entries])


def others(count: int, start: int = 0) -> list[DirectoryEntry]:
    return [DirectoryEntry("Top/Other", f"http://o.example/{n}") for n in range(start, count)]


def goods(count: int) -> list[DirectoryEntry]:
    return [DirectoryEntry("Top/Food", f"http://g.example/{n}") for n in range(count)]


def urls(listed: SampleSet) -> set[str]:
    return {entry.url for entry in listed.entries}


def test_no_more_than_the_limit_is_kept_of_either_side():
    listed = make_sample_set(goods(50) + others(500), GOOD, limit=20)
    assert (sum(listed.good), len(listed.good), listed.left_out) == (20, 40, 510)


def test_the_sample_is_independent_of_order_and_repeats():
    entries = goods(5) + others(300)
    again = entries[::-1] + entries[100:200] * 3
    drawn = urls(make_sample_set(entries, GOOD, limit=20))
    assert urls(make_sample_set(again, GOOD, limit=20)) == drawn


def test_another_seed_is_another_sample():
    entries = goods(5) + others(300)
    drawn = [urls(make_sample_set(entries, GOOD, limit=20, seed=seed)) for seed in (1, 2)]
    assert drawn[0] != drawn[1]


def test_all_urls_have_the_same_chance():
    entries = goods(1) + others(100)
    early = 0
    for seed in range(400):
        early += sum(
            int(url.rpartition("/")[2]) < 50
            for url in urls(make_sample_set(entries, GOOD, limit=10, seed=seed))
            if "o.example" in url
        )
    assert abs(early - 2_000) < 5 * (400 * 10 * 0.25) ** 0.5  # five standard deviations


def test_a_good_page_that_was_not_drawn_does_not_become_an_other():
    entries = goods(50)
    also = [replace(entry, category="Top/Other") for entry in entries]
    listed = make_sample_set([*entries, *also, *others(3)], GOOD, limit=10)
    assert all(
        good == ("g.example" in e.url) for e, good in zip(listed.entries, listed.good, strict=True)
    )
    assert len(listed.entries) == 13


@given(ENTRIES, st.integers(1, 40))
def test_each_line_is_drawn_repeated_or_left_out(entries, limit):
    listed = make_sample_set(entries, GOOD, limit=limit)
    assert len(listed.entries) + listed.repeats + listed.left_out == len(entries)


@given(ENTRIES)
def test_a_limit_that_is_not_reached_changes_nothing(entries):
    assert make_sample_set(entries, GOOD, limit=len(entries)) == make_sample_set(entries, GOOD)


@given(ENTRIES, st.integers(1, 40))
def test_each_url_is_once_and_on_the_side_it_has_without_a_limit(entries, limit):
    all_of_them = make_sample_set(entries, GOOD)
    side = dict(zip((e.url for e in all_of_them.entries), all_of_them.good, strict=True))
    listed = make_sample_set(entries, GOOD, limit=limit)
    assert len(urls(listed)) == len(listed.entries)
    assert all(side[e.url] == good for e, good in zip(listed.entries, listed.good, strict=True))


def test_memory_is_bounded_by_the_sample():
    def stream(count):
        yield from goods(10)
        for number in range(count):
            yield DirectoryEntry("Top/Other", f"http://o.example/{number}", "A title " * 20)

    def peak(count):
        tracemalloc.start()
        try:
            make_sample_set(stream(count), GOOD, limit=100)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(20_000) < 2 * peak(2_000)
