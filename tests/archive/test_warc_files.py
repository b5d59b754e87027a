"""The WARC files of a crawl: records, digests, and what is left out."""

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

from focused.archive.archive import page_rows
from focused.archive.warc_files import WARC_FILE, warc_files
from focused.topic import Scope
from focused.web.page import Failed, FailureKind, Fetched, HttpExchange, Redirected
from focused.web.warc_reader import WarcResponse, read_response, read_responses
from focused.web.warc_records import IDENTICAL_PAYLOAD, WarcRecordBuilder, format_http_head
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.recorded_web.web_import import import_warc
from tests.support.recorded_web import assert_digest_holds, html
from tests.support.simulated import Simulation, failed, site, topic

A = "http://a.test/"
AGENT = {"Host": "a.test", "User-Agent": "FocusedTest/0.1"}


def sent(
    url: str, status: int = 200, body: bytes = b"", asked: Mapping[str, str] = AGENT, **headers: str
) -> HttpExchange:
    """What a client keeps of a request and its response."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    path = url.split("/", 3)[3]
    return HttpExchange(
        format_http_head(f"GET /{path} HTTP/1.1", asked),
        format_http_head(f"HTTP/1.1 {status} Fine", {"Content-Type": "text/html", **named}),
        body,
    )


def fetched(url: str, *links: str, text: str = "", title: str = "", **headers: str) -> Fetched:
    body = html(title or url, *links, text=text)
    headers_seen = {"content-type": "text/html", **{k.lower(): v for k, v in headers.items()}}
    return Fetched(
        url, 200, headers_seen, body, address="192.0.2.7", exchange=sent(url, 200, body, **headers)
    )


NO_INDEX = ["noindex", "FocusedTest: none", "unavailable_after: 1970-01-01"]


def not_found(url: str, body: bytes = b"<p>no such page", **headers: str) -> Failed:
    kind = FailureKind.GONE
    return Failed(url, kind, 404, exchange=sent(url, 404, body, **headers))


def moved(url: str, target: str) -> Redirected:
    return Redirected(url, 302, target, exchange=sent(url, 302, b"over there", Location=target))


WEB = site(
    Fetched(
        A + "robots.txt",
        200,
        {"content-type": "text/plain"},
        b"User-agent: *\nDisallow: /secret\n",
        exchange=sent(A + "robots.txt", 200, b"User-agent: *\nDisallow: /secret\n"),
    ),
    fetched(A, "/whales", "/moved", "/gone", "/copy", title="whales"),
    fetched(A + "whales", title="the same whales"),
    fetched(A + "copy", title="the same whales"),
    moved(A + "moved", A + "target"),
    fetched(A + "target", title="a target"),
    not_found(A + "gone"),
)
PAGES = [A, A + "whales", A + "copy", A + "target"]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as FastWARC reads it, with the digest of its payload verified."""

    kind: str
    url: str
    fields: dict[str, str]
    block: bytes
    file: str
    offset: int


def records(folder: Path) -> list[Record]:
    found = []
    for path in warc_files(folder):
        for each in ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False):
            url, fields = each.headers.get("WARC-Target-URI") or "", dict(each.headers)
            block = each.reader.read()
            assert_digest_holds(fields, block)
            place = path.name, each.stream_pos
            found.append(Record(fields["WARC-Type"], url, fields, block, *place))
    return found


def of_kind(folder: Path, kind: str) -> list[Record]:
    return [each for each in records(folder) if each.kind == kind]


Crawl = Callable[..., Simulation]


@pytest.fixture
def crawled(tmp_path: Path, simulate: Crawl) -> Crawl:
    """Runs a crawl and leaves it open; ``output`` replaces the topic's."""

    def run(
        web: Any = WEB,
        output: Any = None,
        failed_ahead: Mapping[str, Failed] | None = None,
        **sections: Any,
    ) -> Simulation:
        subject = topic(tmp_path / "crawl", A, **sections)
        subject = replace(subject, output=replace(subject.output, **(output or {})))
        return simulate(subject, web, failed_ahead=failed_ahead or {}).run()

    return run


@pytest.fixture
def full(crawled: Crawl) -> Simulation:
    return crawled(output={"warc": "full"})


def out(done: Simulation) -> Path:
    return done.topic.output.folder


def test_every_response_is_there_with_its_request(full):
    found = records(out(full))
    assert [each.kind for each in found[:2]] == ["warcinfo", "response"]
    assert Counter(each.kind for each in found) == {
        "warcinfo": 1,
        "response": 6,
        "revisit": 1,
        "request": 7,
    }
    answered = {each.url for each in found if each.kind in ("response", "revisit")}
    assert answered == {*PAGES, A + "robots.txt", A + "moved", A + "gone"}


def test_the_files_pass_warcios_check_of_all_digests(full, capsys):
    full.close()
    arguments = type("Arguments", (), {})()
    arguments.inputs = [str(path) for path in warc_files(out(full))]
    arguments.verbose = True
    assert Checker(arguments).process_all() == 0
    output = capsys.readouterr().out
    assert "digest pass" in output
    assert "FAIL" not in output.upper().replace("NO DIGEST", "")


def test_payload_digests_hold_for_fastwarc_too(full):
    with (out(full) / WARC_FILE).open("rb") as file:
        verified = [
            each.verify_payload_digest()
            for each in ArchiveIterator(file, record_types=WarcRecordType.response)
        ]
    assert verified == [True] * 6


def test_warcinfo_tells_who_crawled_what_with_which_manners(full):
    (info,) = of_kind(out(full), "warcinfo")
    fields = dict(line.split(": ", 1) for line in info.block.decode().splitlines())
    assert fields["software"].startswith("focused-crawler/")
    assert fields["format"] == "WARC File Format 1.1"
    assert fields["conformsTo"].endswith("/warc-1.1/")
    assert fields["http-header-user-agent"] == "FocusedTest/0.1 (+http://example.org/)"
    assert fields["operator"] == "http://example.org/"
    assert fields["robots"] == "obey"
    assert fields["isPartOf"] == "whales"
    assert info.fields["WARC-Filename"] == WARC_FILE
    assert "hostname" not in fields and "ip" not in fields


def test_all_records_name_the_warcinfo_of_their_file(crawled):
    done = crawled(output={"max_warc_bytes": 2_000})
    for file in {each.file for each in records(out(done))}:
        info, *others = [each for each in records(out(done)) if each.file == file]
        assert info.kind == "warcinfo"
        assert {each.fields["WARC-Warcinfo-ID"] for each in others} == {
            info.fields["WARC-Record-ID"]
        }


def test_a_request_stands_beside_its_response(full):
    (response,) = [each for each in of_kind(out(full), "response") if each.url == A + "gone"]
    (request,) = [each for each in of_kind(out(full), "request") if each.url == A + "gone"]
    assert request.fields["WARC-Concurrent-To"] == response.fields["WARC-Record-ID"]
    assert request.fields["WARC-Date"] == response.fields["WARC-Date"]
    assert request.block == format_http_head("GET /gone HTTP/1.1", AGENT)
    assert response.block.startswith(b"HTTP/1.1 404 Fine\r\n")
    assert response.block.endswith(b"\r\n\r\n<p>no such page")


def test_the_address_that_answered_is_there_where_it_is_known(full):
    known = {
        each.url: each.fields.get("WARC-IP-Address") for each in of_kind(out(full), "response")
    }
    assert (known[A], known[A + "gone"]) == ("192.0.2.7", None)


def test_rows_tell_the_file_and_offset_of_their_record(crawled):
    done = crawled(output={"max_warc_bytes": 2_000})
    assert len(warc_files(out(done))) > 1
    at = {(each.file, each.offset): each for each in records(out(done))}
    assert {url for url, row in done.rows.items() if row["warc_file"]} == {
        *PAGES, A + "moved", A + "gone",
    }  # fmt: skip
    for url, row in done.rows.items():
        record = at[row["warc_file"], row["warc_offset"]]
        assert (record.url, record.kind in ("response", "revisit")) == (url, True)
        stored = read_response(out(done) / record.file, record.offset)
        assert stored is not None and stored.url == url


def test_a_payload_that_was_recorded_is_referred_to(full):
    (revisit,) = of_kind(out(full), "revisit")
    (original,) = [
        each
        for each in of_kind(out(full), "response")
        if each.fields["WARC-Record-ID"] == revisit.fields["WARC-Refers-To"]
    ]
    assert revisit.fields["WARC-Profile"] == IDENTICAL_PAYLOAD
    assert revisit.fields["WARC-Payload-Digest"] == original.fields["WARC-Payload-Digest"]
    assert revisit.fields["WARC-Refers-To-Target-URI"] == original.url
    assert revisit.fields["WARC-Refers-To-Date"] == original.fields["WARC-Date"]
    assert {revisit.url, original.url} == {A + "whales", A + "copy"}
    assert revisit.block.startswith(b"HTTP/1.1 200") and revisit.block.endswith(b"\r\n\r\n")


def test_a_reader_gets_the_payload_that_a_revisit_refers_to_in_another_file(crawled):
    done = crawled(output={"max_warc_bytes": 1})
    files = {each.file: each.kind for each in records(out(done)) if each.url == A + "copy"}
    bodies = {
        each.url: each.body
        for path in warc_files(out(done))
        for each in read_responses(path)
        if isinstance(each, WarcResponse)
    }
    assert files
    assert bodies[A + "copy"] == bodies[A + "whales"] == html("the same whales")


def test_a_recorded_web_of_the_files_answers_as_hosts_did(crawled, tmp_path):
    done = crawled(output={"max_warc_bytes": 2_000})
    done.close()
    imported = import_warc(warc_files(out(done)), tmp_path / "web", "web")
    assert (imported.responses, imported.damaged, imported.skipped) == (7, 0, 0)
    with RecordedWeb.open(tmp_path / "web") as web:
        for url, answer in WEB.items():
            given = web.get(url)
            assert given is not None
            assert given.status == answer.status
            if isinstance(answer, Fetched):
                assert given.body == answer.body
        assert web.get(A + "moved").headers["location"] == A + "target"


def test_a_folder_of_the_files_is_a_recorded_web_too(crawled):
    done = crawled()
    done.close()
    with RecordedWeb.open(out(done)) as web:
        assert web.get(A + "copy").body == web.get(A + "whales").body == html("the same whales")
        assert set(web.page_urls) == set(PAGES)


def test_requests_are_left_out_by_default(crawled):
    done = crawled()
    kinds = Counter(each.kind for each in records(out(done)))
    assert kinds == {"warcinfo": 1, "response": 6, "revisit": 1}


def test_the_responses_of_pages_alone_are_kept_where_that_is_asked(crawled):
    done = crawled(output={"warc": "pages"})
    assert Counter(each.kind for each in records(out(done))) == {"warcinfo": 1, "response": 4}
    assert {each.url for each in of_kind(out(done), "response")} == set(PAGES)


def test_no_file_is_made_where_none_is_asked(crawled):
    done = crawled(output={"warc": "off"})
    assert warc_files(out(done)) == []
    assert {row["warc_file"] for row in done.rows.values()} == {None}


@pytest.mark.parametrize("header", NO_INDEX)
def test_what_asks_not_to_be_indexed_by_its_header_is_left_out(crawled, header):
    web = {**WEB, A + "gone": not_found(A + "gone", X_Robots_Tag=header)}
    done = crawled(web)
    assert A + "gone" not in {each.url for each in records(out(done))}
    assert done.rows[A + "gone"]["warc_file"] is None


def test_a_page_in_another_language_is_left_out_where_it_asks_for_it(crawled):
    german = "Wale sind sehr große Tiere, die im Meer leben und atmen wie wir auch. " * 20
    hidden = b'<meta name="robots" content="noindex">' + html("Wale", text=german)
    url = A + "wale"
    pages = {
        A + "wale": Fetched(url, 200, {"content-type": "text/html"}, hidden, exchange=sent(url)),
        A + "tiere": fetched(A + "tiere", text=german),
    }
    english = "Whales are very large animals that live in the sea and breathe as we do. " * 20
    web = {**WEB, **pages, A: fetched(A, "/wale", "/tiere", text=english)}
    done = crawled(web, scope=Scope(languages=("en",)))
    kept = {each.url for each in of_kind(out(done), "response")}
    assert done.rows[url]["failure"] == "wrong-language"
    assert (url in kept, A + "tiere" in kept) == (False, True)


UNREAD = [FailureKind.INTERNAL_ERROR, FailureKind.PARSE_TIMEOUT, FailureKind.PARSE_MEMORY]


@pytest.mark.parametrize("kind", [*UNREAD, FailureKind.EMPTY])
def test_a_page_that_could_not_be_parsed_may_ask_not_to_be_indexed_and_is_left_out(crawled, kind):
    whales = A + "whales"
    done = crawled(failed_ahead={whales: Failed(whales, kind, 200)})
    kept = {each.url for each in of_kind(out(done), "response")}
    assert done.rows[A + "whales"]["failure"] == kind
    assert (A + "whales" in kept) == (kind not in UNREAD)


def test_each_response_of_a_page_that_is_tried_again_is_kept(crawled):
    busy = Failed(A, FailureKind.SERVER_ERROR, 503, exchange=sent(A, 503, b"busy"))
    done = crawled({**WEB, A: [busy, WEB[A]]})
    statuses = [each.block.split()[1] for each in of_kind(out(done), "response") if each.url == A]
    assert statuses == [b"503", b"200"]


def test_a_failure_without_a_response_has_no_record(crawled):
    done = crawled({**WEB, A + "gone": failed(A + "gone", FailureKind.TLS)})
    assert A + "gone" not in {each.url for each in records(out(done))}


def test_a_body_is_kept_as_it_was_sent(crawled):
    body = html("whales", text="whale " * 100)
    packed = gzip.compress(body, mtime=0)
    exchange = sent(A, 200, packed, Content_Encoding="gzip", Content_Length=str(len(packed)))
    done = crawled({A: Fetched(A, 200, {"content-type": "text/html"}, body, exchange=exchange)})
    (response,) = of_kind(out(done), "response")
    assert response.block == exchange.response_head + packed
    (stored,) = read_responses(out(done) / WARC_FILE)
    assert isinstance(stored, WarcResponse)
    assert stored.body == body
    assert "content-encoding" not in stored.headers


CODED = {
    "x-gzip": gzip.compress(b"whales", mtime=0),
    "deflate": zlib.compress(b"whales"),
    "Deflate": zlib.compress(b"whales", wbits=-15),
    "gzip, gzip": gzip.compress(gzip.compress(b"whales", mtime=0), mtime=0),
    "br": b"\x8b\x02\x80whales\x03",
    "identity": b"whales",
}


@pytest.mark.parametrize("coding", CODED)
def test_bodies_of_all_codings_are_read_back(tmp_path, coding):
    exchange = sent(A, 200, CODED[coding], Content_Encoding=coding)
    capture = WarcRecordBuilder().capture(Fetched(A, 200, {}, b"whales", exchange=exchange))
    (tmp_path / WARC_FILE).write_bytes(capture.response)
    (stored,) = read_responses(tmp_path / WARC_FILE)
    assert isinstance(stored, WarcResponse), stored
    assert stored.body == b"whales"


def test_a_body_in_chunks_is_kept_without_them_and_no_reader_looks_for_them():
    exchange = sent(A, 200, b"5\r\nnot chunks", Transfer_Encoding="chunked")
    record = WarcRecordBuilder().capture(Fetched(A, 200, {}, b"", exchange=exchange)).response
    read = next(iter(WarcioIterator(io.BytesIO(record))))
    assert read.http_headers.get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"
    assert read.content_stream().read() == b"5\r\nnot chunks"


def test_a_body_that_was_cut_off_says_so():
    exchange = replace(sent(A, 200, b"half a pa"), truncated="length")
    record = WarcRecordBuilder().capture(Fetched(A, 200, {}, b"", exchange=exchange)).response
    read = next(iter(WarcioIterator(io.BytesIO(record))))
    assert read.rec_headers.get_header("WARC-Truncated") == "length"


SECRETS = {"Authorization": "Basic c2Vj", "cookie": "session=c2Vj", "Proxy-Authorization": "c2Vj"}


@pytest.mark.parametrize("name", SECRETS)
def test_what_a_user_signs_in_with_is_never_written(name):
    asked = {**AGENT, name: SECRETS[name]}
    exchange = sent(A, 200, b"", asked=asked, Set_Cookie="session=c2Vj")
    capture = WarcRecordBuilder(requests=True).capture(Fetched(A, 200, {}, b"", exchange=exchange))
    request, response = gzip.decompress(capture.request), gzip.decompress(capture.response)
    assert b"c2Vj" not in request + response
    assert f"\r\n{name}: REDACTED\r\n".encode() in request
    assert b"\r\nSet-Cookie: REDACTED\r\n" in response


def test_cookies_that_anybody_gets_are_kept():
    exchange = sent(A, 200, b"", Set_Cookie="lang=en")
    capture = WarcRecordBuilder(requests=True).capture(Fetched(A, 200, {}, b"", exchange=exchange))
    assert b"\r\nSet-Cookie: lang=en\r\n" in gzip.decompress(capture.response)


def test_the_answer_to_a_form_is_kept_without_its_cookies():
    head = format_http_head("POST /login HTTP/1.1", {**AGENT, "Content-Length": "9"})
    exchange = replace(sent(A, 200, b"", Set_Cookie="session=c2Vj"), request_head=head)
    capture = WarcRecordBuilder(requests=True).capture(Fetched(A, 200, {}, b"", exchange=exchange))
    assert b"c2Vj" not in gzip.decompress(capture.response)
    assert b"WARC-Truncated: unspecified\r\n" in gzip.decompress(capture.request)


def test_a_crash_leaves_whole_records_alone(crawled):
    done = crawled()
    done.store.commit()
    before = records(out(done))
    done.crawl.archive.close()
    done.store.abandon()
    with (out(done) / WARC_FILE).open("ab") as file:
        file.write(b"\x1f\x8b\x08\x00half a record")
    (out(done) / "pages-00002.warc.gz").write_bytes(b"\x1f\x8b\x08\x00begun and not committed")
    done.crawl = done._open()
    assert warc_files(out(done)) == [out(done) / WARC_FILE]
    assert records(out(done)) == before
    assert len(list(page_rows(done.store.tables))) == 6


def test_a_resumed_session_says_again_who_crawls(tmp_path):
    first = Simulation(topic(tmp_path, A), WEB).run(pages=1)
    first.restart().run()
    assert len(of_kind(out(first), "warcinfo")) == 2
    assert {each.url for each in records(out(first)) if each.kind in ("response", "revisit")} == {
        *PAGES, A + "robots.txt", A + "moved", A + "gone",
    }  # fmt: skip
    first.close()


def test_outcomes_are_equal_whatever_was_kept_of_them():
    assert Fetched(A, 200, exchange=sent(A)) == Fetched(A, 200)
    assert Failed(A, FailureKind.GONE, exchange=sent(A)) == Failed(A, FailureKind.GONE)
