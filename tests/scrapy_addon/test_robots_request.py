"""How much of a robots.txt is decoded, and how."""

import gzip
import zlib
from collections.abc import Callable

import pytest
from scrapy.http import Response

from focused.scrapy_addon.outcomes import ContentDecodingError
from focused.scrapy_addon.robots_request import decode_robots_response
from focused.web.robots.robots_rules import MAX_ROBOTS_BYTES

RULES = b"User-agent: *\nDisallow: /early\n"
FILLER = b"#" * 99 + b"\n"


def lines(size: int) -> bytes:
    return RULES + FILLER * (size // len(FILLER)) + b"Disallow: /late\n"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("X-GZip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("gzip, deflate", lambda data: zlib.compress(gzip.compress(data))),
]


def unpacked(body: bytes, coding: str, *flags: str) -> bytes:
    response = Response(
        "http://a.test/robots.txt", headers={"Content-Encoding": coding}, body=body, flags=[*flags]
    )
    start = decode_robots_response(response)
    assert "Content-Encoding" not in start.headers
    return start.body


@pytest.mark.parametrize(("coding", "pack"), PACKERS)
def test_gzip_and_deflate_are_unpacked(coding, pack):
    assert unpacked(pack(lines(1_000)), coding) == lines(1_000)


@pytest.mark.parametrize(("coding", "pack"), PACKERS)
def test_a_bomb_is_unpacked_no_further_than_it_counts(coding, pack):
    start = unpacked(pack(lines(50_000_000)), coding)
    assert start.startswith(RULES) and start.endswith(b"\n")
    assert MAX_ROBOTS_BYTES - 200 < len(start) <= MAX_ROBOTS_BYTES


def test_members_of_a_gzip_file_are_read_one_after_the_other():
    members = gzip.compress(RULES) + gzip.compress(b"Disallow: /late\n")
    assert unpacked(members, "gzip") == RULES + b"Disallow: /late\n"


def test_a_download_that_was_stopped_ends_with_a_whole_line():
    packed = gzip.compress(lines(1_000), 0)
    half = packed[: packed.index(b"Disallow: /late") + len(b"Disallow: /")]
    assert unpacked(half, "gzip", "download_stopped") == lines(1_000).removesuffix(
        b"Disallow: /late\n"
    )


@pytest.mark.parametrize("coding", ["identity", "none", "UTF-8", "iso-8859-1"])
def test_a_coding_that_is_none_is_ignored(coding):
    response = Response(
        "http://a.test/robots.txt", headers={"Content-Encoding": coding}, body=RULES
    )
    assert decode_robots_response(response).body == RULES


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", RULES),
        ("deflate", RULES),
        ("gzip", gzip.compress(RULES, mtime=0)[:-12]),
        ("gzip", b""),
        ("br", RULES),
        ("compress", RULES),
    ],
)
def test_what_is_not_packed_as_it_says_or_breaks_off_says_nothing(coding, body):
    with pytest.raises(ContentDecodingError):
        unpacked(body, coding)
