"""Change detection: what counts as a change, and what does not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.archive.page_history import VisitResult
from focused.crawl.revisits.change_detection import (
    MAX_BOILERPLATE_BLOCKS,
    MAX_CANDIDATE_BLOCKS,
    ContentChange,
    HostBoilerplate,
    VersionSignature,
    VersionText,
    detect_change,
    page_blocks,
    read_version,
    sign_version,
)
from focused.text.content_signatures import content_fingerprint
from focused.web.page import Page

URL = "https://example.org/a"
ARTICLE = (
    "Whales are large mammals that live in all oceans of the world.",
    "The blue whale is 30 meters long and weighs 173 tons at most.",
    "They feed on krill, which they filter from the water with their baleen.",
    "Species: 90",
)


def version(*blocks: str, title: str = "Whales") -> VersionText:
    page = Page(URL, title=title, text=" ".join(blocks))
    return read_version(content_fingerprint(page), title, blocks)


def add_page(
    host: HostBoilerplate, url: str, version: VersionText, change: ContentChange | None = None
) -> VersionSignature:
    """Let a host's boilerplate learn from a fetched page; return the page's signature."""
    host.learn(page_blocks(url, version, change))
    return sign_version(version, host)


def compare(
    old: tuple[str, ...], new: tuple[str, ...], host: HostBoilerplate | None = None
) -> ContentChange:
    host = host or HostBoilerplate()
    return detect_change(add_page(host, URL, version(*old)), version(*new), host)


def test_the_same_text_is_identical():
    assert compare(ARTICLE, ARTICLE) == ContentChange(VisitResult.IDENTICAL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Posted on 5 May 2024 at 12:30 PM UTC", "Posted on 17 June 2025 at 09:05 AM UTC"),
        ("Monday, May 5, 2024", "Tuesday, June 17, 2025"),
        ("Am 5. Mai 2024 geändert", "Am 17. Juni 2025 geändert"),
        ("Actualizado el 5 de mayo de 2024", "Actualizado el 17 de junio de 2025"),
        ("更新 2024年5月3日", "更新 2025年12月13日"),
        ("Updated 2024-05-01T12:33:00+02:00", "Updated 2025-06-17T09:05:59Z"),
        ("Updated 5/1/2024", "Updated 12/13/2025"),
        ("Generated Sat Nov 2 21:49:11 UTC 2024", "Generated Tue Jun 17 09:05:59 UTC 2025"),
        ("Last change 3 hours ago", "Last change 2 days ago"),
        ("Last change an hour ago", "Last change 3 weeks ago"),
        ("1,234 views", "987,654 views"),
        ("You are visitor number 12345 of this page since we began to count", ""),
        ("Copyright © 2001-2024 The authors", "Copyright © 2001-2025 The authors"),
        ("WHALES, LARGE AND SMALL", "Whales large and small!"),
    ],
)
def test_dates_times_counters_case_and_punctuation_are_cosmetic(old, new):
    if not new:
        new = old.replace("12345", "12399")
    assert compare((*ARTICLE, old), (*ARTICLE, new)).kind is VisitResult.COSMETIC


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("krill", "plankton"),
        ("30 meters", "33 meters"),
        ("Species: 90", "Species: 91"),
        ("Whales are", "Today whales are"),
    ],
)
def test_words_and_numbers_are_content(old, new):
    changed = tuple(block.replace(old, new) for block in ARTICLE)
    found = compare(ARTICLE, changed)
    assert found.kind is VisitResult.CHANGED
    assert 0 < found.size < 0.5


def test_another_title_is_a_change():
    host = HostBoilerplate()
    before = add_page(host, URL, version(*ARTICLE))
    assert detect_change(before, version(*ARTICLE, title="Dolphins"), host).kind == "changed"


def test_a_repeated_or_moved_block_is_cosmetic():
    assert compare(ARTICLE, (*ARTICLE[::-1], ARTICLE[0])).kind is VisitResult.COSMETIC


def words(count: int, start: int = 0) -> str:
    return " ".join(
        f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}x{i}" for i in range(start, start + count)
    )


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_size_is_the_share_of_words_added_and_removed(share):
    kept = round(1_000 * (1 - share))
    old = words(1_000)
    new = f"{words(kept)} {words(1_000 - kept, start=5_000)}"
    found = compare((old,), (new,))
    assert found.size == pytest.approx(share, abs=0.15)


def test_a_new_page_has_changed_completely():
    assert compare((words(500),), (words(500, start=1_000),)).size > 0.9


def test_a_page_that_doubles_has_at_least_the_added_words_changed():
    assert compare((words(300),), (words(600),)).size >= 1 / 3 - 1e-9


def host_with(*blocks: str, pages: int = 3, host: HostBoilerplate | None = None) -> HostBoilerplate:
    host = host or HostBoilerplate()
    for number in range(pages):
        own = f"page {words(12, start=50 * number + 300)} of its own"
        add_page(host, f"https://example.org/{number}", version(own, *blocks, title=f"t{number}x"))
    return host


NEWS = "The site moves to another server next week"
OTHER_NEWS = "The site has moved to another server"


def test_a_block_of_three_pages_is_boilerplate():
    host = host_with(NEWS)
    host_with(OTHER_NEWS, host=host)
    assert compare((*ARTICLE, NEWS), (*ARTICLE, OTHER_NEWS), host).kind is VisitResult.COSMETIC
    assert compare((*ARTICLE, NEWS), (*ARTICLE[1:], NEWS), host).kind is VisitResult.CHANGED


def test_a_block_of_two_pages_is_content():
    host = host_with(NEWS, pages=1)  # and the page itself
    assert compare((*ARTICLE, NEWS), ARTICLE, host).kind is VisitResult.CHANGED


def test_visits_of_one_page_make_no_boilerplate():
    host = HostBoilerplate()
    for _ in range(10):
        add_page(host, URL, version(*ARTICLE))
    assert not host.known


def test_a_signature_from_before_the_boilerplate_was_known_stays_comparable():
    host = HostBoilerplate()
    before = add_page(host, URL, version(*ARTICLE, NEWS))
    host_with(NEWS, host=host)
    assert detect_change(before, version(*ARTICLE, NEWS), host).kind is VisitResult.IDENTICAL
    with_date = version(*ARTICLE, NEWS, "5 May 2024")
    assert detect_change(before, with_date, host).kind is VisitResult.COSMETIC
    other = version(*ARTICLE[1:], NEWS)
    assert detect_change(before, other, host).kind is VisitResult.CHANGED


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_a_template_that_changes_on_unrelated_pages_at_once_is_cosmetic(blocks):
    old = [f"{NEWS} {chr(97 + i)}" for i in range(blocks)]
    new = [f"{OTHER_NEWS} {chr(97 + i)}" for i in range(blocks)]
    host = HostBoilerplate()
    before = add_page(host, URL, version(*ARTICLE, *old))
    host_with(*old, host=host)
    host_with(*new, host=host)
    assert detect_change(before, version(*ARTICLE, *new), host).kind is VisitResult.COSMETIC
    edited = version(*ARTICLE[1:], *new)
    assert detect_change(before, edited, host).kind is VisitResult.CHANGED


def test_a_status_that_many_pages_share_is_content():
    host = host_with("Open", pages=4)
    host_with("Sold out", host=host, pages=4)
    host_with("Open", host=host, pages=4)
    for old, new in (("Open", "Sold out"), ("Sold out", "Open")):
        assert compare((*ARTICLE, old), (*ARTICLE, new), host).kind is VisitResult.CHANGED


def test_a_new_menu_item_on_all_pages_is_cosmetic():
    host = HostBoilerplate()
    before = add_page(host, URL, version(*ARTICLE, "Home", "Shop"))
    host_with("Home", "Shop", host=host)
    host_with("Home", "Contact", host=host, pages=4)
    now = version(*ARTICLE, "Home", "Contact")
    assert detect_change(before, now, host).kind is VisitResult.COSMETIC


def test_boilerplate_that_changes_at_each_visit_is_found_out():
    """A lying server: each response has one of ten texts that look like content."""
    host = HostBoilerplate()
    texts = [f"Buy more of what shop {words(3, start=7 * i)} has to offer today" for i in range(10)]
    pages = {f"https://example.org/{i}": f"own {words(20, start=100 * i)}" for i in range(20)}
    stored: dict[str, VersionSignature] = {}
    changed = []
    for visit in range(6):
        calls = 0
        for number, (url, own) in enumerate(pages.items()):
            now = version(own, texts[(3 * visit + 7 * number) % 10])
            change = None
            if url in stored:
                change = detect_change(stored[url], now, host)
                calls += change.kind is VisitResult.CHANGED
            stored[url] = add_page(host, url, now, change)
        changed.append(calls)
    assert changed[-2:] == [0, 0]


def test_an_unknown_counter_is_learned_from_the_host():
    host = HostBoilerplate()
    kinds = []
    for visit in range(8):
        old, new = (*ARTICLE, f"Impressions: {visit}"), (*ARTICLE, f"Impressions: {visit + 7}")
        change = compare(old, new, host)
        add_page(host, f"https://example.org/{visit}", version(*new, title=f"t{visit}"), change)
        kinds.append(change.kind)
    assert kinds[0] is VisitResult.CHANGED
    assert kinds[-1] is VisitResult.COSMETIC


def test_signatures_and_boilerplate_have_bounded_size():
    host = HostBoilerplate()
    for number in range(60):
        shared = [words(4, start=1_000 * i + number // 4) for i in range(150)]
        add_page(host, f"https://example.org/{number}", version(*shared))
    assert len(host.known) <= MAX_BOILERPLATE_BLOCKS
    assert len(host.candidates) <= MAX_CANDIDATE_BLOCKS
    packed = msgspec.msgpack.encode(host)
    assert len(packed) <= 30_000
    assert msgspec.msgpack.decode(packed, type=HostBoilerplate).known == host.known
    signature = add_page(host, URL, version(words(20_000)))
    assert len(msgspec.msgpack.encode(signature)) <= 90


texts = st.lists(st.text(max_size=60), max_size=8)


@given(texts, texts)
def test_any_texts_can_be_compared(old, new):
    found = compare(tuple(old), tuple(new))
    assert 0.0 <= found.size <= 1.0
    assert (found.size > 0) == (found.kind is VisitResult.CHANGED)
