"""Which pages count as near-duplicates."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from focused.crawl.dedup.duplicates import MIN_SHINGLES, DuplicateDetector, NearDuplicateIndex
from focused.crawl.page_parser import MAX_SHINGLES, ParsedPage
from focused.storage.state_store import StateStore
from focused.text.content_signatures import content_fingerprint
from focused.text.shingles import shingles
from focused.topic import Scope
from focused.web.page import Classification, Page
from tests.support.simulated import page as answer
from tests.support.simulated import site, topic
from tests.support.whale_models import StrictWhaleClassifier

WORDS = [f"word{number}" for number in range(5_000)]
TABLES = ("sketches", "shingles", "host_shingles")


def prose(count: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def page(url: str, text: str, title: str = "Title") -> Page:
    return Page(url, title=title, text=text)


def read(each: Page) -> ParsedPage:
    return ParsedPage(
        each,
        Classification(0.5, True),
        "",
        content_fingerprint(each),
        shingles(each.text)[:MAX_SHINGLES],
    )


def met(index: NearDuplicateIndex, *pages: Page) -> list[str | None]:
    """What each of the pages is found to be like, in turn; new ones are filed."""
    found = []
    for each in pages:
        page_sketch = index.page_sketch(each, shingles(each.text))
        share, url, least = index.nearest(page_sketch)
        found.append(url if share >= least else None)
        if found[-1] is None:
            index.add(page_sketch)
    return found


def host_with_template(host: str, template: str, pages: int = 4, words: int = 60) -> list[Page]:
    """Pages of one template, each with so many words of its own."""
    return [
        page(f"http://{host}/{n}", f"{template} {prose(words, 100 + n)}", f"Function {n}")
        for n in range(pages)
    ]


def test_a_duplicate_of_a_near_duplicate_names_the_original_and_its_own_twin(tables):
    text = prose(800, 1)
    first, near = page("http://a.test/x", text), page("http://b.test/y", f"{text} seen today")
    copies = DuplicateDetector(tables, near=True)
    for each in (first, near):
        copies.keep(each, copies.find_duplicate(read(each)))
    found = copies.find_duplicate(read(replace(near, url="http://c.test/z")))
    assert (found.of, found.exact_duplicate_of) == (first.url, near.url)
    found = copies.find_duplicate(read(replace(first, url="http://c.test/z")))
    assert (found.of, found.exact_duplicate_of) == (first.url, first.url)


def test_a_page_on_another_host_with_a_few_other_words_is_found(tables):
    text = prose(800, 1)
    first, again = page("http://a.test/x", text), page("http://b.test/y", f"{text} seen today")
    assert met(NearDuplicateIndex(tables), first, again) == [None, first.url]


def test_a_page_of_which_half_is_new_is_another_page(tables):
    text = prose(400, 1)
    other = page("http://b.test/", f"{text} {prose(400, 2)}")
    assert met(NearDuplicateIndex(tables), page("http://a.test/", text), other) == [None, None]


def half_new(number: int) -> str:
    """A text of which 160 of 200 words are always the same: a resemblance of two thirds."""
    return f"{prose(160, 1)} {prose(40, number)}"


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [("", "pdf", True), ("pdf", "", True), ("pdf", "docx", True), ("pdf", "pdf", False)],
)
def test_formats_of_one_work_share_less_also_on_one_host(first, second, is_found, tables):
    one = replace(page("http://a.test/x", half_new(2), "A site: Whales"), format=first)
    other = replace(page("http://a.test/y", half_new(3), "Whales"), format=second)
    found = met(NearDuplicateIndex(tables), one, other)
    assert found == [None, one.url if is_found else None]


def test_a_page_of_another_format_and_less_in_common_is_another_page(tables):
    text = prose(400, 1)
    other = page("http://b.test/", f"{prose(200, 1)} {prose(400, 2)}")
    paper = replace(page("http://a.test/", text), format="pdf")
    assert met(NearDuplicateIndex(tables), paper, other) == [None, None]


def test_of_several_equal_the_most_equal_is_named(tables):
    words = prose(800, 1).split()
    texts = [" ".join(words), " ".join([*words[:740], *prose(60, 2).split()])]
    pages = [page(f"http://{n}.test/", text) for n, text in enumerate(texts)]
    index = NearDuplicateIndex(tables)
    for each in pages:
        index.add(index.page_sketch(each, shingles(each.text)))
    near_second = page("http://c.test/", f"{texts[1]} one two")
    assert met(index, near_second) == [pages[1].url]


def test_short_pages_are_never_near_duplicates(tables):
    text = prose(MIN_SHINGLES, 1)
    pages = page("http://a.test/", text), page("http://b.test/", f"{text} end")
    assert met(NearDuplicateIndex(tables), *pages) == [None, None]
    assert tables.count("sketches") == 0


def test_pages_of_one_template_and_other_titles_are_no_duplicates(tables):
    pages = host_with_template("a.test", prose(1_000, 1), pages=12)
    assert met(NearDuplicateIndex(tables), *pages) == [None] * 12


def test_pages_of_one_template_and_one_title_are_no_duplicates(tables):
    template = prose(1_000, 1)
    pages = [replace(each, title="Shop") for each in host_with_template("a.test", template, 12)]
    assert met(NearDuplicateIndex(tables), *pages) == [None] * 12


def test_what_a_hosts_template_adds_does_not_hide_a_duplicate(tables):
    index = NearDuplicateIndex(tables)
    text, template = prose(300, 7), prose(1_000, 1)
    met(index, page("http://bare.test/", text), *host_with_template("a.test", template, 12))
    framed = page("http://a.test/copy", f"{template} {text}")
    assert met(index, framed) == ["http://bare.test/"]


def test_a_template_learnt_later_is_left_out_of_pages_filed_before(tables):
    index = NearDuplicateIndex(tables)
    text, template = prose(300, 7), prose(1_000, 1)
    framed = page("http://a.test/first", f"{template} {text}")
    met(index, framed, *host_with_template("a.test", template, pages=8))
    assert met(index, page("http://bare.test/", text)) == [framed.url]


def test_of_a_host_whose_template_is_known_one_page_in_four_is_compared(tables):
    index, rows = NearDuplicateIndex(tables), []
    for each in host_with_template("a.test", prose(300, 1), pages=212):
        met(index, each)
        rows.append(tables.get("host_shingles", b"a.test"))
    written = [one != other for one, other in pairwise(rows)]
    assert all(written[:10])
    assert 30 < sum(written[11:]) < 70


def test_a_page_of_the_same_host_is_found_by_its_title_too(tables):
    index = NearDuplicateIndex(tables)
    template, text = prose(300, 1), prose(500, 7)
    met(index, *host_with_template("a.test", template, pages=16))
    first = page("http://a.test/14/x", f"{template} {text}", "Version 14: Indexes")
    again = page("http://a.test/15/x", f"{template} {text} 15", "Version 15: Indexes")
    other = page("http://a.test/15/y", f"{template} {text} y", "Version 15: Triggers")
    assert met(index, first, again, other) == [None, first.url, None]


def test_a_template_larger_than_what_is_kept_of_it_makes_no_duplicates(tables):
    pages = host_with_template("a.test", prose(6_000, 1), pages=40, words=120)
    same_title = [replace(each, title="Shop") for each in pages]
    assert set(met(NearDuplicateIndex(tables), *same_title)) == {None}


def test_a_host_of_which_little_was_seen_has_no_duplicates_of_its_own(tables):
    text = prose(800, 1)
    first, again = page("http://a.test/1", text), page("http://a.test/2", f"{text} today")
    assert met(NearDuplicateIndex(tables), first, again) == [None, None]


def test_what_was_filed_is_there_after_a_restart(tmp_path):
    text = prose(800, 1)
    store = StateStore.open(tmp_path / "state", {})
    met(NearDuplicateIndex(store.tables), page("http://a.test/", text))
    store.commit()
    store.abandon()
    store = StateStore.open(tmp_path / "state", {})
    index = NearDuplicateIndex(store.tables)
    found = met(index, page("http://b.test/", f"{text} x"), page("http://c.test/", prose(800, 2)))
    assert found == ["http://a.test/", None]
    assert store.tables.count("sketches") == 2
    store.close()


def test_the_oldest_pages_are_forgotten_with_all_their_rows(tables):
    index = NearDuplicateIndex(tables, most=10)
    pages = [page(f"http://{n}.test/", prose(200, n)) for n in range(50)]
    met(index, *pages)
    assert [tables.count(table) for table in TABLES] == [10, 80, 10]
    assert met(index, replace(pages[45], url="http://z.test/")) == [pages[45].url]
    assert met(index, replace(pages[3], url="http://y.test/")) == [None]


def test_a_page_and_a_host_take_bounded_room(tables):
    index = NearDuplicateIndex(tables)
    met(index, *(page(f"http://a.test/{n}", prose(9_000, n % 3)) for n in range(40)))
    assert max(len(row) for _, row in tables.scan("sketches")) < 1_200
    assert max(len(row) for _, row in tables.scan("host_shingles")) < 8_300


def test_any_text_can_be_filed(tables):
    odd = " ".join(f"\ud800{n}\U0001f600 中{n}" for n in range(100))
    pages = page("http://a.test/", odd, "\ud800"), page("http://b.test/", f"{odd} x", "\ud800")
    assert met(NearDuplicateIndex(tables), *pages) == [None, "http://a.test/"]


class TestInACrawl:
    TEXT = "whale " + prose(300, 1)
    WEB = site(
        answer("http://a.test/", "http://b.test/", text=TEXT),
        answer("http://b.test/", "/onward", text=f"{TEXT} updated"),
        answer("http://b.test/onward"),
    )

    def test_a_near_duplicate_is_archived_not_harvested_and_its_links_are_not_followed(
        self, simulate, tmp_path
    ):
        done = simulate(topic(tmp_path, "http://a.test/"), self.WEB).run()
        assert done.urls == ["http://a.test/", "http://b.test/"]
        row = done.rows["http://b.test/"]
        assert (row["outcome"], row["on_topic"]) == ("fetched", False)
        assert (row["duplicate_of"], row["duplicate_kind"]) == ("http://a.test/", "near")
        counters = done.crawl.counters
        assert (counters.duplicates, counters.near_duplicates, counters.on_topic) == (1, 1, 1)

    def test_a_topic_may_have_them_as_pages_of_their_own(self, simulate, tmp_path):
        mine = topic(tmp_path, "http://a.test/", scope=Scope(near_duplicates=False))
        done = simulate(mine, self.WEB).run()
        assert done.urls[-1] == "http://b.test/onward"
        assert done.rows["http://b.test/"]["duplicate_of"] is None

    @pytest.mark.parametrize(("text", "is_compared"), [(TEXT, True), (prose(300, 1), False)])
    def test_pages_far_off_topic_are_compared_exactly_only(
        self, simulate, tmp_path, text, is_compared
    ):
        pages = [
            answer("http://a.test/", "http://b.test/", "http://c.test/", text=text),
            answer("http://b.test/", title="B", text=f"{text} updated"),
            answer("http://c.test/", title="B", text=f"{text} updated"),
        ]
        mine = topic(tmp_path, "http://a.test/")
        done = simulate(mine, site(*pages), classifier=StrictWhaleClassifier()).run()
        kinds = [done.rows[f"http://{name}.test/"]["duplicate_kind"] for name in "bc"]
        assert kinds == ["near" if is_compared else None, "exact"]
