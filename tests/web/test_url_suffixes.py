"""Common suffixes of two URLs."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from focused.web.url_patterns import MAX_PREFIX_FOLDERS, common_suffix, prefixes_and_suffixes

SITES = st.sampled_from(["http://a.test", "https://a.test", "http://b.test:8080"])
SEGMENTS = st.lists(st.sampled_from(["", "a", "b", "docs", "3.1"]), min_size=1, max_size=12)
QUERIES = st.sampled_from(["", "?", "?a=/b/", "?q"])
URLS = st.builds(
    lambda site, path, query: f"{site}/{'/'.join(path)}{query}", SITES, SEGMENTS, QUERIES
)


def test_a_renamed_manual_begins_where_its_paths_part():
    assert common_suffix(
        "https://docs.x.test/en/3.1/api/draw.html", "https://x.test/manual/api/draw.html"
    ) == ("https://docs.x.test/en/3.1", "https://x.test/manual", "/api/draw.html")


def test_versions_on_one_host_differ_in_a_folder():
    assert common_suffix("http://a.test/docs/2.4/", "http://a.test/docs/stable/") == (
        "http://a.test/docs/2.4",
        "http://a.test/docs/stable",
        "/",
    )


def test_the_same_path_on_two_hosts_leaves_the_sites():
    assert common_suffix("http://a.test/x/y?z=1", "https://b.test/x/y?z=1") == (
        "http://a.test",
        "https://b.test",
        "/x/y?z=1",
    )


@pytest.mark.parametrize(
    "other", ["http://b.test/y", "http://b.test/x?q=1", "http://b.test/x/", "http://a.test/x"]
)
def test_other_names_other_parameters_and_itself_have_no_common_ending(other):
    assert common_suffix("http://a.test/x", other) is None


def test_very_deep_prefixes_are_left_alone():
    deep = "/".join("abcdefghij")
    assert common_suffix(f"http://a.test/{deep}/x", "http://b.test/x") is None
    assert len(list(prefixes_and_suffixes(f"http://a.test/{deep}/x"))) == MAX_PREFIX_FOLDERS + 1


@given(URLS)
def test_prefix_and_ending_make_up_the_url_and_the_site_comes_first(url):
    parts = list(prefixes_and_suffixes(url))
    assert all(prefix + ending == url and ending[0] == "/" for prefix, ending in parts)
    assert parts[0][0].count("/") == 2
    assert all("?" not in prefix for prefix, _ in parts)


@given(URLS, URLS)
def test_a_common_ending_is_the_longest_and_is_found_again_among_the_endings(url, other):
    assume(url != other)
    found = common_suffix(url, other)
    shared = {ending for _, ending in prefixes_and_suffixes(url)} & {
        ending for _, ending in prefixes_and_suffixes(other)
    }
    if found is None:
        assert not shared
        return
    here, there, ending = found
    assert here + ending == url
    assert there + ending == other
    assert ending == max(shared, key=len)
    assert common_suffix(other, url) == (there, here, ending)
