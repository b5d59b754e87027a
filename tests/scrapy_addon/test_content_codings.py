"""Bodies that are packed so that decoding takes long."""

import gzip

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils._compression import zstd
from scrapy.utils.test import get_crawler

from focused.scrapy_addon.middlewares import MAX_COMPRESSED_PARTS, DecodingMiddleware
from focused.scrapy_addon.outcomes import ContentDecodingError

URL = "http://a.test/"
MEMBER = gzip.compress(b"", mtime=0)
SKIPPABLE = b"\x5a\x2a\x4d\x18" + bytes(4)
MANY = MAX_COMPRESSED_PARTS + 1


def decode(body: bytes, coding: str) -> bytes:
    middleware = DecodingMiddleware.from_crawler(get_crawler())
    answer = Response(URL, headers={"Content-Encoding": coding}, body=body)
    decoded = middleware.process_response(Request(URL), answer)
    assert isinstance(decoded, Response)
    return decoded.body


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (MEMBER * MANY, "gzip"),
        (gzip.compress(MEMBER * MANY), "gzip, gzip"),
        (zstd.compress(b"") * MANY, "zstd"),
        (zstd.compress(b"") + SKIPPABLE * MANY, "zstd"),
    ],
    ids=["gzip members", "gzip members in gzip", "zstd frames", "skippable zstd frames"],
)
def test_a_body_of_many_empty_parts_is_not_decoded(body, coding):
    with pytest.raises(ContentDecodingError, match="more than 1,000 compressed parts"):
        decode(body, coding)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip"])
def test_a_body_of_several_members_is_decoded(coding):
    assert decode(gzip.compress(b"wha") + gzip.compress(b"les"), coding) == b"whales"
