"""Pages of a recorded web, parsed, as a crawl would have met them."""

from __future__ import annotations

from collections.abc import Callable

from focused.recorded.store import RecordedWeb
from focused.web.page import Fetched, Page, Redirected
from focused.web.parse import parse_page
from focused.web.response import outcome_of
from focused.web.url import normalise

_MAX_REDIRECTS = 5


def page_reader(web: RecordedWeb) -> Callable[[str], Page | None]:
    """Return a function from URL to page, redirects followed; None when the web has none."""

    def read(url: str) -> Page | None:
        target = normalise(url)
        for _ in range(_MAX_REDIRECTS + 1):
            response = None if target is None else web.get(target)
            if target is None or response is None:
                return None
            outcome = outcome_of(
                response.status, response.headers, target, response.body, elapsed_s=0.0, now=0.0
            )
            if isinstance(outcome, Fetched):
                page = parse_page(outcome)
                return page if isinstance(page, Page) else None
            target = outcome.target if isinstance(outcome, Redirected) else None
        return None

    return read
