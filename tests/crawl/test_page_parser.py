"""Pages parsed ahead of time give the same crawl."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from msgspec import msgpack

from focused.crawl.page_parser import (
    PageParser,
    ParsedPage,
    ParsingHandler,
    decode_reply,
    encode_request,
)
from focused.topic import Scope
from focused.web.html.parse import parse_page
from focused.web.page import Classification, Failed, FailureKind, Fetched, Page
from focused.web.warc_records import WarcRecordBuilder
from tests.support.made_up_topic import trained
from tests.support.simulated import Simulation, page, raw, site, topic
from tests.support.whale_models import StrictWhaleClassifier, WhaleClassifier

A = "http://a.test/"
WRITER = WarcRecordBuilder("urn:uuid:8f1d1b0e-5a3c-4b7e-9d52-0d6c1f0f7a11", requests=True)
WEB = site(
    page(A, "/whales", "/trade", "/copy", "/picture"),
    page(A + "whales", "/more"),
    page(A + "trade"),
    page(A + "copy", "/whales", title=A),
    page(A + "more"),
    raw(A + "picture", b"\x89PNG\r\n", "image/png"),
)


def reader(classifier_name: str = "", **scope: bool) -> PageParser:
    return PageParser(Scope(**scope), WhaleClassifier(), classifier_name, parse_page)


def rows_of(crawl: Simulation) -> list[dict[str, object]]:
    """The rows but for places in the WARC file, where records are as long as random names pack."""
    return [{**row, "warc_offset": None} for row in crawl.rows.values()]


def test_a_crawl_of_pages_read_ahead_is_the_same_crawl(tmp_path):
    here = Simulation(topic(tmp_path / "here", A), WEB).run()
    ahead = Simulation(topic(tmp_path / "ahead", A), WEB, reads_ahead=True).run()
    assert ahead.asked == here.asked
    assert rows_of(ahead) == rows_of(here)
    here.close()
    ahead.close()


def test_a_page_that_is_classified_later_may_be_near_the_topic():
    far_off = page(A, text="far off topic, with a few words more")
    strict = replace(reader("strict"), classifier=StrictWhaleClassifier())
    assert strict.read(far_off).shingles is None
    assert strict.without_classifier().read(far_off).shingles is not None


def test_only_answers_that_may_hold_a_page_are_to_be_read(tmp_path):
    done = Simulation(topic(tmp_path, A), WEB)
    fetch = done.crawl.next(done.now)
    lease = fetch.lease  # the site's robots.txt
    assert not done.crawl.may_parse(lease, page(A))
    done.crawl.settle(lease, Failed(A + "robots.txt", FailureKind.CLIENT_ERROR, 404), done.now)
    lease = done.crawl.next(done.now + 10).lease
    assert done.crawl.may_parse(lease, page(A))
    assert not done.crawl.may_parse(lease, raw(A, b"x", "image/png"))
    assert not done.crawl.may_parse(lease, Failed(A, FailureKind.TIMEOUT))
    assert not done.crawl.may_parse(lease + 1, page(A))
    done.close()


def test_what_an_earlier_classifier_said_ahead_is_classified_again(tmp_path):
    class Never(WhaleClassifier):
        def classify(self, page: Page) -> Classification:
            return Classification(0.01, on_topic=False)

    done = Simulation(topic(tmp_path, A), site(page(A, title="whales")))
    done.step()
    fetch = done.crawl.next(done.now + 10)
    ahead = done.crawl.parser.page_parser().read(page(A, title="whales"))
    assert isinstance(ahead, ParsedPage) and ahead.classification.on_topic
    done.crawl.swap_model(Never(), "another", done.now)
    settled = done.crawl.settle(fetch.lease, page(A, title="whales"), done.now + 11, ahead)
    assert settled.classification == Classification(0.01, on_topic=False)
    done.close()


def test_what_holds_no_page_is_a_failure():
    read = reader().read(Fetched(A, 200, {}, b"\x89PNG\r\n\x1a\n" + bytes(100)))
    assert isinstance(read, Failed) and read.kind is FailureKind.WRONG_TYPE


@pytest.mark.parametrize("near", [True, False])
def test_shingles_are_made_where_near_duplicates_are_looked_for(near):
    read = reader(near_duplicates=near).read(page(A, text="one two three four five six"))
    assert isinstance(read, ParsedPage)
    assert (read.shingles is not None) is near


def same(one: ParsedPage | Failed | None, other: ParsedPage | Failed | None) -> bool:
    if isinstance(one, ParsedPage) and isinstance(other, ParsedPage):
        assert one.shingles is not None and other.shingles is not None
        alike = one.shingles.tolist() == other.shingles.tolist()
        return alike and replace(one, shingles=None) == replace(other, shingles=None)
    return one == other


def test_of_several_responses_each_is_a_page_or_a_failure():
    answers = [answer for answer in WEB.values() if isinstance(answer, Fetched)]
    answers.insert(2, raw(A, b"\x89PNG\r\n\x1a\n" + bytes(100)))
    together = reader().read_all(answers)
    assert len(together) == len(answers)
    assert [isinstance(each, Failed) for each in together].count(True) == 1
    assert isinstance(together[2], Failed)


def test_a_page_that_our_code_breaks_over_is_the_only_one_not_read():
    class Moody(WhaleClassifier):
        def classify(self, page: Page) -> Classification:
            if "riddle" in page.title:
                raise ValueError("no idea")
            return super().classify(page)

    titles = ["one", "riddle", "two"]
    together = PageParser(Scope(), Moody(), "", parse_page).read_all(
        [page(A, title=t) for t in titles]
    )
    assert [each is None for each in together] == [False, True, False]


def test_no_page_is_no_reading():
    assert list(reader().read_all([])) == []


def test_what_another_process_tells_is_what_was_read(tmp_path):
    classifier = trained(tmp_path).classifier
    reader = PageParser(
        Scope(),
        classifier,
        "classifier",
        parse_page,
        uses_static_features=True,
        record_builder=WRITER,
    )
    text = "Brie is a soft cheese \u2013 na\u00efve " * 9
    answer = page(A, "/brie", "http://b.test/tulip?x=1", text=text)
    read, there = reader.read(answer), _elsewhere(reader, answer)
    assert isinstance(read, ParsedPage)
    here = reader.with_static_features(read)
    assert here.words is not None
    assert here.static_features is not None
    assert here.record == WRITER.capture(answer)
    assert msgpack.encode(there, enc_hook=_plain) == msgpack.encode(here, enc_hook=_plain)


def _elsewhere(reader: PageParser, answer: Fetched) -> ParsedPage | Failed:
    """By messages, as they go to the process and back."""
    handler = pickle.loads(pickle.dumps(ParsingHandler(reader)))
    return decode_reply(handler(encode_request(answer)))


def _plain(array: object) -> object:
    assert isinstance(array, np.ndarray)
    return array.dtype.str, array.tolist()
