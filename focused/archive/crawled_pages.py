"""The pages that a crawl stored, parsed again."""

from __future__ import annotations

from pathlib import Path

from focused.archive.archive import page_rows
from focused.archive.warc_files import warc_files
from focused.documents.convert import BoundedConverter
from focused.storage.tables import Tables
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched, Page
from focused.web.warc_reader import WarcResponse, read_responses

_WITH_PAGE = range(200, 300)


def load_crawled_pages(tables: Tables, folder: Path) -> dict[str, Page]:
    """Parse the crawl's WARC; return pages by URL and by the URLs that redirect to them."""
    pages: dict[str, Page] = {}
    with BoundedConverter() as converter:
        for path in warc_files(folder):
            for record in read_responses(path):
                if isinstance(record, WarcResponse) and record.status in _WITH_PAGE:
                    fetched = Fetched(record.url, record.status, record.headers, record.body)
                    html = converter.to_html(fetched)
                    page = html if isinstance(html, Failed) else parse_page(html)
                    if isinstance(page, Page):
                        pages[record.url] = page
    came_from = {row["url"]: row["parent"] for row in page_rows(tables)}
    for url, page in list(pages.items()):
        alias = came_from.get(url)
        while alias is not None and alias not in pages:
            pages[alias] = page
            alias = came_from.get(alias)
    return pages
