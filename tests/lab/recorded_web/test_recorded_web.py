"""Recorded webs: what was written can be looked up, also with damaged or missing files."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import RecordedWebError
from focused_lab.recorded_web.recorded_web import (
    WARC_FILE,
    RecordedResponse,
    RecordedWeb,
    RecordedWebWriter,
)
from tests.support.recorded_web import answer, body, page, recorded, redirect, response_of

HTML = {"content-type": "text/html"}
URL = "https://a.example/"


def write_web(folder: Path, pages: Mapping[str, bytes]) -> Path:
    with recorded(folder, *(page(url, content) for url, content in pages.items())):
        return folder


def offsets(warc: Path) -> list[int]:
    with warc.open("rb") as file:
        return [
            record.stream_pos
            for record in ArchiveIterator(file, record_types=WarcRecordType.response)
        ]


@pytest.fixture
def three_pages(tmp_path: Path) -> Path:
    return write_web(
        tmp_path / "web",
        {f"https://a.example/{name}.html": name.encode() * 500 for name in ("one", "two", "six")},
    )


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[RecordedWeb]:
    pages = {"https://docs.example/3/": b"home", "http://old.example/a.html": b"old"}
    with RecordedWeb.open(write_web(tmp_path / "web", pages)) as web:
        yield web


HEADER_NAMES = st.from_regex(r"x-[a-z][a-z0-9-]{0,20}", fullmatch=True)
HEADER_VALUES = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_categories=["Cc", "Zs"]),
    min_size=1,
    max_size=40,
)
PATHS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(
    responses=st.lists(
        st.tuples(
            PATHS,
            st.sampled_from([200, 204, 301, 404, 503, 599]),
            st.dictionaries(HEADER_NAMES, HEADER_VALUES, max_size=4),
            st.binary(max_size=3000),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_was_written_is_read_back(tmp_path_factory, responses):
    folder = tmp_path_factory.mktemp("round") / "web"
    written: dict[str, tuple[int, dict[str, str], bytes]] = {}
    with RecordedWebWriter(folder, "round", "test") as writer:
        for path, status, headers, content in responses:
            url = f"https://a.example/{path}"
            if writer.add(url, status, headers, content):
                written[url] = (status, headers, content)
        writer.finish()
    with RecordedWeb.open(folder) as web:
        assert len(web) == len(written)
        for url, (status, headers, content) in written.items():
            response = response_of(web, url)
            assert (response.status, response.body) == (status, content)
            assert response.headers == {**headers, "content-length": str(len(content))}


def test_header_names_are_lower_case(tmp_path):
    given = RecordedResponse(URL, 200, {"Content-TYPE": "text/html"}, b"x")
    with recorded(tmp_path / "web", given) as web:
        assert response_of(web, URL).headers["content-type"] == "text/html"


def test_a_url_that_was_not_recorded_has_no_response(docs):
    assert docs.get("https://docs.example/4/") is None


def test_what_is_not_an_url_has_no_response(docs):
    assert docs.get("mailto:someone@docs.example") is None


def test_the_fragment_does_not_matter(docs):
    assert body(docs, "https://docs.example/3/#top") == "home"


def test_http_answers_for_https(docs):
    assert response_of(docs, "http://docs.example/3/").url == "https://docs.example/3/"


def test_https_answers_for_http(docs):
    assert docs.find("https://old.example/a.html") == "http://old.example/a.html"


def test_an_index_file_answers_with_the_page_of_its_folder(docs):
    assert docs.find("https://docs.example/3/index.html") == "https://docs.example/3/"


def test_an_index_file_of_its_own_is_preferred(tmp_path):
    pages = {"https://a.example/": b"folder", "https://a.example/index.html": b"file"}
    with RecordedWeb.open(write_web(tmp_path / "web", pages)) as web:
        assert body(web, "https://a.example/index.html") == "file"


def test_the_first_response_for_a_url_stays(tmp_path):
    with RecordedWebWriter(tmp_path / "web", "tiny", "test") as writer:
        assert writer.add("https://a.example/x", 200, HTML, b"first")
        assert not writer.add("https://a.example/x#y", 200, HTML, b"second")
        writer.finish()
    with RecordedWeb.open(tmp_path / "web") as web:
        assert body(web, "https://a.example/x") == "first"


def test_pages_are_what_answers_200_and_is_not_robots_txt(tmp_path):
    responses = (
        page(URL, "x"),
        answer(f"{URL}gone", 404, "x"),
        answer(f"{URL}robots.txt", 200, "User-agent: *\n"),
        redirect(f"{URL}old", URL),
    )
    with recorded(tmp_path / "web", *responses) as web:
        assert web.page_urls == (URL,)
        assert len(web) == 4


def test_hosts_carry_the_port_unless_it_is_the_schemes_own(tmp_path):
    pages = {"http://a.example:8080/": b"x", "https://b.example:443/": b"x"}
    with RecordedWeb.open(write_web(tmp_path / "web", pages)) as web:
        assert web.hosts == {"a.example:8080", "b.example"}


def test_labels_are_found_by_any_address_of_the_page(tmp_path):
    labels = [("https://a.example/d/", "Top/B"), ("https://a.example/d/", "Top/A")]
    with recorded(tmp_path / "web", page("https://a.example/d/", "x"), labels=labels) as web:
        assert web.categories("http://a.example/d/index.html") == {"Top/A", "Top/B"}
        assert web.categories("https://a.example/e") == frozenset()


def test_the_index_is_made_anew_when_it_is_missing(three_pages):
    (three_pages / "index.tsv").unlink()
    with RecordedWeb.open(three_pages) as web:
        assert len(web) == 3
        assert web.get("https://a.example/two.html") is not None
    assert (three_pages / "index.tsv").is_file()


def test_the_index_is_made_anew_when_a_file_has_grown(three_pages, tmp_path):
    more = write_web(tmp_path / "more", {"https://b.example/": b"more"})
    with (three_pages / WARC_FILE).open("ab") as file:
        file.write((more / WARC_FILE).read_bytes())
    with RecordedWeb.open(three_pages) as web:
        assert web.hosts == {"a.example", "b.example"}


def test_an_index_full_of_nonsense_is_made_anew(three_pages):
    head = (three_pages / "index.tsv").read_text().splitlines()[0]
    (three_pages / "index.tsv").write_text(f"{head}\nnonsense\n")
    with RecordedWeb.open(three_pages) as web:
        assert len(web) == 3


def test_a_record_cut_at_the_end_is_skipped_and_counted(three_pages):
    warc = three_pages / WARC_FILE
    warc.write_bytes(warc.read_bytes()[:-30])
    with RecordedWeb.open(three_pages) as web:
        assert web.urls == ("https://a.example/one.html", "https://a.example/two.html")
        assert web.damaged == 1


def test_the_records_behind_a_damaged_one_are_still_there(three_pages):
    warc = three_pages / WARC_FILE
    content = warc.read_bytes()
    _, second, third = offsets(warc)
    warc.write_bytes(content[: second + 40] + content[third:])
    with RecordedWeb.open(three_pages) as web:
        assert web.urls == ("https://a.example/one.html", "https://a.example/six.html")
        assert web.damaged == 1
        assert body(web, "https://a.example/six.html") == "six" * 500


def test_damage_is_remembered_with_the_index(three_pages):
    warc = three_pages / WARC_FILE
    warc.write_bytes(warc.read_bytes()[:-30])
    RecordedWeb.open(three_pages).close()
    with RecordedWeb.open(three_pages) as web:
        assert web.damaged == 1


def test_a_file_changed_under_an_open_web_is_an_error_that_names_it(three_pages):
    with RecordedWeb.open(three_pages) as web:
        (three_pages / WARC_FILE).write_bytes(bytes(5_000))
        with pytest.raises(RecordedWebError, match=r"pages\.warc\.gz.*open the web again"):
            web.get("https://a.example/one.html")


def test_no_folder_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(RecordedWebError, match=r"no recorded web at .*focused web build"):
        RecordedWeb.open(tmp_path / "nowhere")


def test_a_folder_without_warc_files_is_not_a_recorded_web(tmp_path):
    with pytest.raises(RecordedWebError, match="is not a recorded web"):
        RecordedWeb.open(tmp_path)


def test_a_file_without_any_response_is_an_error(tmp_path):
    (tmp_path / "pages.warc.gz").write_bytes(gzip.compress(b"hello"))
    with pytest.raises(RecordedWebError, match="no readable HTTP response"):
        RecordedWeb.open(tmp_path)


def test_records_in_one_gzip_stream_are_refused_with_advice(three_pages):
    warc = three_pages / WARC_FILE
    warc.write_bytes(gzip.compress(gzip.decompress(warc.read_bytes())))
    with pytest.raises(RecordedWebError, match="focused web import"):
        RecordedWeb.open(three_pages)


def test_a_damaged_web_json_is_an_error_that_names_it(three_pages):
    (three_pages / "web.json").write_text("{")
    with pytest.raises(RecordedWebError, match=r"web\.json is damaged"):
        RecordedWeb.open(three_pages)


def test_a_folder_of_bare_warc_files_can_be_opened(three_pages):
    for name in ("web.json", "labels.tsv", "index.tsv"):
        (three_pages / name).unlink()
    with RecordedWeb.open(three_pages) as web:
        assert web.details["name"] == "web"
        assert web.labels == {}
        assert len(web) == 3


def test_other_tools_can_read_the_records(three_pages):
    with (three_pages / WARC_FILE).open("rb") as file:
        record = next(iter(ArchiveIterator(file, record_types=WarcRecordType.response)))
        assert record.headers["WARC-Target-URI"] == "https://a.example/one.html"
        assert record.http_headers.status_code == 200
        assert record.http_content_type == "text/html"
        assert record.reader.read() == b"one" * 500


def test_the_time_of_recording_is_the_records_date(tmp_path):
    when = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    with RecordedWebWriter(tmp_path / "web", "tiny", "test") as writer:
        writer.add(URL, 200, HTML, b"x", when)
        writer.finish()
    with (tmp_path / "web" / WARC_FILE).open("rb") as file:
        record = next(iter(ArchiveIterator(file, record_types=WarcRecordType.response)))
        assert record.record_date == when


def test_the_same_responses_make_the_same_file(tmp_path):
    pages = {"https://a.example/": b"a", "https://b.example/": b"b"}
    one = write_web(tmp_path / "one", pages)
    two = write_web(tmp_path / "two", pages)
    assert (one / WARC_FILE).read_bytes() == (two / WARC_FILE).read_bytes()


def test_an_unfinished_web_leaves_nothing_behind(tmp_path):
    with RecordedWebWriter(tmp_path / "web", "tiny", "test") as writer:
        writer.add("https://a.example/", 200, HTML, b"x")
    assert list(tmp_path.iterdir()) == []


def test_an_older_web_stays_when_the_new_one_fails(three_pages):
    def fail() -> None:
        with RecordedWebWriter(three_pages, "new", "test") as writer:
            writer.add("https://b.example/", 200, HTML, b"x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with RecordedWeb.open(three_pages) as web:
        assert web.hosts == {"a.example"}


def test_a_finished_web_replaces_the_older_one(three_pages):
    write_web(three_pages, {"https://b.example/": b"x"})
    with RecordedWeb.open(three_pages) as web:
        assert web.hosts == {"b.example"}
    assert [path.name for path in three_pages.parent.iterdir()] == ["web"]


def test_a_folder_with_other_things_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RecordedWebError, match="is not a recorded web"):
        RecordedWebWriter(tmp_path, "tiny", "test")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordedWebError, match="file/web cannot be written"):
        RecordedWebWriter(tmp_path / "file" / "web", "mine", "test")


def test_a_web_without_pages_is_an_error(tmp_path):
    with (
        RecordedWebWriter(tmp_path / "web", "tiny", "test") as writer,
        pytest.raises(RecordedWebError, match="nothing to record"),
    ):
        writer.finish()


def test_several_threads_may_ask_at_once(three_pages):
    wrong: list[str] = []

    def ask(web: RecordedWeb, name: str) -> None:
        for _ in range(100):
            if body(web, f"https://a.example/{name}.html") != name * 500:
                wrong.append(name)

    with RecordedWeb.open(three_pages) as web:
        threads = [threading.Thread(target=ask, args=(web, n)) for n in ("one", "two", "six")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
