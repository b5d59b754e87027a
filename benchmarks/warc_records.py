"""Cost of a page's WARC records: CPU time and bytes, by library and by record types.

::

    python benchmarks/warc_records.py --web webs/docweb-small --pages 500

Each page is recorded by warcio and by the crawl's own writer (FastWARC): its response alone, then
with request and metadata. The minimum of several rounds counts.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from focused.recorded_web.recorded_web import RecordedWeb
from focused.web.page import Fetched, HttpExchange
from focused.web.warc_writer import WarcRecordBuilder, format_http_head, status_line

_ROUNDS = 5
_ASKED = {
    "User-Agent": "FocusedBenchmark/0.1 (+http://example.org/)",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en",
    "Accept-Encoding": "gzip, deflate",
}


def _by_warcio(fetched: Fetched) -> int:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True, warc_version="1.1")
    head = StatusAndHeaders("200 OK", list(fetched.headers.items()), protocol="HTTP/1.1")
    payload = io.BytesIO(fetched.body)
    record = writer.create_warc_record(fetched.url, "response", payload, http_headers=head)
    writer.write_record(record)
    return len(out.getvalue())


def _response(fetched: Fetched) -> int:
    return len(WarcRecordBuilder("urn:uuid:0").capture(fetched).response)


def _with_request(fetched: Fetched) -> int:
    capture = WarcRecordBuilder("urn:uuid:0", requests=True).capture(fetched)
    return len(capture.response) + len(capture.request)


def _measure(pages: Sequence[Fetched], record: Callable[[Fetched], int]) -> tuple[float, float]:
    """Microseconds of CPU time and bytes per page."""
    least, written = float("inf"), 0
    for _ in range(_ROUNDS):
        began = time.process_time()
        written = sum(map(record, pages))
        least = min(least, time.process_time() - began)
    return 1e6 * least / len(pages), written / len(pages)


def _pages(folder: Path, count: int) -> list[Fetched]:
    with RecordedWeb.open(folder) as web:
        step = max(1, len(web.page_urls) // count)
        found = []
        for url in islice(web.page_urls, 0, step * count, step):
            answer = web.get(url)
            assert answer is not None
            _, _, host, path = url.split("/", 3)
            request = format_http_head(f"GET /{path} HTTP/1.1", {"Host": host, **_ASKED})
            head = format_http_head(status_line(answer.status), answer.headers)
            page = Fetched(url, answer.status, answer.headers, answer.body, received_at=1e9)
            found.append(replace(page, exchange=HttpExchange(request, head), address="192.0.2.1"))
        return found


def main() -> None:
    """Print a line per way of recording a page."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--web", type=Path, required=True)
    options.add_argument("--pages", type=int, default=500)
    chosen = options.parse_args()
    pages = _pages(chosen.web, chosen.pages)
    size = sum(len(page.body) for page in pages) / len(pages)
    print(f"{len(pages)} pages of {size:,.0f} bytes on average; a page:")
    for name, record in (
        ("response, warcio", _by_warcio),
        ("response, FastWARC", _response),
        ("with request, FastWARC", _with_request),
    ):
        took_us, written = _measure(pages, record)
        print(f"{name:38} {took_us:8,.0f} us {written:8,.0f} bytes")


if __name__ == "__main__":
    main()
