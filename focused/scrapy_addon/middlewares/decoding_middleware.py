"""The middleware that decodes bodies, and names what cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest

from focused.scrapy_addon.outcomes import ContentDecodingError, ResponseTooLargeError
from focused.scrapy_addon.robots_request import (
    ACCEPTED_CODINGS,
    decode_robots_response,
    is_robots_request,
)

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Request, Response

MAX_CODINGS = 3
"""Maximum number of content codings; each may unpack to ``scope.max_page_bytes``."""
MAX_COMPRESSED_PARTS = 1_000
"""Gzip members, or zstd frames, of one body; servers send one."""
_PART_STARTS = {
    b"gzip": (b"\x1f\x8b\x08",),
    b"x-gzip": (b"\x1f\x8b\x08",),
    # Frames, and the sixteen kinds of skippable ones, by the bytes that these share.
    b"zstd": (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"),
}


class DecodingMiddleware(HttpCompressionMiddleware):
    """Scrapy's middleware, with exceptions that say why a body cannot be decoded."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Set Accept-Encoding."""
        if is_robots_request(request):
            request.headers.setdefault("Accept-Encoding", ACCEPTED_CODINGS)
        super().process_request(request)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Decode the body; raises ResponseTooLargeError or ContentDecodingError."""
        if not response.body or b"Content-Encoding" not in response.headers:
            return response
        codings = b",".join(response.headers.getlist("Content-Encoding")).count(b",") + 1
        if codings > MAX_CODINGS:
            raise ContentDecodingError(f"{codings} content codings")
        if is_robots_request(request):
            return decode_robots_response(response)
        try:
            return cast("Response", super().process_response(request, response))
        except IgnoreRequest as error:  # raised by Scrapy for a decoded body above DOWNLOAD_MAXSIZE
            raise ResponseTooLargeError(str(error)) from error
        except ContentDecodingError:
            raise
        except Exception as error:
            raise ContentDecodingError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def _decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
        """Decode one coding. Raises ContentDecodingError for thousands of empty parts.

        They take a second a megabyte, without decoding to anything that ``max_size`` limits.
        """
        if any(
            body.count(start) > MAX_COMPRESSED_PARTS for start in _PART_STARTS.get(encoding, ())
        ):
            raise ContentDecodingError(f"more than {MAX_COMPRESSED_PARTS:,} compressed parts")
        return HttpCompressionMiddleware._decode(body, encoding, max_size)
