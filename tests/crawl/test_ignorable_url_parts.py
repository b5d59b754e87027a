"""Learning ignorable URL parts from pages and redirects."""

from focused.crawl.dedup.url_aliases import (
    IGNORABLE_PARAMETER,
    MIN_DISTINCT_TEXTS,
    MIN_EQUAL_PAGES,
    SESSION_ID,
    SPELLING_VARIANT,
    ContentSignature,
    IgnorableUrlParts,
)
from focused.storage.tables import Tables
from focused.web.url_patterns import INDEX_PAGE, LETTER_CASE, PARAMETER_ORDER

A = "http://a.test"


def came(
    parts: IgnorableUrlParts, path: str, text: str, bag: str = "", copy_of: str | None = None
) -> None:
    signature = ContentSignature.of(
        A + path, text.encode().ljust(16, b"-"), bag.encode().ljust(8, b"\0")
    )
    parts.take(A + path, signature, copy_of)


def ignorable(parts: IgnorableUrlParts) -> tuple[str, ...]:
    return parts.of("a.test")


def with_sessions(tables: Tables) -> IgnorableUrlParts:
    """A host whose ``visit`` is a session's, learned from five pages."""
    parts = IgnorableUrlParts(tables)
    for n in range(MIN_DISTINCT_TEXTS):
        came(parts, f"/item?id={n}&visit={n}aaaa1bbb2cccc", f"item {n}")
        came(parts, f"/item?id={n}&visit={n}dddd1eee2ffff", f"item {n}")
    assert ignorable(parts) == ("?visit",)
    return parts


def test_a_page_that_came_is_refused_under_another_value_and_without_any(tables):
    parts = with_sessions(tables)
    assert parts.why(f"{A}/item?id=3&visit=9abc9abc9abc9") == SESSION_ID
    assert parts.why(f"{A}/item?id=3&visit=short") == IGNORABLE_PARAMETER
    assert parts.why(f"{A}/item?id=3") == SPELLING_VARIANT
    assert parts.why(f"{A}/item?id=77&visit=9abc9abc9abc9") is None
    assert parts.why(f"{A}/item?id=3&visit=3aaaa1bbb2cccc") is None


def test_a_page_with_a_parameter_that_matters_stands_for_none_without_it(tables):
    parts = with_sessions(tables)
    came(parts, "/only?id=3&visit=1", "the third")
    assert parts.why(f"{A}/only?visit=9abc9abc9abc9") is None
    assert parts.why(f"{A}/only?id=3&visit=9abc9abc9abc9") == SESSION_ID


def test_one_text_for_many_urls_counts_once_for_as_long_as_none_is_another(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(MIN_EQUAL_PAGES):
        came(parts, f"/item?id={n}", "no such item")
        assert ignorable(parts) == ()
    came(parts, "/item?id=99", "an item")
    for n in range(100, 100 + 3 * MIN_EQUAL_PAGES):
        came(parts, f"/item?id={n}", "no such item")
    assert ignorable(parts) == ()


def test_one_value_is_ignorable_by_itself(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(MIN_DISTINCT_TEXTS):
        came(parts, f"/list{n}", f"list {n}")
        came(parts, f"/list{n}?page=1", f"list {n}")
    assert ignorable(parts) == ("?page=1",)
    assert parts.why(f"{A}/list0?page=2") is None


def test_three_values_make_the_whole_parameter_ignorable(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(MIN_DISTINCT_TEXTS):
        came(parts, f"/list{n}", f"list {n}", bag="b" + str(n))
        came(parts, f"/list{n}?sort={n % 3}", f"sorted {n}", bag="b" + str(n))
    assert ignorable(parts) == ("?sort",)


def test_words_in_another_order_are_the_same_for_parameters_alone(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(3 * MIN_DISTINCT_TEXTS):
        came(parts, f"/Page{n}", f"text {n}", bag="b" + str(n))
        came(parts, f"/page{n}", f"other {n}", bag="b" + str(n))
    assert ignorable(parts) == ()


def test_parameters_that_are_equal_tell_nothing_where_their_order_differs(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(MIN_DISTINCT_TEXTS):
        came(parts, f"/x?a={n}&b=1", f"text {n}")
        came(parts, f"/x?b=1&a={n}", f"text {n}")
    assert ignorable(parts) == (PARAMETER_ORDER,)


def test_a_duplicate_of_the_first_page_is_the_same_though_no_text_is_kept(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(MIN_DISTINCT_TEXTS):
        name = "abcdefgh"[n]
        parts.take(f"{A}/{name}", ContentSignature.of(f"{A}/{name}"), None)
        came(parts, f"/{name.upper()}", f"text {n}", copy_of=f"{A}/{name}")
    assert ignorable(parts) == (LETTER_CASE,)


def test_redirects_between_spellings_count_once_for_each_target(tables):
    parts = IgnorableUrlParts(tables)
    for n in range(3 * MIN_DISTINCT_TEXTS):
        parts.take_same(f"{A}/list?id={n}", f"{A}/list")
        parts.take_same(f"{A}/gone{n}/", f"{A}/")
        parts.take_same(f"{A}/Other{n}", f"http://b.test/other{n}")
    assert ignorable(parts) == ()
    for n in range(MIN_DISTINCT_TEXTS):
        parts.take_same(f"{A}/d{n}/Index.html", f"{A}/d{n}/")
    assert ignorable(parts) == (INDEX_PAGE,)


def test_what_was_learned_is_there_in_the_next_process(tables):
    with_sessions(tables)
    assert IgnorableUrlParts(tables).why(f"{A}/item?id=3&visit=9abc9abc9abc9") == SESSION_ID
