"""WARC records: each a gzip member of its own, deterministic."""

import gzip
import random
import uuid

import pytest

from focused.web.page import Fetched
from focused.web.warc_records import response_record

SMALL, LARGE = b"<p>small</p>", b"".join(b"<p>%d</p>" % number for number in range(10_000))


INCOMPRESSIBLE = random.Random(1).randbytes(200_000)


@pytest.mark.parametrize("body", [b"", SMALL, LARGE, INCOMPRESSIBLE])
def test_an_answer_comes_back_whole_from_its_record(body):
    fetched = Fetched("http://a.test/", 200, {"server": "x"}, body, received_at=1_000_000_000.5)
    record = response_record(fetched)
    head, format_http_head, rest = gzip.decompress(record).split(b"\r\n\r\n", 2)
    assert rest == body + b"\r\n\r\n"
    assert b"WARC-Date: 2001-09-09T01:46:40Z\r\n" in head
    length = len(format_http_head) + 4 + len(body)
    assert b"Content-Length: %d\r\n" % length in head
    assert response_record(fetched) == record


def test_a_record_is_named_after_url_and_time():
    fetched = Fetched("http://a.test/ä", 200, {}, SMALL, received_at=1.5)
    record = gzip.decompress(response_record(fetched))
    namespace = uuid.UUID("8f1d1b0e-5a3c-4b7e-9d52-0d6c1f0f7a11")
    assert f"<urn:uuid:{uuid.uuid5(namespace, 'http://a.test/ä 1.5')}>".encode() in record
