"""Unpacked packages become a connected web."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from focused_lab.builders.docweb import DocRecorder
from focused_lab.builders.docweb_rules import DocPackage
from focused_lab.recorded_web.recorded_web import RecordedWeb, RecordedWebWriter
from tests.support.recorded_web import response_of

PYTHON = DocPackage(
    "python3.11-doc",
    "Top/Computers/Programming",
    "/usr/share/doc/python3.11/html",
    "https://docs.python.org/3/",
)
SQLITE = DocPackage(
    "sqlite3-doc", "Top/Computers/Databases", "/usr/share/doc/sqlite3", "https://www.sqlite.org/"
)

Files = Mapping[str, str]
Record = Callable[..., RecordedWeb]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    """Records packages given with their files, and opens the web."""

    def run(*packages: tuple[DocPackage, Files]) -> RecordedWeb:
        with RecordedWebWriter(tmp_path / "web", "docs", "test") as writer:
            recorder = DocRecorder(writer, [package for package, _ in packages])
            for package, files in packages:
                unpacked = tmp_path / package.package
                for name, text in files.items():
                    file = unpacked / package.root.lstrip("/") / name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text)
                recorder.record(package, unpacked)
            recorder.finish()
            writer.finish(recorder.labels)
        return opened.enter_context(RecordedWeb.open(tmp_path / "web"))

    with ExitStack() as opened:
        yield run


def test_pages_stand_below_the_public_address(record):
    web = record((PYTHON, {"index.html": "home", "library/os.html": "<p>os</p>"}))
    assert response_of(web, "https://docs.python.org/3/").body == b"home"
    assert response_of(web, "https://docs.python.org/3/library/os.html").body == b"<p>os</p>"


def test_every_page_has_its_packages_category(record):
    web = record((SQLITE, {"index.html": "home"}))
    assert web.labels["https://www.sqlite.org/"] == {"Top/Computers/Databases"}


def test_pages_earn_categories_of_their_own(record):
    title = "<title>threading - Thread-based parallelism</title>"
    web = record((PYTHON, {"library/threading.html": title}))
    categories = web.labels["https://docs.python.org/3/library/threading.html"]
    assert categories == {"Top/Computers/Programming", "Top/Computers/Parallel_Computing"}


def test_api_pages_are_taken_where_the_map_says_so(record):
    files = {"index.html": "home", "generated/os.path.html": "path"}
    with_api = DocPackage(PYTHON.package, PYTHON.category, PYTHON.root, PYTHON.base, True)
    assert "https://docs.python.org/3/generated/os.path.html" not in record((PYTHON, files))
    assert "https://docs.python.org/3/generated/os.path.html" in record((with_api, files))


@pytest.mark.parametrize(
    "local",
    [
        "/usr/share/doc/python3.11/html/library/os.html",
        "file:///usr/share/doc/python3-doc/html/library/os.html",
        "/usr/share/doc/python3/html/library/os.html",
    ],
)
def test_links_to_local_files_become_public(record, local):
    page = f'<a class="x" href="{local}#name">os</a>'
    web = record((PYTHON, {"library/os.html": "os"}), (SQLITE, {"index.html": page}))
    body = response_of(web, "https://www.sqlite.org/").body
    assert body == b'<a class="x" href="https://docs.python.org/3/library/os.html#name">os</a>'


def test_links_to_local_files_of_no_package_stay(record):
    page = '<a href="/usr/share/doc/nothing/x.html">x</a>'
    web = record((SQLITE, {"index.html": page}))
    assert response_of(web, "https://www.sqlite.org/").body == page.encode()


def test_other_addresses_that_are_linked_to_redirect(record):
    page = '<a href="http://docs.python.org/2/library/os.html#os.path">os</a>'
    web = record((PYTHON, {"library/os.html": "os"}), (SQLITE, {"index.html": page}))
    moved = response_of(web, "http://docs.python.org/2/library/os.html")
    assert moved.status == 301
    assert moved.headers["location"] == "https://docs.python.org/3/library/os.html"


def test_an_escaped_address_is_understood(record):
    page = '<a href="http://docs.python.org/3/a&#38;b.html">x</a>'
    web = record((PYTHON, {"a&b.html": "x"}), (SQLITE, {"index.html": page}))
    assert web.status("http://docs.python.org/3/a&b.html") == 301


def test_http_redirects_to_https_only_where_it_is_linked_that_way(record):
    page = '<a href="http://docs.python.org/3/">home</a>'
    web = record((PYTHON, {"index.html": "home", "a.html": "a"}), (SQLITE, {"index.html": page}))
    assert web.status("http://docs.python.org/3/") == 301
    assert web.status("http://docs.python.org/3/a.html") == 200


def test_a_root_without_index_page_answers_with_a_listing(record):
    web = record((SQLITE, {"b.html": "b", "sub/c.html": "c"}))
    listing = response_of(web, "https://www.sqlite.org/").body
    assert b'<a href="b.html">b.html</a>' in listing
    assert b"c.html" not in listing


def test_a_package_that_lacks_its_root_gives_no_page(record):
    web = record((SQLITE, {"index.html": "home"}), (PYTHON, {}))
    assert web.hosts == {"www.sqlite.org"}


def test_a_root_behind_a_link_inside_the_package_is_followed(tmp_path):
    real = tmp_path / "unpacked/usr/share/sqlite"
    real.mkdir(parents=True)
    (real / "index.html").write_text("home")
    (tmp_path / "unpacked/usr/share/doc").mkdir()
    (tmp_path / "unpacked/usr/share/doc/sqlite3").symlink_to("/usr/share/sqlite")
    with RecordedWebWriter(tmp_path / "web", "docs", "test") as writer:
        recorder = DocRecorder(writer, [SQLITE])
        assert recorder.record(SQLITE, tmp_path / "unpacked") == 1


def test_robots_txt_keeps_crawlers_out_of_what_the_data_file_names(record):
    web = record((PYTHON, {"index.html": "home"}))
    robots = response_of(web, "https://docs.python.org/robots.txt")
    assert robots.headers["content-type"].startswith("text/plain")
    assert b"User-agent: *\nDisallow: " in robots.body


def test_some_hosts_have_no_robots_txt_and_none_of_theirs_forbids_everything(record):
    packages = [
        DocPackage(f"p{n}", "Top/X", "/usr/share/doc/p", f"https://h{n}.example/")
        for n in range(20)
    ]
    web = record(*((package, {"index.html": "home"}) for package in packages))
    robots = [web.get(f"{package.base}robots.txt") for package in packages]
    assert 0 < sum(found is None for found in robots) < 20
    assert {found.body for found in robots if found} == {b"User-agent: *\nAllow: /\n"}
