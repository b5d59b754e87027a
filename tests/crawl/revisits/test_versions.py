"""What is stored of hosts to compare the versions of their pages."""

import random

import pytest

from focused.crawl.revisits.change_detection import HostBoilerplate, page_blocks, read_version
from focused.crawl.revisits.collection import PageRecord
from focused.crawl.revisits.versions import BoilerplateStore, VersionChecker
from focused.storage.rows import pack
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page


def add_page(store: BoilerplateStore, number: int) -> HostBoilerplate:
    """Add a page with a menu of the host and five blocks of its own."""
    rng = random.Random(number)
    own = [f"block {word} of the page {rng.random()}" for word in "abcde"]
    menu = [f"entry {word} of the menu" for word in "abc"] + ["home", "about us"]
    version = read_version(number.to_bytes(8, "big"), "title", [*menu, *own])
    return store.add("a.test", page_blocks(f"http://a.test/{number}", version))


@pytest.mark.parametrize("pages", [0, 1, 50, 99, 100, 101, 350])
def test_boilerplate_is_the_same_in_the_next_session(tables, pages):
    store = BoilerplateStore(tables)
    for number in range(pages):
        add_page(store, number)
    live, again = store.get("a.test"), BoilerplateStore(tables).get("a.test")
    assert again.clock == pages
    assert pack(again) == pack(live), "also the order in which candidates are dropped"


def test_hosts_have_boilerplate_of_their_own(tables):
    store = BoilerplateStore(tables)
    for number in range(5):
        add_page(store, number)
    assert store.get("a.test").known
    assert not store.get("b.test").known


def test_learning_from_a_page_writes_little(tables, writes_to):
    store = BoilerplateStore(tables)
    for number in range(1_000):
        add_page(store, number)
    written = writes_to(tables)
    for number in range(1_000, 1_100):
        add_page(store, number)
    written_bytes = [size for _, size in written]
    assert sorted(written_bytes)[-2] < 200, "eight bytes a block"
    assert sum(written_bytes) / 100 < 500, "with one snapshot in a hundred pages"


def test_few_pages_of_a_host_wait_for_the_next_snapshot(tables):
    store = BoilerplateStore(tables)
    for number in range(250):
        add_page(store, number)
    assert tables.count("boilerplate_pages") == 50


ETAG = {"etag": '"shell"', "content-type": "text/html"}
TEXT = " ".join(f"word{number}" for number in range(80))


def visit(
    checker: VersionChecker, record: PageRecord, url: str, text: str, *, rendered: bool
) -> dict[str, str]:
    """Store or compare a version; return the headers of the request before it."""
    headers = checker.conditional_headers(url, record, 0.0) if record.signature else {}
    body = f"<title>a</title><p>{text}</p>".encode()
    fetched = Fetched(url, 200, ETAG, body, rendered=body if rendered else None)
    page = parse_page(fetched)
    assert isinstance(page, Page)
    checker.compare(fetched, page, [text], record, title_before="a")
    return dict(headers)


def test_rendered_pages_alone_are_requested_without_conditions(tables):
    """The ETag of a shell stays, whatever its scripts show."""
    checker = VersionChecker(tables)
    shell, plain = PageRecord(0.0), PageRecord(0.0)
    visit(checker, plain, "http://a.test/plain", TEXT, rendered=False)
    for number in range(30):
        sent = visit(
            checker, shell, "http://a.test/app", f"{TEXT} {number * 'new '}", rendered=True
        )
        assert sent == {}
    sent = [visit(checker, plain, "http://a.test/plain", TEXT, rendered=False) for _ in range(20)]
    assert sum("if-none-match" in {name.lower() for name in each} for each in sent) > 15
